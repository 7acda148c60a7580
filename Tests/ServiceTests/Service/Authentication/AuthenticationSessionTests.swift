import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("AuthenticationSession")
struct AuthenticationSessionTests {
    private struct Broken: Error {}

    /// A server that accepts one token.
    private static func server(accepting good: String) -> SessionClient.Server {
        { NetworkResponse(statusCode: $0 == good ? 200 : 401) }
    }

    @Test("CBK-7: a hundred requests whose credential is refused are one refresh, and each is sent twice")
    func oneRefresh() async throws {
        let gate = Gate()
        let asked = Locked<[String?]>([])
        let tokens = TestTokens { old in
            asked.withLock { $0.append(old) }
            await gate.opened()
            return "new"
        }
        let session = AuthenticationSession(tokens, credential: "old", clock: ManualClock())
        let client = SessionClient(session, Self.server(accepting: "new"))
        let jobs = await client.start(100)
        expect(jobs.filter { !$0.isHeld }.isEmpty)
        gate.open()
        for (index, job) in jobs.enumerated() {
            try await expect(job.result.get().statusCode, equals: 200)
            // Only the first request was sent before the refresh began.
            expect(job.sent, equals: (index == 0 ? ["old", "new"] : ["new"]))
        }
        expect(asked.withLock { $0 }, equals: ["old"])
        expect(session.credential, equals: "new")
        await expect(client.start().sent, equals: ["new"])
    }

    @Test(
        "CBK-7: a status 401 and what the authenticator says refuse a credential, each by itself",
        arguments: [401, 200]
    )
    func refused(status: Int) async throws {
        // Looks into the body only, as a server needs that answers 200 with a code of its own.
        let tokens = TestTokens(refreshed: { _ in "new" }, refused: { $0.body == Data("expired".utf8) })
        let session = AuthenticationSession(tokens, credential: "old", clock: ManualClock())
        let client = SessionClient(session) { token in
            if token == "new" { return NetworkResponse(statusCode: 200) }
            return NetworkResponse(statusCode: status, body: Data((status == 401 ? "" : "expired").utf8))
        }
        let job = await client.start()
        try await expect(job.result.get().statusCode, equals: 200)
        expect(session.credential, equals: "new")
    }

    @Test("CBK-7: when the refresh fails all that wait end with the refusal and the cause, and later ones try again")
    func failedRefresh() async throws {
        let gates = [Gate(), Gate()]
        let count = Locked(0)
        let tokens = TestTokens { _ in
            let number = count.next()
            await gates[number - 1].opened()
            if number == 1 { throw Broken() }
            return "new"
        }
        let session = AuthenticationSession(tokens, credential: "old", clock: ManualClock())
        let client = SessionClient(session, Self.server(accepting: "new"))
        let jobs = await client.start(2)
        gates[0].open()
        for (index, job) in jobs.enumerated() {
            let error = await #expect(throws: NetworkError.self) { try await job.result.get() }
            expect(error?.code, equals: .unauthorized)
            expect(error?.underlying is Broken)
            expect(error?.statusCode, equals: (index == 0 ? 401 : nil))
        }
        expect(session.credential, equals: "old")
        let later = await client.start()
        expect(later.isHeld)
        gates[1].open()
        try await expect(later.result.get().statusCode, equals: 200)
    }

    @Test("CBK-7: of a failed refresh the message has the reason only; the rest is underneath")
    func reason() async throws {
        let url = try #require(URL(string: "https://h/token"))
        let refusal = NetworkError(
            code: .unacceptableStatus,
            statusCode: 400,
            serverMessage: "The grant is old.",
            request: .init(method: "POST", url: url)
        )
        for (cause, words) in [
            (refusal, "The grant is old"), (NetworkError(code: .timedOut, message: "too late"), "too late"),
            (NetworkError(code: .cancelled), "Cancelled"), (Broken(), "Broken()"),
        ] as [(any Error, String)] {
            let session = AuthenticationSession(
                TestTokens { _ in throw cause },
                credential: "old",
                clock: ManualClock()
            )
            let job = await SessionClient(session, Self.server(accepting: "new")).start()
            let error = await #expect(throws: NetworkError.self) { try await job.result.get() }
            expect(error?.message, equals: "the credential could not be refreshed: \(words)")
            expect(error?.underlying != nil)
        }
    }

