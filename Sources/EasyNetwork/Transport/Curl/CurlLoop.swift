#if os(Linux) && canImport(CCurl)
internal import CCurl
import Foundation

/// The door to a loop's thread: what is put in here from any thread, the thread does.
///
/// The thread begins with the first exchange and ends after ``stop()``, or when the system lets it wait no longer. It keeps the loop, never the transport.
final class CurlLoop: Sendable {
    enum Command: Sendable {
        case start(CurlStart)
        case cancel(CurlExchange)
        case pauseOrResume(CurlExchange)
        /// The body of the request has bytes again.
        case resumeSending(CurlExchange)
        /// The clock has reached a deadline.
        case look
    }

    /// What there is to do.
    struct Work {
        var commands: [Command]
        /// Afterwards the door is closed, and nothing more comes in.
        var isLast: Bool
    }

    private struct Inbox {
        var commands: [Command] = []
        /// Nil before the first exchange, and once the thread is about to free it.
        var multi: UnsafeMutableRawPointer?
        var isStopping = false
        /// Whether the thread waits, or is about to, and has to be woken.
        var isWaiting = false
    }

    let configuration: TransportConfiguration
    let clock: any NetworkClock
    private let inbox = Locked(Inbox())

    init(_ configuration: TransportConfiguration, clock: any NetworkClock) {
        self.configuration = configuration
        self.clock = clock
    }

    /// - Returns: false when there is no thread and none can be made.
    @discardableResult
    func post(_ command: Command) -> Bool {
        inbox.withLock { inbox in
            if inbox.multi == nil {
                // Whatever is no start belongs to exchanges that are over.
                guard case .start = command, !inbox.isStopping else { return false }
                guard let multi = begin() else { return false }
                inbox.multi = multi
            }
            inbox.commands.append(command)
            // Under the lock, since the thread frees the handle once it is out of the inbox; it writes one byte.
            if inbox.isWaiting { ccurl_multi_wakeup(inbox.multi) }
            inbox.isWaiting = false
            return true
        }
    }

    /// Ends every exchange and then the thread; does not wait for it.
    func stop() {
        inbox.withLock { inbox in
            inbox.isStopping = true
            if let multi = inbox.multi { ccurl_multi_wakeup(multi) }
        }
    }

    /// For the thread: whether nothing has come in, so that it may wait; it is woken from now on.
    func mayWait() -> Bool {
        inbox.withLock { inbox in
            inbox.isWaiting = inbox.commands.isEmpty && !inbox.isStopping
            return inbox.isWaiting
        }
    }

    /// For the thread: what has come in since it asked last.
    func take() -> Work {
        inbox.withLock { inbox in
            inbox.isWaiting = false
            if inbox.isStopping { inbox.multi = nil }
            return Work(commands: inbox.commands.take(), isLast: inbox.isStopping)
        }
    }

    /// For the thread, which cannot go on: the next exchange begins another.
    ///
    /// - Returns: what had come in.
    func close() -> [Command] {
        inbox.withLock { inbox in
            inbox.multi = nil
            return inbox.commands.take()
        }
    }

    /// Whether several exchanges over HTTP/2 share a connection. Not before libcurl 8.1: there, what comes for one that is
    /// paused while the others are read is kept in memory, without bound.
    static let multiplexes = CurlLibrary.version >= 0x08_01_00

    private func begin() -> UnsafeMutableRawPointer? {
        guard CurlLibrary.problem == nil, let multi = ccurl_multi_init() else { return nil }
        // Without descriptors for it the handle works, but cannot be woken.
        guard ccurl_multi_wakeup(multi) == CCURLM_OK, startThread(multi) else {
            ccurl_multi_cleanup(multi)
            return nil
        }
        return multi
    }

    /// With pthreads, as `Thread` does not tell when the system has none left.
    private func startThread(_ multi: UnsafeMutableRawPointer) -> Bool {
        let start = Unmanaged.passRetained(ThreadStart(loop: self, multi: multi))
        var thread = pthread_t()
        let result = pthread_create(&thread, nil, runLoop, start.toOpaque())
        guard result == 0 else {
            start.release()
            return false
        }
        pthread_detach(thread)
        return true
    }
}

/// What a new thread is given.
private final class ThreadStart {
    let loop: CurlLoop
    let multi: UnsafeMutableRawPointer

    init(loop: CurlLoop, multi: UnsafeMutableRawPointer) {
        self.loop = loop
        self.multi = multi
    }
}

private func runLoop(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    guard let argument else { return nil }
    // Retained for this thread when it was started.
    let start = Unmanaged<ThreadStart>.fromOpaque(argument).takeRetainedValue()
    // A TLS library that writes to a closed connection would end the process with it.
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, SIGPIPE)
    pthread_sigmask(SIG_BLOCK, &signals, nil)
    CurlWorker(start.loop, multi: start.multi).run()
    return nil
}
#endif
