import Dispatch
import EasyNetwork
import Foundation

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The received requests and the counts of a ``MockServer``.
struct ServerState: Sendable {
    var requests: [MockRequest] = []
    /// The descriptors of the open connections by number.
    var connections: [Int: Int32] = [:]
    var faultCount = 0
    /// The number of times that unrequested bytes were sent.
    var unaskedCount = 0
    /// Whether a client can see that the server has ended its connection.
    var hasEnded = false
}

/// The thread that owns the sockets of a ``MockServer`` and waits for their events with poll(2).
///
/// Only this thread uses the descriptors, so no descriptor is closed while it is in use. Other threads send commands
/// through a mailbox and wake the loop with a byte in a pipe. The loop runs no user code.
final class ServerLoop: @unchecked Sendable {
    // Sendable because a lock protects each variable, or only the loop's thread uses it.
    /// The script of a test.
    struct Script: Sendable {
        /// Responds to a request. Called on a concurrent queue.
        var answer: @Sendable (MockRequest) -> MockResponse
        /// Whether there is a fault for the next request. The loop's thread calls this closure and those below, which
        /// run no user code.
        var hasNext: @Sendable () -> Bool
        /// Removes and returns the fault for the next request.
        var next: @Sendable () -> MockResponse.Fault?
        /// Returns whether the body of a request is kept with the request.
        var keepsBody: @Sendable (MockRequest) -> Bool
        /// Returns the fault of the route for a request whose head has been read.
        var route: @Sendable (MockRequest) -> MockResponse.Fault?
    }

    enum Command: Sendable {
        case answer(connection: Int, PreparedAnswer)
        case delayOver(connection: Int)
        case paceTick(connection: Int, count: Int)
        case inputArrived(connection: Int, Data)
        case drainOver(connection: Int)
        case sendUnasked(Data)
    }

    private struct Mailbox: Sendable {
        var commands: [Command] = []
        var isWoken = false
        var isStopping = false
        var isClosed = false
    }

    let port: UInt16
    let state = Watched(ServerState())
    let script: Script
    let workers = DispatchQueue(
        label: "EasyNetworkTesting.MockServer",
        attributes: .concurrent,
        autoreleaseFrequency: .workItem
    )

    private let listener: Int32
    private let pipe: (reading: Int32, writing: Int32)
    private let mailbox = Locked(Mailbox())
    private let finished = DispatchGroup()

    // Only the loop's thread uses these variables.
    var link: NetworkLink
    private var connections: [Int: ServerConnection] = [:]
    private var lastConnection = 0
    private var isOutOfDescriptors = false
    private var buffer = [UInt8](repeating: 0, count: 131_072)

    init(script: Script, conditions: NetworkConditions) throws {
        self.script = script
        link = NetworkLink(conditions)
        pipe = try Socket.makePipe()
        do {
            (listener, port) = try Socket.listen()
        } catch {
            Socket.close(pipe.reading)
            Socket.close(pipe.writing)
            throw error
        }
    }

    func start() {
        finished.enter()
        let thread = Thread { self.run() }
        thread.name = "EasyNetworkTesting.MockServer"
        thread.start()
    }

    /// Closes everything, and returns when that is done. It waits for one round of the loop, which runs no user code.
    func stop() {
        mailbox.withLock { mailbox in
            mailbox.isStopping = true
            wake(&mailbox)
        }
        finished.wait()
    }

    func post(_ command: Command) {
        mailbox.withLock { mailbox in
            guard !mailbox.isClosed else { return }
            mailbox.commands.append(command)
            wake(&mailbox)
        }
    }

    /// Writes while holding the lock that also protects the closing of the pipe. After that, the system could give the
    /// descriptor to another file.
    private func wake(_ mailbox: inout Mailbox) {
        guard !mailbox.isWoken, !mailbox.isClosed else { return }
        mailbox.isWoken = true
        Socket.wake(pipe.writing)
    }

    // MARK: The thread

    private func run() {
        #if canImport(Darwin)
        // Drain a pool in each round. Otherwise, autoreleased objects would stay as long as the thread.
        while autoreleasepool(invoking: turn) {}
        #else
        while turn() {}
        #endif
        for connection in Array(connections.values) { close(connection) }
        Socket.close(listener)
        mailbox.withLock { mailbox in
            mailbox.isClosed = true
            mailbox.commands = []
            Socket.close(pipe.reading)
            Socket.close(pipe.writing)
        }
        finished.leave()
    }

    /// - Returns: `false` if the server must stop.
    private func turn() -> Bool {
        let (commands, isStopping) = mailbox.withLock { mailbox in
            defer {
                mailbox.commands = []
                mailbox.isWoken = false
            }
            return (mailbox.commands, mailbox.isStopping)
        }
        if isStopping { return false }
        for command in commands { perform(command) }
        pollOnce()
        return true
    }

