#if os(Linux) && canImport(CCurl)
internal import CCurl
import Foundation

/// The queue between other threads and the loop's thread, which a ``CurlWorker`` runs.
///
/// The thread begins with the first exchange and ends after ``stop()``, or if the system cannot let it wait. It keeps
/// the loop, never the transport.
final class CurlLoop: Sendable {
    private struct Inbox {
        /// Exchanges that were started, cancelled, paused or resumed, or whose body has bytes again.
        var exchanges: [CurlExchange] = []
        /// Nil before the first exchange, and once the thread is about to free it.
        var multi: UnsafeMutableRawPointer?
        var isStopping = false
        var isTimerDue = false
        /// Whether the thread waits, or is about to, and has to be woken.
        var isWaiting = false

        /// Called under the lock: the thread frees the handle once it is out of the inbox. It only writes one byte.
        mutating func wake() {
            if isWaiting, let multi { ccurl_multi_wakeup(multi) }
            isWaiting = false
        }
    }

    let configuration: TransportConfiguration
    let clock: any NetworkClock
    private let inbox = Locked(Inbox())

    init(_ configuration: TransportConfiguration, clock: any NetworkClock) {
        self.configuration = configuration
        self.clock = clock
    }

    /// Has the thread look at an exchange.
    ///
    /// - Returns: false if there is no thread: none can be made, or the exchange is over.
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

    /// Tells the thread that the timer of its deadlines has fired.
    func timerFired() {
        inbox.withLock { inbox in
            inbox.isTimerDue = true
            inbox.wake()
        }
    }

    /// Ends every exchange and then the thread, without waiting for it.
    func stop() {
        inbox.withLock { inbox in
            inbox.isStopping = true
            inbox.wake()
        }
    }

    // MARK: - For the thread

    /// Whether nothing has come in, so that the thread may wait. From now on it is woken.
    func mayWait() -> Bool {
        inbox.withLock { inbox in
            inbox.isWaiting = inbox.exchanges.isEmpty && !inbox.isStopping && !inbox.isTimerDue
            return inbox.isWaiting
        }
    }

    /// Takes what has come in. After the last time nothing more comes in.
    func take() -> (exchanges: [CurlExchange], isTimerDue: Bool, isLast: Bool) {
        inbox.withLock { inbox in
            defer { inbox.isTimerDue = false }
            inbox.isWaiting = false
            if inbox.isStopping { inbox.multi = nil }
            return (inbox.exchanges.take(), inbox.isTimerDue, inbox.isStopping)
        }
    }

    /// Takes what has come in, for a thread that cannot go on. The next exchange begins another thread.
    func close() -> [CurlExchange] {
        inbox.withLock { inbox in
            inbox.multi = nil
            inbox.isWaiting = false
            return inbox.exchanges.take()
        }
    }

    /// Whether several exchanges over HTTP/2 share a connection. Before libcurl 8.1 they must not: libcurl would keep
    /// everything that comes for a paused one in memory, without bound. Before 8.3 it does not report which of them a
    /// server has refused.
    static let multiplexes = CurlLibrary.version >= 0x08_03_00

    private func begin() -> UnsafeMutableRawPointer? {
        guard CurlLibrary.problem == nil, let multi = ccurl_multi_init() else { return nil }
        // Without free descriptors the handle works but cannot be woken.
        guard ccurl_multi_wakeup(multi) == CCURLM_OK, startThread(multi) else {
            ccurl_multi_cleanup(multi)
            return nil
        }
        return multi
    }

    /// Uses pthreads: `Thread` does not report that the system has none left.
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
    // A TLS library that writes to a closed connection would otherwise end the process.
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, SIGPIPE)
    pthread_sigmask(SIG_BLOCK, &signals, nil)
    // Retained for this thread when it was started.
    if let worker { Unmanaged<CurlWorker>.fromOpaque(worker).takeRetainedValue().run() }
    return nil
}
#endif
