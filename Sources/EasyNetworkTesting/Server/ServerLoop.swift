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

/// What a ``MockServer`` has received, and how it stands.
struct ServerState: Sendable {
    var requests: [MockRequest] = []
    /// The descriptors of the open connections by number.
    var connections: [Int: Int32] = [:]
    var faultCount = 0
    /// How often bytes were sent that nobody had asked for.
    var unaskedCount = 0
}

/// The thread that owns the sockets of a ``MockServer``, and waits for them with poll(2).
///
/// Nobody else touches a descriptor, so none can be closed while it is used. The others talk to it through a mailbox; a
/// byte through a pipe wakes it. No code of the user's runs on it.
final class ServerLoop: @unchecked Sendable {
    // Sendable because what is not a constant or behind a lock is touched on the loop's thread only.
    /// What the tests have scripted.
    struct Script: Sendable {
        /// Answers a request; called on a concurrent queue.
        var answer: @Sendable (MockRequest) -> MockResponse
        /// Whether a request that begins meets a fault. This and those below run no code of the user's, and are called on
        /// the loop's thread.
        var hasNext: @Sendable () -> Bool
        /// Takes the fault of a request that begins.
        var next: @Sendable () -> MockResponse.Fault?
        /// The fault of the route for a request, of which the head is known.
        var route: @Sendable (MockRequest) -> MockResponse.Fault?
    }

    enum Command: Sendable {
        case answer(connection: Int, PreparedAnswer)
        case delayOver(connection: Int)
        case paceTick(connection: Int)
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
    let workers = DispatchQueue(label: "EasyNetworkTesting.MockServer", attributes: .concurrent)

    private let listener: Int32
    private let pipe: (reading: Int32, writing: Int32)
    private let mailbox = Locked(Mailbox())
    private let finished = DispatchGroup()

    // Of the loop's thread.
    private var connections: [Int: ServerConnection] = [:]
    private var lastConnection = 0
    private var isOutOfDescriptors = false
    private var buffer = [UInt8](repeating: 0, count: 131_072)

    init(script: Script) throws {
        self.script = script
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

    /// Closes everything, and returns when that is done. The wait is for one round of the loop, which runs no code of
    /// the user's.
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

    /// Under the lock, as is the closing of the pipe: a byte must not go to a descriptor that is another's by then.
    private func wake(_ mailbox: inout Mailbox) {
        guard !mailbox.isWoken, !mailbox.isClosed else { return }
        mailbox.isWoken = true
        Socket.wake(pipe.writing)
    }

    // MARK: The thread

    private func run() {
        while true {
            let (commands, isStopping) = mailbox.withLock { mailbox in
                defer {
                    mailbox.commands = []
                    mailbox.isWoken = false
                }
                return (mailbox.commands, mailbox.isStopping)
            }
            if isStopping { break }
            for command in commands { perform(command) }
            pollOnce()
        }
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

    private func pollOnce() {
        let polled = Array(connections.values)
        var entries = [
            pollfd(fd: pipe.reading, events: Int16(POLLIN), revents: 0),
            // A negative descriptor is passed over: no accepting as long as there is no descriptor for it.
            pollfd(fd: isOutOfDescriptors ? -1 : listener, events: Int16(POLLIN), revents: 0),
        ]
        for connection in polled {
            let events = (connection.wantsInput ? POLLIN : 0) | (connection.wantsOutput ? POLLOUT : 0)
            entries.append(pollfd(fd: connection.descriptor, events: Int16(events), revents: 0))
        }
        // Descriptors come free elsewhere in the process too, so it is tried again after a while.
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
        if events & Int32(POLLOUT) != 0 { flush(connection) }
        guard connection.isOpen else { return }
        // Both directions are gone: what was to be read has been.
        let isGone = events & Int32(POLLHUP | POLLERR | POLLNVAL) != 0
        if isGone && (events & Int32(POLLIN) == 0 || connection.isInputEnded) { close(connection) }
    }

    private func receive(_ connection: ServerConnection) {
        if case .reading = connection.phase, !connection.hasBegunRequest, script.hasNext(),
            Socket.hasBytes(connection.descriptor), !begin(connection)
        {
            return
        }
        let result = buffer.withUnsafeMutableBytes { Socket.receive(connection.descriptor, into: $0) }
        switch result {
        case .wouldBlock: return
        case .failed: close(connection)
        case .end:
            connection.isInputEnded = true
            inputEnded(connection)
        case .count(let count):
            switch connection.phase {
            case .stalled, .draining, .halfOpen: return
            case .reading, .answering, .delayed, .writing:
                buffer.withUnsafeBytes { connection.parser.append($0[..<count]) }
                readOn(connection)
            }
        }
    }

    /// Those between two requests, or before the first.
    var idleConnections: [ServerConnection] {
        connections.values.filter { connection in
            if case .reading = connection.phase { !connection.hasBegunRequest } else { false }
        }
    }

    func connection(_ id: Int) -> ServerConnection? {
        connections[id]
    }

    /// Closes the connection and forgets it.
    func close(_ connection: ServerConnection, reset: Bool = false) {
        guard connection.isOpen else { return }
        connection.isOpen = false
        switch connection.phase {
        case .delayed(_, let timer), .draining(let timer): timer.cancel()
        default: break
        }
        connection.paceTimer?.cancel()
        if reset {
            Socket.reset(connection.descriptor)
        } else {
            Socket.close(connection.descriptor)
        }
        connections[connection.id] = nil
        state.update { $0.connections[connection.id] = nil }
    }

    /// Every open descriptor, for a test that none is left over.
    var descriptors: [Int32] { [listener, pipe.reading, pipe.writing] + state.value.connections.values }
}
