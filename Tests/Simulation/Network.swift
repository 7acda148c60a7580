import EasyNetwork
import Foundation

/// The network of a world: it delays, reorders, loses, cuts and stalls, as the history says.
struct Network: NetworkTransport {
    unowned let world: World
    /// The number of the service that uses it; nil for those of outboxes.
    var client: Int?

    func start(_ request: TransportRequest, events: @escaping Exchange.Events) -> any TransportExchange {
        Exchange(world, request, client, events)
    }
}

final class Exchange: TransportExchange, @unchecked Sendable {
    // Sendable because one thread uses it.
    typealias Events = @Sendable (TransportEvent) -> Void

    private unowned let world: World
    private let request: TransportRequest
    /// Nil when it is over.
    private var events: Events?
    private let message: Message
    private let process: Int
    private let fault: History.Fault.Kind?
    private var lastActivity: Double
    private var (isPaused, isCancelled, isPieceDue) = (false, false, false)
    /// The answer when its head has come, and what is left of its body.
    private var (reply, pieces): (Server.Reply?, ArraySlice<Data>?)
    private var timer: (any ClockTimer)?

    init(_ world: World, _ request: TransportRequest, _ client: Int?, _ events: @escaping Events) {
        (self.world, self.request, self.events) = (world, request, events)
        message = world.newMessage(request, client)
        (fault, lastActivity, process) = (world.fault(of: message), message.sentAt, world.loop.process)
        world.willSend(message)
        watchDeadlines()
        world.after(world.latency()) { self.connect() }
    }

    private var isUnwanted: Bool { events == nil || isCancelled }

    private func connect() {
        let isWanted = !isUnwanted && world.loop.isAlive(process) && request.isWanted?() != false
        guard isWanted else { return end(.cancelled, .connect) }
        if case .refuse = fault { return end(.cannotConnect, .connect) }
        if world.server.isDown(message.host, at: world.loop.now) { return end(.cannotConnect, .connect) }
        if !message.body.isEmpty { tell(.sent(message.body.count)) }
        world.after(world.latency()) { self.arrive() }
    }

    private func arrive() {
        if case .loseRequest = fault { return end(.connectionLost, .firstByte) }
        if case .reject = fault { return end(.connectionLost, .connect) }
        // What has been sent may arrive though nobody waits for the answer any more.
        guard !isUnwanted || world.flip() else { return }
        var reply = world.server.answer(message, at: world.loop.now)
        switch fault {
        // Nothing that can be read: that must not matter to an outbox.
        case .status(200, _) where message.mail == nil: break
        case .status(let status, let seconds):
            reply = world.server.refuse(message, status, reply.delay)
            if let seconds { reply.headers["Retry-After"] = "\(seconds)" }
        case .cutRefusal(let status):
            reply = world.server.refuse(message, status, reply.delay)
            (reply.body, reply.cut) = (Data(repeating: 32, count: 50), (4, false))
            if status == 302 { reply.headers["Location"] = "\(request.url.path)?\(message.redirectedQuery)" }
            if status == 401 { reply.headers["WWW-Authenticate"] = "Bearer" }
        case .cut(let part, _): reply.cut = (part, false)
        case .stallBody(let part): reply.cut = (part, true)
        case .slow(let seconds): reply.delay += seconds
        case .abandon: if let job = message.job { world.after(0) { self.world.perform(.cancel(job)) } }
        default: break
        }
        world.log("\(message.hostName) answers \(message.number) with \(reply.status)")
        world.happens(.message(message.number))
        if case .stall = fault { return }
        world.after(reply.delay + world.latency()) { [self, reply] in
            if case .loseAnswer = fault { end(.connectionLost, .firstByte) } else { answer(reply) }
        }
    }

    private func answer(_ reply: Server.Reply) {
        self.reply = reply
        message.answeredAt = world.loop.now
        if message.hasFailed { message.retryAfter = reply.headers["Retry-After"].flatMap { Double($0) } }
        tell(.head(TransportHead(statusCode: reply.status, headers: reply.headers)))
        let body = message.method == "HEAD" ? Data() : reply.body
        let size = max(1, (body.count + reply.pieceCount - 1) / reply.pieceCount)
        let whole = stride(from: 0, to: body.count, by: size).map { Data(body[$0..<min(body.count, $0 + size)]) }
        pieces = whole.prefix(whole.count * (reply.cut?.part ?? 10) / 10)
        goOn()
    }

    private func goOn() {
        guard events != nil, !isPaused, !isPieceDue, let reply, let pieces else { return }
        isPieceDue = true
        world.after(pieces.isEmpty ? reply.endPause : reply.pace) { self.deliver() }
    }

    private func deliver() {
        isPieceDue = false
        guard events != nil, !isPaused, let reply else { return }
        if let piece = pieces?.popFirst() {
            if (200..<300).contains(reply.status) { world.receives(message) }
            tell(.body(piece))
            goOn()
        } else if reply.cut?.stalls != true {
            end(reply.cut == nil ? nil : .connectionLost, .body)
        }
    }

    func cancel() {
        guard !isUnwanted else { return }
        (isCancelled, message.isCancelled) = (true, true)
        world.after(0) { self.end(.cancelled, .send) }
    }

    func pause() { hold(true) }
    func resume() { if isPaused { hold(false) } }

    private func hold(_ isPaused: Bool) {
        (self.isPaused, lastActivity) = (isPaused, world.loop.now)
        watchDeadlines()
        goOn()
    }

    private func tell(_ event: TransportEvent) {
        guard !isUnwanted else { return }
        lastActivity = world.loop.now
        world.loop.within(process) { events?(event) }
    }

    private func end(_ code: NetworkError.Code?, _ phase: TransportPhase) {
        guard let events = events.take() else { return }
        timer?.cancel()
        var error = code.map { NetworkError(code: $0, message: "simulated") }
        // Its length tells a download that there is more.
        let isTold = if case .cut(_, isNoticed: false) = fault { reply == nil || !message.isOfFile } else { true }
        if !isTold, code == .connectionLost { error = nil }
        error?.phase = reply == nil ? phase : .body
        let end = TransportEnd(error: error, metrics: TransportMetrics(total: world.loop.now - message.sentAt))
        world.loop.within(process) {
            world.ended(message, code, status: reply?.status)
            events(.end(end))
        }
    }

    /// The next deadline, which moves with each byte.
    private var deadline: Double? {
        let limits = request.deadlines
        let idle = isPaused ? nil : limits.idle.map { lastActivity + $0 }
        let firstByte = reply == nil ? limits.firstByte.map { message.sentAt + $0 } : nil
        return [idle, firstByte, limits.total.map { message.sentAt + $0 }].compactMap(\.self).min()
    }

    private func watchDeadlines() {
        timer?.cancel()
        guard events != nil, let deadline else { return }
        timer = world.loop.schedule(after: deadline - world.loop.now) { [weak self] in
            guard let self, events != nil, let deadline = self.deadline else { return }
            if world.loop.now >= deadline { end(.timedOut, .firstByte) } else { watchDeadlines() }
        }
    }
}