    private func pollOnce() {
        let polled = Array(connections.values)
        var entries = [
            pollfd(fd: pipe.reading, events: Int16(POLLIN), revents: 0),
            // poll ignores a negative descriptor, so the loop accepts no connection while no descriptor is available.
            pollfd(fd: isOutOfDescriptors ? -1 : listener, events: Int16(POLLIN), revents: 0),
        ]
        for connection in polled {
            let events = (connection.wantsInput ? POLLIN : 0) | (connection.wantsOutput ? POLLOUT : 0)
            entries.append(pollfd(fd: connection.descriptor, events: Int16(events), revents: 0))
        }
        // Other parts of the process can free descriptors, so try again after a while.
        let timeout: Int32 = isOutOfDescriptors ? 50 : -1
        isOutOfDescriptors = false
        guard poll(&entries, nfds_t(entries.count), timeout) > 0 else { return }
        if entries[0].revents != 0 { Socket.drain(pipe.reading) }
        if entries[1].revents != 0 { acceptAll() }
        for (connection, entry) in zip(polled, entries.dropFirst(2)) where entry.revents != 0 {
            handle(connection, Int32(entry.revents))
        }
    }

    private func acceptAll() {
        while true {
            switch Socket.accept(listener) {
            case .connection(let descriptor):
                lastConnection += 1
                connections[lastConnection] = ServerConnection(id: lastConnection, descriptor: descriptor)
                state.update { $0.connections[lastConnection] = descriptor }
            case .none: return
            case .exhausted:
                isOutOfDescriptors = true
                return
            }
        }
    }

    private func handle(_ connection: ServerConnection, _ events: Int32) {
        if events & Int32(POLLIN) != 0 && connection.wantsInput { receive(connection) }
        guard connection.isOpen else { return }
        // If nothing more can be sent, Darwin reports a hang-up instead. Then the attempt fails.
        if events & Int32(POLLOUT | POLLHUP) != 0 && connection.wantsOutput { flush(connection) }
        guard connection.isOpen else { return }
        let hasReadAll = events & Int32(POLLIN) == 0 || connection.isInputEnded
        if hasReadAll && connection.isGone(events) { close(connection) }
    }

    private func receive(_ connection: ServerConnection) {
        if case .reading = connection.phase, !connection.hasBegunRequest, script.hasNext(),
            Socket.hasBytes(connection.descriptor), !begin(connection)
        {
            return
        }
        let result = buffer.withUnsafeMutableBytes { buffer in
            Socket.receive(
                connection.descriptor,
                into: UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(link.share))
            )
        }
        switch result {
        case .wouldBlock: return
        case .failed: close(connection)
        case .end:
            connection.isInputEnded = true
            inputEnded(connection)
        case .count(let count):
            switch connection.phase {
            case .stalled, .draining, .halfOpen: return
            case .reading, .answering, .delayed, .writing: take(count, on: connection)
            }
        }
    }

    /// Passes the bytes in the buffer to the parser: at once or, over a slow link, when they arrive.
    private func take(_ count: Int, on connection: ServerConnection) {
        let wait = link.wait(for: count, .up, now: SystemClock().now)
        guard wait > 0 else {
            buffer.withUnsafeBytes { connection.parser.append($0[..<count]) }
            return readOn(connection)
        }
        let (id, bytes) = (connection.id, Data(buffer[..<count]))
        connection.inputTimer = SystemClock().schedule(after: wait) { [weak self] in
            self?.post(.inputArrived(connection: id, bytes))
        }
    }

    /// The connections between two requests, or before the first one.
    var idleConnections: [ServerConnection] {
        connections.values.filter { connection in
            if case .reading = connection.phase { !connection.hasBegunRequest } else { false }
        }
    }

    func connection(_ id: Int) -> ServerConnection? {
        connections[id]
    }

    /// Closes and removes the connection.
    func close(_ connection: ServerConnection, reset: Bool = false) {
        guard connection.isOpen else { return }
        connection.isOpen = false
        switch connection.phase {
        case .delayed(_, let timer), .draining(let timer): timer.cancel()
        default: break
        }
        connection.paceTimer?.cancel()
        connection.inputTimer?.cancel()
        if reset {
            Socket.reset(connection.descriptor)
        } else {
            Socket.close(connection.descriptor)
        }
        connections[connection.id] = nil
        state.update { $0.connections[connection.id] = nil }
    }

    /// The open descriptors, for tests.
    var descriptors: [Int32] { [listener, pipe.reading, pipe.writing] + state.value.connections.values }
}
