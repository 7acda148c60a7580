import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Passes what a session reports about its tasks to their exchanges.
final class URLSessionTransportDelegate: NSObject, URLSessionDataDelegate {
    /// The serial queue of the session's reports.
    let queue: OperationQueue = {
        let queue = OperationQueue()
        queue.name = "EasyNetwork.URLSessionTransport"
        queue.maxConcurrentOperationCount = 1
        return queue
    }()

    private let exchanges = Locked<[Int: URLSessionExchange]>([:])

    #if canImport(Darwin)
    private let tls: TLSConfiguration
    private let hook: URLSessionTransport.ChallengeHook?

    init(_ tls: TLSConfiguration, _ hook: URLSessionTransport.ChallengeHook? = nil) {
        self.tls = tls
        self.hook = hook
    }
    #else
    init(_ tls: TLSConfiguration) {}
    #endif

    func register(_ exchange: URLSessionExchange, for task: URLSessionTask) {
        exchanges.withLock { $0[task.taskIdentifier] = exchange }
    }

    private func exchange(for task: URLSessionTask) -> URLSessionExchange? {
        exchanges.withLock { $0[task.taskIdentifier] }
    }

    func urlSession(
        _ session: URLSession,
        dataTask: URLSessionDataTask,
        didReceive response: URLResponse,
        completionHandler: @escaping (URLSession.ResponseDisposition) -> Void
    ) {
        guard let exchange = exchange(for: dataTask) else { return completionHandler(.cancel) }
        exchange.received(response, proceed: completionHandler)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        exchange(for: dataTask)?.received(data)
    }

    func urlSession(
        _ session: URLSession,
        task: URLSessionTask,
        didSendBodyData bytesSent: Int64,
        totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) {
        exchange(for: task)?.sentBytes(totalBytesSent)
    }

    func urlSession(
        _ session: URLSession,
        task: URLSessionTask,
        willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest,
        completionHandler: @escaping (URLRequest?) -> Void
    ) {
        exchange(for: task)?.answer { _ in completionHandler(nil) }
    }

    func urlSession(
        _ session: URLSession,
        task: URLSessionTask,
        didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        #if canImport(Darwin)
        // A session's handler may be called from anywhere, which its type does not declare.
        nonisolated(unsafe) let answer = completionHandler
        // Not on the queue of all exchanges: the program decides, and the system may ask others about a certificate.
        WorkQueue.shared.async {
            let (disposition, credential) = self.hook?(challenge) ?? self.judge(challenge)
            let isRefused =
                disposition == .cancelAuthenticationChallenge && challenge.protectionSpace.serverTrust != nil
            self.queue.addOperation {
                guard let exchange = self.exchange(for: task) else {
                    return answer(.cancelAuthenticationChallenge, nil)
                }
                if isRefused {
                    exchange.refuseServer { answer(disposition, credential) }
                } else {
                    exchange.answer { isStopped in
                        isStopped ? answer(.cancelAuthenticationChallenge, nil) : answer(disposition, credential)
                    }
                }
            }
        }
        #else
        // A task whose challenge gets default handling never completes here. By now all of the 401 has arrived, and
        // there are no challenges for anything but credentials.
        exchange(for: task)?.completedWithChallenge()
        #endif
    }

    #if canImport(Darwin)
    private func judge(
        _ challenge: URLAuthenticationChallenge
    ) -> (URLSession.AuthChallengeDisposition, URLCredential?) {
        // The session has no credentials, so default handling means the system's trust for TLS and the 401 itself for
        // HTTP.
        guard let serverTrust = challenge.protectionSpace.serverTrust, !tls.isSystems else {
            return (.performDefaultHandling, nil)
        }
        guard tls.trusts(serverTrust) else { return (.cancelAuthenticationChallenge, nil) }
        return (.useCredential, URLCredential(trust: serverTrust))
    }

    func urlSession(
        _ session: URLSession,
        task: URLSessionTask,
        didFinishCollecting metrics: URLSessionTaskMetrics
    ) {
        // A task has one transaction, since it follows no redirect.
        guard let transaction = metrics.transactionMetrics.last else { return }
        exchange(for: task)?.measured(TransportMetrics(transaction))
    }
    #endif

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        exchanges.withLock { $0.removeValue(forKey: task.taskIdentifier) }?.completed(error)
    }
}
