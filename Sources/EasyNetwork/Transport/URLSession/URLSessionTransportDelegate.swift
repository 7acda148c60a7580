import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Leads what a session tells of its tasks to their exchanges.
final class URLSessionTransportDelegate: NSObject, URLSessionDataDelegate {
    /// Where the session tells it, one thing after the other.
    let queue: OperationQueue = {
        let queue = OperationQueue()
        queue.name = "EasyNetwork.URLSessionTransport"
        queue.maxConcurrentOperationCount = 1
        return queue
    }()

    private let exchanges = Locked<[Int: URLSessionExchange]>([:])

    #if canImport(Darwin)
    private let trust: ServerTrust
    private let hook: URLSessionTransport.ChallengeHook?

    init(_ tls: TLSConfiguration, _ hook: URLSessionTransport.ChallengeHook? = nil) {
        trust = ServerTrust(tls)
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
        let asked = AskedChallenge(challenge: challenge, answer: completionHandler)
        // Not here, on the queue of all exchanges: the program decides, and the system may ask others about a certificate.
        WorkQueue.shared.async {
            let (disposition, credential) = self.hook?(asked.challenge) ?? self.judge(asked.challenge)
            let isRefused =
                disposition == .cancelAuthenticationChallenge && asked.challenge.protectionSpace.serverTrust != nil
            self.queue.addOperation {
                guard let exchange = self.exchange(for: task) else {
                    return asked.answer(.cancelAuthenticationChallenge, nil)
                }
                if isRefused {
                    exchange.refuseServer { asked.answer(disposition, credential) }
                } else {
                    exchange.answer { isStopped in
                        if isStopped {
                            asked.answer(.cancelAuthenticationChallenge, nil)
                        } else {
                            asked.answer(disposition, credential)
                        }
                    }
                }
            }
        }
        #else
        // A task whose challenge is answered with default handling never completes here. By now all of the 401 has
        // arrived, and a challenge for anything but credentials does not exist.
        exchange(for: task)?.completedWithChallenge()
        #endif
    }

    #if canImport(Darwin)
    /// A challenge and its handler. Sendable because a session's challenge does not change and its handler may be called
    /// from anywhere, which not every SDK says.
    private struct AskedChallenge: @unchecked Sendable {
        let challenge: URLAuthenticationChallenge
        let answer: (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    }

    private func judge(
        _ challenge: URLAuthenticationChallenge
    ) -> (URLSession.AuthChallengeDisposition, URLCredential?) {
        // Without credentials in the session this means: the system's trust for TLS, and the 401 itself for HTTP.
        guard let serverTrust = challenge.protectionSpace.serverTrust, !trust.isSystems else {
            return (.performDefaultHandling, nil)
        }
        guard trust.trusts(serverTrust) else { return (.cancelAuthenticationChallenge, nil) }
        return (.useCredential, URLCredential(trust: serverTrust))
    }

    func urlSession(
        _ session: URLSession,
        task: URLSessionTask,
        didFinishCollecting metrics: URLSessionTaskMetrics
    ) {
        // Of one task there is one transaction, since it follows no redirect.
        guard let transaction = metrics.transactionMetrics.last else { return }
        exchange(for: task)?.measured(TransportMetrics(transaction))
    }
    #endif

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        exchanges.withLock { $0.removeValue(forKey: task.taskIdentifier) }?.completed(error)
    }
}
