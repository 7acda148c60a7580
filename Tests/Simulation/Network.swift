import EasyNetwork
import Foundation

/// The network of a world: it delays, reorders, loses, cuts and stalls, as the history says.
struct Network: NetworkTransport {
    unowned let world: World

    func start(
        _ request: TransportRequest,
        events: @escaping @Sendable (TransportEvent) -> Void
    ) -> any TransportExchange {
        let exchange = Exchange(world, request, events)
        exchange.begin()
        return exchange
    }
}

/// A message under way.
final class Exchange: TransportExchange, @unchecked Sendable {
    // Sendable because one thread uses it.
    private unowned let world: World
    private let request: TransportRequest
    private var events: (@Sendable (TransportEvent) -> Void)?
    let message: Message
    private let begun: Double
    private let process: Int
    private var lastActivity: Double
    private var hasHead = false
    private var isPaused = false
    private var isCancelled = false
    /// What is left of the body, and how it ends.
    private var rest: (pieces: ArraySlice<Data>, pace: Double, ending: Ending)?
    private var isPieceDue = false
    private var isFile = false
    private var status: Int?
    private var fault: History.Fault.Kind?
    private var timer: (any ClockTimer)?

    private enum Ending { case whole, lost, silence }

    init(_ world: World, _ request: TransportRequest, _ events: @escaping @Sendable (TransportEvent) -> Void) {
        (self.world, self.request, self.events) = (world, request, events)
        message = world.newMessage(request)
        fault = world.fault(of: message)
        (begun, lastActivity, process) = (world.loop.now, world.loop.now, world.loop.process)
    }

    private var isOver: Bool { events == nil }

    func begin() {
        world.willSend(message)
        watchDeadlines()
        world.after(world.latency()) { self.connect() }
    }

    private func connect() {
        guard !isOver, !isCancelled else { return end(.cancelled, .connect) }
        guard world.loop.isAlive(process), request.isWanted?() != false else { return end(.cancelled, .connect) }
        if case .refuse = fault { return end(.cannotConnect, .connect) }
        if world.server.isDown(message.host, at: world.loop.now) { return end(.cannotConnect, .connect) }
        if !message.body.isEmpty { tell(.sent(message.body.count)) }
        switch fault {
        case .loseRequest: world.after(world.latency()) { self.end(.connectionLost, .firstByte) }
        case .reject: world.after(world.latency()) { self.end(.connectionLost, .connect) }
        default: world.after(world.latency()) { self.arrive() }
        }
    }

    private func arrive() {
        // What has been sent may arrive though nobody waits for the answer any more.
        guard !isOver && !isCancelled || world.flip() else { return }
        var reply = world.server.answer(message, at: world.loop.now)
        switch fault {
        case .status(let status, let seconds):
            // The server does not say whether it has acted.
            reply = Server.Reply(status: status, body: Data("{}".utf8), delay: reply.delay)
            if let seconds { reply.headers["Retry-After"] = "\(seconds)" }
            world.server.amend(message, status, hasActed: status >= 500 || [408, 429].contains(status))
        case .cutRefusal(let status):
            reply = Server.Reply(status: status, body: Data(repeating: 32, count: 50), delay: reply.delay, cut: 4)
            if status == 302 { reply.headers["Location"] = "\(request.url.path)?\(message.redirectedQuery)" }
            if status == 401 { reply.headers["WWW-Authenticate"] = "Bearer" }
            world.server.amend(message, status, hasActed: false)
        case .cut(let part): reply.cut = part
        case .stallBody: (reply.cut, reply.stalls) = (5, true)
        case .slow(let seconds): reply.delay += seconds
        case .abandon: if let job = message.job { world.after(0) { self.world.perform(.cancel(job)) } }
        default: break
        }
        world.log("\(message.hostName) answers \(message.number) with \(reply.status)")
        world.happens(.message(message.number))
        switch fault {
        case .stall: return
        case .loseAnswer: world.after(reply.delay + world.latency()) { self.end(.connectionLost, .firstByte) }
        default:
            let answer = reply
            world.after(answer.delay + world.latency()) { self.answer(answer) }
        }
    }

    private func answer(_ reply: Server.Reply) {
        (hasHead, isFile, status) = (true, (200..<300).contains(reply.status), reply.status)
        if [429, 503].contains(reply.status) {
            message.retryAfter = reply.headers["Retry-After"].flatMap { Double($0) }
        }
        tell(.head(TransportHead(statusCode: reply.status, headers: reply.headers)))
        let body = message.method == "HEAD" ? Data() : reply.body
        let count = max(1, min(reply.pieceCount, body.count))
        let size = (body.count + count - 1) / count
        var pieces = stride(from: 0, to: body.count, by: max(1, size)).map { start in
            Data(body[start..<min(body.count, start + size)])
        }
        if let part = reply.cut { pieces = Array(pieces.prefix(pieces.count * part / 10)) }
        rest = (pieces[...], reply.pace, reply.cut == nil ? .whole : reply.stalls ? .silence : .lost)
        goOn()
    }

    /// Delivers the next piece when it is there.
    private func goOn() {
        guard !isOver, !isPaused, !isPieceDue, let rest else { return }
        isPieceDue = true
        world.after(rest.pieces.isEmpty ? 0 : rest.pace) { self.deliver() }
    }

    private func deliver() {
        isPieceDue = false
        guard !isOver, !isPaused, var rest else { return }
        guard let piece = rest.pieces.popFirst() else {
            switch rest.ending {
            case .whole: end(nil, .body)
            case .lost: end(.connectionLost, .body)
            case .silence: break
            }
            return
        }
        self.rest = rest
        if isFile { world.receives(message) }
        tell(.body(piece))
        goOn()
    }

    func cancel() {
        guard !isOver, !isCancelled else { return }
        isCancelled = true
        world.after(0) { self.end(.cancelled, .send) }
    }

    func pause() {
        isPaused = true
        lastActivity = world.loop.now
        watchDeadlines()
    }

    func resume() {
        guard isPaused else { return }
        isPaused = false
        lastActivity = world.loop.now
        watchDeadlines()
        goOn()
    }

    private func tell(_ event: TransportEvent) {
        guard !isOver, !isCancelled else { return }
        lastActivity = world.loop.now
        world.loop.within(process) { events?(event) }
    }

    private func end(_ code: NetworkError.Code?, _ phase: TransportPhase) {
        guard let events = events.take() else { return }
        timer?.cancel()
        var error = code.map { NetworkError(code: $0, message: "simulated") }
        error?.phase = hasHead ? .body : phase
        world.loop.within(process) { world.ended(message, code, status: status) }
        let end = TransportEnd(error: error, metrics: TransportMetrics(total: world.loop.now - begun))
        world.loop.within(process) { events(.end(end)) }
    }

    /// The next deadline, which moves with each byte.
    private var deadline: Double? {
        let limits = request.deadlines
        let idle = isPaused ? nil : limits.idle.map { lastActivity + $0 }
        let firstByte = hasHead ? nil : limits.firstByte.map { begun + $0 }
        return [idle, firstByte, limits.total.map { begun + $0 }].compactMap(\.self).min()
    }

    private func watchDeadlines() {
        timer?.cancel()
        guard !isOver, let deadline else { return }
        timer = world.loop.schedule(after: deadline - world.loop.now) { [weak self] in
            guard let self, !isOver, let deadline = self.deadline else { return }
            if world.loop.now >= deadline { end(.timedOut, .firstByte) } else { watchDeadlines() }
        }
    }
}
