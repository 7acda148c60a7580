import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import EasyNetworkOutbox
@testable import TestSupport

/// The table of failures in the article "Jobs that survive", row by row. The rows of entries that depend on others, are
/// too old or are damaged are in ``OutboxTests``, that of a full disk in ``OutboxFaultTests``.
@Suite("The failures of an outbox", .timeLimit(.minutes(10)))
struct OutboxFailureTests {
    /// A request with a mistake.
    private struct Odd: APIRequest, Codable {
        enum Mistake: String, Codable {
            case unmappable, codeOfProgram, noURL, bodyForOnce
        }

        let mistake: Mistake
        var api: String { mistake == .noURL ? "http://a b:c" : "odd" }
        var method: NetworkService.Method { .post }
        var retry: RetryPolicy? { .never }
        var body: RequestBody? {
            guard mistake == .bodyForOnce else { return nil }
            let bytes = Data("once".utf8)
            return .stream(
                TransportBodyStream(length: bytes.count, isReplayable: false) { InputStream(data: bytes) }
            )
        }

        func item(from response: NetworkResponse) throws {
            switch mistake {
            case .unmappable: throw CocoaError(.coderInvalidValue)
            case .codeOfProgram: throw NetworkError(code: NetworkError.Code(rawValue: 10_000))
            case .noURL, .bodyForOnce: break
            }
        }
    }

    /// Has every request sent again.
    private struct Again: RequestInterceptor {
        func didReceive(
            _ result: Result<NetworkResponse, NetworkError>,
            context: AttemptContext
        ) async -> ResponseDecision {
            .sendAgain(after: 0)
        }
    }

    /// The end of the first try.
    private enum Fate: Equatable {
        case again(NetworkError.Code)
        case dead(NetworkError.Code)
        case delivered
    }

    private func fate(of id: UUID, in outbox: Outbox, _ events: AsyncStream<OutboxEvent>) async throws -> Fate? {
        for await event in events {
            let fate: Fate
            switch event {
            case .failed(id, let error, _): fate = .again(error.code)
            case .died(id, let error): fate = .dead(error.code)
            case .delivered(id): fate = .delivered
            default: continue
            }
            let left = try await outbox.drain(deadline: 0).map(\.id)
            let dead = try outbox.deadLetters
            if case .again = fate { expect(left, equals: [id]) } else { expect(left.isEmpty) }
            if case .dead(let code) = fate {
                expect(dead.map(\.id) == [id] && dead.first?.error?.code == code)
            } else {
                expect(dead.isEmpty)
            }
            return fate
        }
        return nil
    }

    /// Sends one request.
    private func fate(
        of request: some APIRequest & Codable = OutboxMessage(text: "a"),
        _ transport: (any NetworkTransport)? = nil,
        _ change: (inout HostSettings) -> Void = { _ in }
    ) async throws -> Fate? {
        let fixture = OutboxFixture()
        let outbox = try fixture.outbox {
            if let transport { $0.transport = transport }
            change(&$0)
        }
        outbox.register(Odd.self, name: "odd")
        let events = outbox.events
        let id = try outbox.add(request)
        try outbox.start()
        return try await fate(of: id, in: outbox, events)
    }

    @Test(
        "BEY-13: no network, a lost connection, a deadline, TLS, an answer that is not HTTP: again",
        arguments: [
            (NetworkError.Code.notConnected, TransportPhase.connect), (.cannotConnect, .resolve), (.tls, .tls),
            (.timedOut, .firstByte), (.badServerResponse, .firstByte), (.connectionLost, .body),
        ]
    )
    func transport(code: NetworkError.Code, phase: TransportPhase) async throws {
        try await expect(fate(ScriptedTransport { _, _ in .failure(code, phase) }), equals: .again(code))
    }

    @Test(
        "BEY-13: the status 408, 425, 429, 500 and above: again",
        arguments: [408, 425, 429, 500, 501, 503, 507, 599]
    )
    func statusAgain(status: Int) async throws {
        try await expect(fate(ScriptedTransport { _, _ in .answer(status) }), equals: .again(.unacceptableStatus))
    }

    @Test("BEY-13: another status: a dead letter", arguments: [304, 400, 403, 404, 405, 409, 410, 413, 422, 451, 499])
    func statusDead(status: Int) async throws {
        try await expect(fate(ScriptedTransport { _, _ in .answer(status) }), equals: .dead(.unacceptableStatus))
    }

    @Test("BEY-13: the status 401, or an authenticator without a valid credential: again", arguments: [false, true])
    func unauthorized(refreshes: Bool) async throws {
        let tokens = TestTokens { _ in throw NetworkError(code: .connectionLost) }
        let fate = try await fate(ScriptedTransport { _, _ in .answer(401) }) { host in
            if refreshes { host.authentication = AuthenticationSession(tokens, credential: "old") }
        }
        expect(fate, equals: .again(.unauthorized))
    }

    @Test("BEY-13: a cancel by the queue, and a queue that takes no jobs: again", arguments: [false, true])
    func queue(isDrained: Bool) async throws {
        let fixture = OutboxFixture()
        let queue = NetworkQueue()
        let outbox = try fixture.outbox(queue: queue)
        let events = outbox.events
        if isDrained { _ = await queue.shutDown(deadline: 0) } else { queue.isSuspended = true }
        let id = try outbox.add(OutboxMessage(text: "a"))
        try outbox.start()
        if !isDrained {
            await expect(eventually { queue.operationCount == 1 })
            queue.cancelAllOperations()
        }
        try await expect(fate(of: id, in: outbox, events), equals: .again(isDrained ? .refused : .cancelled))
        expect(fixture.texts.isEmpty)
    }

    @Test("BEY-13: an answer that the request cannot map was accepted: delivered; a code of the program: a dead letter")
    func mapping() async throws {
        let transport = ScriptedTransport { _, _ in .answer(200, body: "a") }
        try await expect(fate(of: Odd(mistake: .unmappable), transport), equals: .delivered)
        let code = NetworkError.Code(rawValue: 10_000)
        try await expect(fate(of: Odd(mistake: .codeOfProgram), transport), equals: .dead(code))
    }

    @Test("BEY-13: too many redirects, a body that is too long or can be sent only once: a dead letter")
    func bodies() async throws {
        let circle = ScriptedTransport { _, _ in .answer(307, ["Location": "/odd"]) }
        try await expect(fate(circle), equals: .dead(.redirectFailed))
        let long = ScriptedTransport { _, _ in .failure(.bodyTooLong, .body) }
        try await expect(fate(long), equals: .dead(.bodyTooLong))
        let fine = ScriptedTransport { _, _ in .answer(200) }
        let once = try await fate(of: Odd(mistake: .bodyForOnce), fine) { $0.interceptors = [Again()] }
        expect(once, equals: .dead(.cannotSendAgain))
    }

    @Test("BEY-13: a request that cannot be built, and an error of migrate: a dead letter")
    func building() async throws {
        try await expect(fate(of: Odd(mistake: .noURL)), equals: .dead(.invalidRequest))
        let fixture = OutboxFixture()
        let id = try fixture.outbox().add(OutboxMessage(text: "a"))
        let outbox = try fixture.outbox()
        outbox.register(OutboxMessage.self, name: "message", version: 2) { _, _ in throw CocoaError(.coderReadCorrupt) }
        let events = outbox.events
        try outbox.start()
        try await expect(fate(of: id, in: outbox, events), equals: .dead(.invalidRequest))
        expect(fixture.texts.isEmpty)
    }
}