    @Test("CBK-7: a request that is refused with the new credential too ends, and no refresh follows")
    func refusedAgain() async {
        let count = Locked(0)
        let tokens = TestTokens { _ in
            count.withLock { $0 += 1 }
            return "new"
        }
        let client = SessionClient(AuthenticationSession(tokens, credential: "old", clock: ManualClock())) { _ in
            NetworkResponse(statusCode: 401, body: Data(#"{"message":"go away"}"#.utf8))
        }
        let job = await client.start()
        let error = await #expect(throws: NetworkError.self) { try await job.result.get() }
        expect(error?.code, equals: .unauthorized)
        expect(error?.statusCode, equals: 401)
        expect(error?.serverMessage, equals: "go away")
        expect(job.sent, equals: ["old", "new"])
        expect(count.withLock { $0 }, equals: 1)
    }

    @Test("CBK-7: an expired credential is refreshed before anything is sent; without one nothing is put in")
    func expired() async throws {
        var tokens = TestTokens { $0.map { $0 + "+" } ?? "first" }
        tokens.expired = { $0 == "old" }
        let session = AuthenticationSession(tokens, credential: "old", clock: ManualClock())
        let client = SessionClient(session, Self.server(accepting: "old+"))
        let job = await client.start()
        try await expect(job.result.get().statusCode, equals: 200)
        expect(job.sent, equals: ["old+"])

        let anonymous = SessionClient(AuthenticationSession(tokens), Self.server(accepting: "first"))
        let other = await anonymous.start()
        try await expect(other.result.get().statusCode, equals: 200)
        expect(other.sent, equals: [nil, "first"])
    }

    @Test("CBK-7: a request that is cancelled while it waits hears nothing; the refresh goes on without it")
    func cancelled() async throws {
        let gate = Gate()
        let tokens = TestTokens { _ in
            await gate.opened()
            return "new"
        }
        let session = AuthenticationSession(tokens, credential: "old", clock: ManualClock())
        let client = SessionClient(session, Self.server(accepting: "new"))
        let jobs = await client.start(2)
        for job in jobs {
            job.cancel()
            job.cancel()
        }
        gate.open()
        await expect(eventually { session.credential == "new" })
        try await expect(client.start().result.get().statusCode, equals: 200)
        expect(jobs.map(\.endCount), equals: [0, 0])
    }

    @Test("CBK-7: requests of a refresh have no credential and are not refreshed; others are not exempt")
    func insideRefresh() async throws {
        let holder = Locked<SessionClient?>(nil)
        let inner = Locked<SessionClient.Job?>(nil)
        let tokens = TestTokens { _ in
            let job = await holder.withLock { $0 }?.start()
            inner.withLock { $0 = job }
            // A held request would wait for the refresh that waits for it.
            if job?.isHeld == false { _ = await job?.result }
            return "new"
        }
        let session = AuthenticationSession(tokens, credential: "old", clock: ManualClock())
        let client = SessionClient(session, Self.server(accepting: "new"))
        holder.withLock { $0 = client }
        try await expect(client.start().result.get().statusCode, equals: 200)
        let job = try #require(inner.withLock { $0 })
        expect(job.sent, equals: [nil])
        try await expect(job.result.get().statusCode, equals: 401)
        holder.withLock { $0 = nil }

        let other = AuthenticationSession(TestTokens { _ in "x" }, credential: "o", clock: ManualClock())
        let url = URL(fileURLWithPath: "/")
        RequestAuthentication.$refreshing.withValue([ObjectIdentifier(session)]) {
            expect(session.begin(url, base: nil).isExempt)
            expect(!other.begin(url, base: nil).isExempt)
        }
    }

    @Test("CBK-7: signing in resumes waiting requests at once, and a later result of the refresh is ignored")
    func signIn() async throws {
        let gate = Gate()
        let wasCancelled = Locked(false)
        let tokens = TestTokens { _ in
            await gate.opened()
            wasCancelled.withLock { $0 = Task.isCancelled }
            return "late"
        }
        let session = AuthenticationSession(tokens, credential: "old", clock: ManualClock())
        let client = SessionClient(session, Self.server(accepting: "mine"))
        let job = await client.start()
        expect(job.isHeld)
        session.signIn("mine")
        try await expect(job.result.get().statusCode, equals: 200)
        gate.open()
        await expect(eventually { wasCancelled.withLock { $0 } })
        expect(session.credential, equals: "mine")
    }

    @Test("CBK-7: signing out ends waiting requests, and a refresh does not sign in again")
    func signOut() async {
        let gate = Gate()
        let isOver = Locked(false)
        let tokens = TestTokens { _ in
            await gate.opened()
            isOver.withLock { $0 = true }
            return "late"
        }
        let session = AuthenticationSession(tokens, credential: "old", clock: ManualClock())
        let client = SessionClient(session, Self.server(accepting: "late"))
        let job = await client.start()
        session.signOut()
        let error = await #expect(throws: NetworkError.self) { try await job.result.get() }
        expect(error?.code, equals: .unauthorized)
        expect(error?.message, equals: "signed out during the refresh")
        gate.open()
        await expect(eventually { isOver.withLock { $0 } })
        expect(session.credential == nil)
    }

    @Test("CBK-7: a refresh that never ends is given up at its deadline, and its task is cancelled")
    func deadline() async {
        let clock = ManualClock()
        let gate = Gate()
        let wasCancelled = Locked(false)
        let tokens = TestTokens { _ in
            await gate.opened()
            wasCancelled.withLock { $0 = Task.isCancelled }
            return "late"
        }
        let session = AuthenticationSession(tokens, credential: "old", refreshDeadline: 20, clock: clock)
        let client = SessionClient(session, Self.server(accepting: "new"))
        let job = await client.start()
        clock.advance(by: 19.9)
        expect(job.isHeld)
        clock.advance(by: 0.2)
        let error = await #expect(throws: NetworkError.self) { try await job.result.get() }
        expect(error?.code, equals: .unauthorized)
        expect((error?.underlying as? NetworkError)?.code, equals: .timedOut)
        gate.open()
        await expect(eventually { wasCancelled.withLock { $0 } })
        expect(session.credential, equals: "old")
    }

    @Test("CBK-7: with a deadline of no time no refresh begins", arguments: [-1, -Double.infinity, .nan])
    func deadlineOfNoTime(deadline: TimeInterval) async {
        let hasBegun = Locked(false)
        let tokens = TestTokens { _ in
            hasBegun.withLock { $0 = true }
            return "new"
        }
        let session = AuthenticationSession(tokens, credential: "old", refreshDeadline: deadline, clock: ManualClock())
        let job = await SessionClient(session, Self.server(accepting: "new")).start()
        let error = await #expect(throws: NetworkError.self) { try await job.result.get() }
        expect(error?.code == .invalidRequest && job.sent == ["old"] && !hasBegun.withLock { $0 })
    }

    @Test("CBK-7: a server that refuses whatever comes is not asked for more than a few refreshes")
    func storm() async {
        let clock = ManualClock()
        let count = Locked(0)
        let tokens = TestTokens { _ in
            count.withLock { count in
                count += 1
                return "token\(count)"
            }
        }
        let session = AuthenticationSession(tokens, credential: "old", refreshLimit: 3, refreshWindow: 10, clock: clock)
        let client = SessionClient(session) { _ in NetworkResponse(statusCode: 401) }
        for _ in 0..<3 { _ = await client.start().result }
        let job = await client.start()
        let error = await #expect(throws: NetworkError.self) { try await job.result.get() }
        expect(error?.message?.contains("3 times within 10.0 seconds"), equals: true)
        expect(job.sent.count, equals: 1)
        expect(count.withLock { $0 }, equals: 3)
        await expect(eventually { clock.pendingCount == 0 })
        clock.advance(by: 10)
        _ = await client.start().result
        expect(count.withLock { $0 }, equals: 4)
    }

    @Test("CBK-7: the late refusal of an old credential is answered with the new one, without a refresh")
    func lateRefusal() throws {
        let count = Locked(0)
        let tokens = TestTokens { _ in
            count.withLock { $0 += 1 }
            return "other"
        }
        let session = AuthenticationSession(tokens, credential: "old", clock: ManualClock())
        let message = TransportRequest(url: URL(fileURLWithPath: "/"))
        let credentialState = session.begin(message.url, base: nil)
        func input(_ state: RequestAuthentication.CredentialState) -> RequestAuthentication.Input {
            .init(message: message, state: state) { EasyNetworkService(.shared) }
        }
        let sent = try #require(try session.authorize(input(credentialState)).message)
        session.signIn("new")
        let refusal = NetworkResponse(statusCode: 401)
        let again = try session.review(refusal, to: input(sent.credentialState))?.message
        expect(again?.message.headers["Authorization"] == "Bearer new" && count.withLock { $0 } == 0)
    }

    @Test("CBK-7: a refresh counts for its window: then there is room for another one")
    func window() async {
        let count = Locked(0)
        let tokens = TestTokens { _ in
            count.withLock { count in
                count += 1
                return "\(count)"
            }
        }
        let clock = ManualClock()
        let session = AuthenticationSession(
            tokens,
            credential: "0",
            refreshLimit: 2,
            refreshWindow: 10,
            clock: clock
        )
        let client = SessionClient(session) { _ in NetworkResponse(statusCode: 401) }
        for expected in [1, 2, 2] {
            _ = await client.start().result
            expect(count.withLock { $0 }, equals: expected)
            if expected == 1 { clock.advance(by: 4) }
        }
        clock.advance(by: 6)
        for _ in 0..<2 { _ = await client.start().result }
        expect(count.withLock { $0 }, equals: 3)
    }

    @Test("CBK-7: by default five refreshes begin within 30 seconds, and a refresh ends after 120")
    func defaults() async {
        let clock = ManualClock()
        let count = Locked(0)
        let tokens = TestTokens { _ in
            count.withLock { count in
                count += 1
                return "\(count)"
            }
        }
        let session = AuthenticationSession(tokens, credential: "old", clock: clock)
        let client = SessionClient(session) { _ in NetworkResponse(statusCode: 401) }
        for _ in 1...6 { _ = await client.start().result }
        expect(count.withLock { $0 }, equals: 5)
        clock.advance(by: 29.9)
        _ = await client.start().result
        expect(count.withLock { $0 }, equals: 5)
        clock.advance(by: 0.1)
        _ = await client.start().result
        expect(count.withLock { $0 }, equals: 6)

        let never = Gate()
        let slowTokens = TestTokens { _ in
            await never.opened()
            return ""
        }
        let slow = AuthenticationSession(slowTokens, credential: "old", clock: clock)
        let job = await SessionClient(slow, Self.server(accepting: "new")).start()
        clock.advance(by: 119.9)
        expect(job.isHeld)
        clock.advance(by: 0.1)
        let error = await #expect(throws: NetworkError.self) { try await job.result.get() }
        expect((error?.underlying as? NetworkError)?.code, equals: .timedOut)
        never.open()
    }

    @Test("CBK-7: a code in the body counts as a refusal when the program says so")
    func businessCode() async throws {
        var tokens = TestTokens { _ in "new" }
        tokens.refused = { (try? $0.text())?.contains("E401") == true }
        let session = AuthenticationSession(tokens, credential: "old", clock: ManualClock())
        let client = SessionClient(session) { token in
            NetworkResponse(statusCode: token == "new" ? 403 : 200, body: Data((token == "new" ? "" : "E401").utf8))
        }
        let job = await client.start()
        // Another status is no refusal.
        try await expect(job.result.get().statusCode, equals: 403)
        expect(job.sent, equals: ["old", "new"])
    }

    @Test("CBK-7: a credential that cannot be put in is an error of that request which says so")
    func badCredential() async {
        let session = AuthenticationSession(TestTokens { _ in "" }, credential: "two words", clock: ManualClock())
        let client = SessionClient(session) { _ in NetworkResponse() }
        let error = await #expect(throws: NetworkError.self) { try await client.start().result.get() }
        expect(error?.code, equals: .invalidRequest)
        var tokens = TestTokens { _ in "" }
        tokens.applied = { _ in throw Broken() }
        let other = SessionClient(AuthenticationSession(tokens, credential: "x")) { _ in NetworkResponse() }
        let broken = await #expect(throws: NetworkError.self) { try await other.start().result.get() }
        expect(broken?.code, equals: .invalidRequest)
        expect(broken?.underlying is Broken)
    }

    @Test("CBK-7: the program's code may use the session, and sign in while a credential is looked at")
    func reentrancy() async throws {
        let holder = Locked<AuthenticationSession<TestTokens>?>(nil)
        let look: @Sendable () -> String? = { holder.withLock { $0 }?.credential }
        var tokens = TestTokens { _ in look().map { $0 + "+" } ?? "none" }
        tokens.applied = { _ in _ = look() }
        tokens.refused = { response in
            _ = look()
            return response.statusCode == 401
        }
        tokens.expired = { token in
            guard token == "old" else { return false }
            holder.withLock { $0 }?.signIn("signed.in")
            return true
        }
        let session = AuthenticationSession(tokens, credential: "old", clock: ManualClock())
        holder.withLock { $0 = session }
        let client = SessionClient(session, Self.server(accepting: "signed.in+"))
        let job = await client.start()
        try await expect(job.result.get().statusCode, equals: 200)
        // The expired credential has been replaced by the time the check returns.
        expect(job.sent, equals: ["signed.in", "signed.in+"])
        holder.withLock { $0 = nil }
    }

    @Test("CBK-7: a session, its credential and its requests are freed when all is over")
    func release() async throws {
        final class Token: Sendable {}
        struct Objects: Authenticator {
            func apply(_ credential: Token, to request: inout TransportRequest) {}
            func refresh(_ credential: Token?, over service: EasyNetworkService) async throws -> Token { Token() }
        }
        weak var session: AuthenticationSession<Objects>?
        weak var token: Token?
        do {
            let first = Token()
            token = first
            let made = AuthenticationSession(Objects(), credential: first, clock: ManualClock())
            session = made
            let client = SessionClient(made) { _ in NetworkResponse(statusCode: 401) }
            _ = await client.start().result
        }
        await expect(eventually { session == nil && token == nil })
    }

    @Test(
        "CBK-7: whatever comes together, every request ends once and no refresh runs beside another",
        arguments: UInt64(1)...10
    )
    func stress(seed: UInt64) async {
        let running = Locked((now: 0, most: 0, made: 0))
        let accepted = Locked("0")
        let tokens = TestTokens { _ in
            let number = running.withLock { running in
                running.now += 1
                running.most = max(running.most, running.now)
                running.made += 1
                return running.made
            }
            await Task.yield()
            running.withLock { $0.now -= 1 }
            if number.isMultiple(of: 5) { throw Broken() }
            accepted.withLock { $0 = "\(number)" }
            return "\(number)"
        }
        let session = AuthenticationSession(tokens, credential: "0", refreshLimit: 1_000, clock: ManualClock())
        let client = SessionClient(session) { token in
            NetworkResponse(statusCode: token == accepted.withLock { $0 } ? 200 : 401)
        }
        await withTaskGroup(of: Void.self) { group in
            for task in 0..<8 {
                group.addTask {
                    var generator = SeededGenerator(seed: seed &* 100 &+ UInt64(task))
                    for round in 0..<50 {
                        // A sign-in on another device invalidates the token.
                        if task == 0, round.isMultiple(of: 5) { accepted.withLock { $0 = "nobody's" } }
                        let job = await client.start()
                        if Bool.random(using: &generator) { await Task.yield() }
                        if Int.random(in: 0..<8, using: &generator) == 0, job.isHeld {
                            job.cancel()
                        } else {
                            _ = await job.result
                            expect(job.endCount, equals: 1, "seed \(seed)")
                        }
                        expect(job.sent.count <= 2, "seed \(seed)")
                    }
                }
            }
        }
        expect(running.withLock { $0.most } <= 1, "seed \(seed)")
        expect(running.withLock { $0.made } > 1, "seed \(seed)")
    }
}
