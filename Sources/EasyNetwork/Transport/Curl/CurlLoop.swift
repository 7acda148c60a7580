#if os(Linux) && canImport(CCurl)
internal import CCurl
import Foundation

/// The queue between other threads and the loop's thread, which a ``CurlWorker`` runs.
///
/// The thread begins with the first exchange. It ends after ``stop()``, or if the system cannot make it wait. The
/// thread retains the loop, but never the transport.
final class CurlLoop: Sendable {
    private struct Inbox {
        /// Exchanges that were started, cancelled, paused or resumed, or whose body has bytes again.
        var exchanges: [CurlExchange] = []
        /// The multi handle; nil before the first exchange, and after the thread has begun to free it.
        var multi: UnsafeMutableRawPointer?
        var isStopping = false
        var isTimerDue = false
        /// Whether the thread waits, or is about to wait, and must be woken.
        var isWaiting = false

        /// Wakes the thread. This is called under the lock, because the thread frees the handle after removing it from
        /// the inbox. libcurl only writes one byte.
        mutating func wake() {
            if isWaiting, let multi { ccurl_multi_wakeup(multi) }
            isWaiting = false
        }
    }

    let configuration: TransportConfiguration
    let clock: any NetworkClock
    private let inbox = Locked(Inbox())
    /// The target of an exchange that the thread has not received yet.
    let noTarget = CurlTarget(address: "")

    init(_ configuration: TransportConfiguration, clock: any NetworkClock) {
        self.configuration = configuration
        self.clock = clock
    }

    /// Makes the thread attend to an exchange.
    ///
    /// - Returns: False if there is no thread, because none can be created or the exchange has ended.
    @discardableResult
    func post(_ exchange: CurlExchange, isStart: Bool = false) -> Bool {
        inbox.withLock { inbox in
            if inbox.multi == nil {
                guard isStart, !inbox.isStopping, let multi = begin() else { return false }
                inbox.multi = multi
            }
            inbox.exchanges.append(exchange)
            inbox.wake()
            return true
        }
    }

    /// Notifies the thread that the timer of its deadlines has fired.
    func timerFired() {
        inbox.withLock { inbox in
            inbox.isTimerDue = true
            inbox.wake()
        }
    }

    /// Ends every exchange, then the thread. The method does not wait for the thread.
    func stop() {
        inbox.withLock { inbox in
            inbox.isStopping = true
            inbox.wake()
        }
    }

    // MARK: - For the thread

    /// Returns whether nothing has arrived, so that the thread can wait. From now on, arrivals wake the thread.
    func mayWait() -> Bool {
        inbox.withLock { inbox in
            inbox.isWaiting = inbox.exchanges.isEmpty && !inbox.isStopping && !inbox.isTimerDue
            return inbox.isWaiting
        }
    }

    /// Takes everything that has arrived. After the last time, nothing more arrives for this thread.
    ///
    /// - Parameters:
    ///   - exchanges: An empty array, whose storage is used for the next arrivals.
    ///   - isLast: Whether the thread cannot continue. The next exchange then begins another thread.
    func take(into exchanges: inout [CurlExchange], isLast: Bool = false) -> (isTimerDue: Bool, isLast: Bool) {
        inbox.withLock { inbox in
            defer { inbox.isTimerDue = false }
            inbox.isWaiting = false
            let isLast = isLast || inbox.isStopping
            if isLast { inbox.multi = nil }
            swap(&inbox.exchanges, &exchanges)
            return (inbox.isTimerDue, isLast)
        }
    }

    /// Whether several exchanges over HTTP/2 share a connection. Before libcurl 8.1 they must not, because libcurl
    /// would buffer everything that arrives for a paused exchange, without a limit. Before 8.3, libcurl does not report
    /// which of the exchanges a server has rejected.
    static let multiplexes = CurlLibrary.version >= 0x08_03_00

    private func begin() -> UnsafeMutableRawPointer? {
        guard CurlLibrary.problem == nil, let multi = ccurl_multi_init() else { return nil }
        // Without free descriptors, the handle works but cannot be woken.
        guard ccurl_multi_wakeup(multi) == CCURLM_OK, startThread(multi) else {
            ccurl_multi_cleanup(multi)
            return nil
        }
        return multi
    }

    /// Starts a thread. It uses pthreads, because `Thread` does not report that the system has no thread left.
    private func startThread(_ multi: UnsafeMutableRawPointer) -> Bool {
        let worker = Unmanaged.passRetained(CurlWorker(self, multi: multi))
        var thread = pthread_t()
        let result = pthread_create(&thread, nil, runLoop, worker.toOpaque())
        guard result == 0 else {
            worker.release()
            return false
        }
        pthread_detach(thread)
        return true
    }
}

private func runLoop(_ worker: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    // Without this mask, a TLS library that writes to a closed connection would terminate the process.
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, SIGPIPE)
    pthread_sigmask(SIG_BLOCK, &signals, nil)
    // The worker was retained for this thread when the thread was started.
    if let worker { Unmanaged<CurlWorker>.fromOpaque(worker).takeRetainedValue().run() }
    return nil
}
#endif
