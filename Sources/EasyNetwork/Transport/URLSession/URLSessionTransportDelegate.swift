import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Passes a session's reports about its tasks to their exchanges.
///
/// The selectors are written explicitly. The methods of Apple's protocols are optional, so a method with another name
/// or type is not an error, but is never called. Pins would then not be enforced, and redirects would be followed.
final class URLSessionTransportDelegate: NSObject, URLSessionDataDelegate {
    /// The serial queue of the session's reports.
    let queue: OperationQueue = {
        let queue = OperationQueue()
        queue.name = "EasyNetwork.URLSessionTransport"
        queue.maxConcurrentOperationCount = 1
        return queue
    }()

    #if canImport(Darwin)
    /// A queue that has a thread even if all threads of concurrent queues are blocked. An operation queue does not
    /// retain it.
    private let serialQueue = DispatchQueue(label: "EasyNetwork.URLSessionTransport", autoreleaseFrequency: .workItem)
    #endif

    private let exchanges = Locked<[Int: URLSessionExchange]>([:])

    /// The time when the server of an origin was last refused.
    private let refusals = Locked<[String: TimeInterval]>([:])

    #if canImport(Darwin)
    private let tls: TLSConfiguration
    private let hook: URLSessionTransport.ChallengeHook?

    init(_ tls: TLSConfiguration, _ hook: URLSessionTransport.ChallengeHook? = nil) {
        self.tls = tls
        self.hook = hook
        super.init()
        queue.underlyingQueue = serialQueue
    }
    #else
    init(_ tls: TLSConfiguration) {}
    #endif

    func register(_ exchange: URLSessionExchange, for task: URLSessionTask) {
        exchanges.withLock { $0[task.taskIdentifier] = exchange }
    }

    /// Notes that the certificate of a server is not trusted.
    func refuse(_ origin: String, at now: TimeInterval) {
        refusals.withLock { $0[origin] = now }
    }

    func hasRefused(_ origin: String, since time: TimeInterval) -> Bool {
        refusals.withLock { $0[origin] ?? -.infinity } >= time
    }

    private func exchange(for task: URLSessionTask) -> URLSessionExchange? {
        exchanges.withLock { $0[task.taskIdentifier] }
    }

    #if canImport(Darwin)
    @objc(URLSession:dataTask:didReceiveResponse:completionHandler:)
    #endif
    func urlSession(
        _ session: URLSession,
        dataTask: URLSessionDataTask,
        didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        guard let exchange = exchange(for: dataTask) else { return completionHandler(.cancel) }
        exchange.received(response, proceed: completionHandler)
    }

    #if canImport(Darwin)
    @objc(URLSession:dataTask:didReceiveData:)
    #endif
    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        exchange(for: dataTask)?.received(data)
    }

    #if canImport(Darwin)
    @objc(URLSession:task:didSendBodyData:totalBytesSent:totalBytesExpectedToSend:)
    #endif
    func urlSession(
        _ session: URLSession,
        task: URLSessionTask,
        didSendBodyData bytesSent: Int64,
        totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) {
        exchange(for: task)?.sentBytes(totalBytesSent)
    }

    #if canImport(Darwin)
    @objc(URLSession:task:willPerformHTTPRedirection:newRequest:completionHandler:)
    #endif
    func urlSession(
        _ session: URLSession,
        task: URLSessionTask,
        willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        exchange(for: task)?.answer { _ in completionHandler(nil) }
    }

    #if canImport(Darwin)
    @objc(URLSession:task:didReceiveChallenge:completionHandler:)
    #endif
    func urlSession(
        _ session: URLSession,
        task: URLSessionTask,
        didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        #if canImport(Darwin)
        // The challenge is not decided on the queue of all exchanges, because the program decides it, and the system
        // might query other servers about a certificate. A separate serial queue has a thread even if closures block
        // all 64 threads of concurrent queues.
        DispatchQueue(label: "EasyNetwork.challenge", autoreleaseFrequency: .workItem).async {
            let (disposition, credential) = self.hook?(challenge) ?? self.judge(challenge)
            let isRefused =
                disposition == .cancelAuthenticationChallenge && challenge.protectionSpace.serverTrust != nil
            self.queue.addOperation {
                guard let exchange = self.exchange(for: task) else {
                    return completionHandler(.cancelAuthenticationChallenge, nil)
                }
                // The session reports a refused server as a cancellation.
                if isRefused { self.refuse(exchange.origin, at: exchange.clock.now) }
                // A session ignores the credential of a challenge that is cancelled.
                exchange.answer { completionHandler($0 ? .cancelAuthenticationChallenge : disposition, credential) }
            }
        }
        #else
        // A task whose challenge gets default handling never completes on Linux. The complete 401 has arrived by now,
        // and challenges occur only for credentials.
        exchange(for: task)?.stop(nil)
        #endif
    }

    #if canImport(Darwin)
    private func judge(
        _ challenge: URLAuthenticationChallenge
    ) -> (URLSession.AuthChallengeDisposition, URLCredential?) {
        // The session has no credentials. Default handling therefore means the system's trust for TLS, and the 401
        // itself for HTTP.
        let isDefault = tls.trust == .system && tls.pinnedPublicKeys.isEmpty
        guard let serverTrust = challenge.protectionSpace.serverTrust, !isDefault else {
            return (.performDefaultHandling, nil)
        }
        guard tls.trusts(serverTrust) else { return (.cancelAuthenticationChallenge, nil) }
        return (.useCredential, URLCredential(trust: serverTrust))
    }

    @objc(URLSession:task:didFinishCollectingMetrics:)
    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
        // A task follows no redirect, so it has one transaction.
        guard let transaction = metrics.transactionMetrics.last else { return }
        exchange(for: task)?.measured(TransportMetrics(transaction))
    }
    #endif

    #if canImport(Darwin)
    @objc(URLSession:task:didCompleteWithError:)
    #endif
    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        exchanges.withLock { $0.removeValue(forKey: task.taskIdentifier) }?.completed(error)
    }
}
