import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Requests whose credential is refreshed", .timeLimit(.minutes(10)))
struct RefreshedRequestTests {
    private let server: MockServer
    /// The token that the server accepts.
    private let valid = Locked("token-2")

    init() throws {
        server = try MockServer()
        let valid = valid
        server.route("GET", "/items") { request in
            request.headers["Authorization"] == "Bearer " + valid.withLock { $0 }
                ? .text("items") : .json(["message": "who are you?"], status: 401)
        }
        server.route("POST", "/token") { request in
            request.headers["Authorization"] == nil ? .text("token-2") : .status(400)
        }
    }

    private struct GetToken: APIRequest {
        typealias Item = String
        var api: String { "token" }
        var method: NetworkService.Method { .post }
        func item(from response: NetworkResponse) throws -> String { try response.text() }
    }

    /// Counts the refreshes, which wait for the gate.
    private struct Tokens: Authenticator {
        let count = Locked(0)
        var gate = Gate()
        var fails = false
        /// If set, the refresh runs on this queue instead of the service.
        var queue: NetworkQueue?

        func apply(_ credential: String, to request: inout TransportRequest) {
            request.headers["Authorization"] = "Bearer \(credential)"
        }

        func refresh(_ credential: String?, over service: EasyNetworkService) async throws -> String {
            count.withLock { $0 += 1 }
            await gate.opened()
            if fails { throw NetworkError(code: .connectionLost, message: "no token today") }
            if let queue {
                let operation = RequestOperation(GetToken(), service: service)
                queue.addOperation(operation)
                return try await operation.value
            }
            return try await service.send(GetToken()).text()
        }
    }

    private func service(_ authentication: RequestAuthentication) -> EasyNetworkService {
        EasyNetworkService(
            server.host(transport: TransportConfiguration.sharedTransport) { $0.authentication = authentication }
        )
    }

    /// Starts jobs that are all sent before the first is answered, and advances the clock to answer them.
    private func refusedAtOnce(
        _ count: Int,
        _ authentication: RequestAuthentication
    ) async throws -> (jobs: [RequestOperation<Get>], transport: InMemoryTransport, host: HostConfiguration) {
        let clock = ManualClock()
        let transport = InMemoryTransport(clock: clock)
        transport.route("GET", "/items") { request in
            guard request.headers["Authorization"] != "Bearer token-2" else { return .text("items") }
            var refusal = MockResponse.json(["message": "who are you?"], status: 401)
            refusal.delay = 1
            return refusal
        }
        transport.route("POST", "/token") { _ in .text("token-2") }
        let url = try #require(URL(string: "http://one.example"))
        let host = HostConfiguration(baseURL: url, deadlines: TransportDeadlines(idle: nil), transport: transport) {
            $0.authentication = authentication
        }
        let service = EasyNetworkService(host)
        let jobs = (0..<count).map { _ in RequestOperation(Get(api: "items"), service: service) }
        NetworkQueue(maxConcurrentOperationCount: count).addOperations(jobs, waitUntilFinished: false)
        await expect(clock.waitForTimers(count))
        clock.advance(by: 1)
        return (jobs, transport, host)
    }

    @Test("CBK-7: 100 jobs meet a 401 at once and cause one refresh; each is sent once more, and all succeed")
    func hundred() async throws {
        let tokens = Tokens()
        let (jobs, transport, _) = try await refusedAtOnce(100, AuthenticationSession(tokens, credential: "token-1"))
        tokens.gate.open()
        for job in jobs {
            let response = try await job.value
            expect(response.history.map(\.reason), equals: [.first, .authentication])
        }
        expect(tokens.count.withLock { $0 }, equals: 1)
        expect(transport.requests(to: "/items").count == 200 && transport.requests(to: "/token").count == 1)
    }

    @Test(
        "CBK-7, BEY-6: jobs that wait for a refresh occupy no slot, and later ones are not sent in vain"
    )
    func slots() async throws {
        server.route("GET", "/free") { _ in .text("free") }
        let tokens = Tokens()
        let service = service(AuthenticationSession(tokens, credential: "token-1"))
        let free = EasyNetworkService(server.host(transport: TransportConfiguration.sharedTransport))
        let queue = NetworkQueue(maxConcurrentOperationCount: 2)
        let jobs = (0..<20).map { _ in RequestOperation(Get(api: "items"), service: service) }
        let other = RequestOperation(Get(api: "free"), service: free)
        queue.addOperations(jobs + [other], waitUntilFinished: false)
        try await expect(other.value.text(), equals: "free")
        expect(server.requests(to: "/items").count <= 2)
        tokens.gate.open()
        for job in jobs { try await expect(job.value.text(), equals: "items") }
        expect(tokens.count.withLock { $0 } == 1 && server.requests(to: "/items").count <= 22)
    }

    @Test("CBK-7: a failed refresh ends all that wait, with the refused response and the cause")
    func failedRefresh() async throws {
        let tokens = Tokens(fails: true)
        // A request that is refused after the failure begins another refresh.
        let session = AuthenticationSession(tokens, credential: "token-1", refreshLimit: .max)
        let (jobs, transport, host) = try await refusedAtOnce(10, session)
        let posted = Locked(0)
        let observer = NotificationCenter.default.addObserver(
            forName: Notification.Name(DidPerformUnauthorizedOperation),
            object: host,
            queue: nil
        ) { _ in posted.withLock { $0 += 1 } }
        defer { NotificationCenter.default.removeObserver(observer) }
        tokens.gate.open()
        for job in jobs {
            let error = await #expect(throws: NetworkError.self) { try await job.value }
            expect(error?.code == .unauthorized && error?.statusCode == 401 && error?.attempts == 1)
            // The server's message is about the credential that was refused.
            let body = error?.responseBody.map { String(decoding: $0, as: UTF8.self) } ?? ""
            expect(error?.serverMessage == nil && body.contains("who are you?"))
            expect((error?.underlying as? NetworkError)?.message, equals: "no token today")
        }
        expect(posted.withLock { $0 } == 10 && transport.requests.count == 10)
        expect(tokens.count.withLock { $0 } < 10)
    }

    @Test("CBK-7: a refresh that its server refuses has one reason, once", arguments: [400, 401])
    func refusedRefresh(status: Int) async throws {
        server.route("POST", "/token") { _ in
            .json(["error": "invalid_grant", "error_description": "The grant is too old."], status: status)
        }
        let tokens = Tokens()
        tokens.gate.open()
        let service = service(AuthenticationSession(tokens, credential: "token-1"))
        let operation = RequestOperation(Get(api: "items"), service: service)
        NetworkQueue().addOperation(operation)
        let error = try #require(await #expect(throws: NetworkError.self) { try await operation.value })
        let sentence = "The credential could not be refreshed: The grant is too old"
        expect(error.localizedDescription, equals: sentence + ".")
        let address = server.baseURL.appendingPathComponent("items").absoluteString
        expect(error.description, equals: "NetworkError.unauthorized: \(sentence) (GET \(address)).")
        // What decides is still there.
        let cause = error.underlying as? NetworkError
        expect(error.statusCode == 401 && error.serverMessage == "The grant is too old." && cause?.statusCode == status)
        // In a batch it is the same, with the place.
        let batch = BatchOperation([RequestOperation(Get(api: "items"), service: service)])
        NetworkQueue().addOperation(batch)
        await batch.ended()
        let place = batch.error?.localizedDescription ?? ""
        expect(place.hasPrefix("Job 1") && place.hasSuffix(": the" + sentence.dropFirst(3) + "."), "\(place)")
    }

    @Test("CBK-7, OPQ-4: what a refresh has thrown is the cause of a batch and of a dependent, too")
    func failedRefreshOfSeveral() async throws {
        let tokens = Tokens(fails: true)
        tokens.gate.open()
        let service = service(AuthenticationSession(tokens, credential: "token-1", refreshLimit: .max))
        let queue = NetworkQueue()
        let first = RequestOperation(Get(api: "items"), service: service)
        let dependent = first.then { _ in Get(api: "items") }
        queue.addOperations([first, dependent])
        let ofDependent = await #expect(throws: NetworkError.self) { try await dependent.value }
        let ofBatch = await #expect(throws: NetworkError.self) {
            try await queue.perform([Get(api: "items")], service: service)
        }
        expect(ofDependent?.code == .dependencyFailed && ofBatch?.message?.hasPrefix("job 1: ") == true)
        for error in [ofDependent, ofBatch] {
            expect((error?.rootCause.underlying as? NetworkError)?.message, equals: "no token today")
        }
    }

    @Test("CBK-7: refused again with the new credential, a job ends and asks for no other")
    func refusedAgain() async throws {
        valid.withLock { $0 = "nobody has it" }
        let tokens = Tokens()
        tokens.gate.open()
        let service = service(AuthenticationSession(tokens, credential: "token-1"))
        let operation = RequestOperation(Get(api: "items"), service: service)
        NetworkQueue().addOperation(operation)
        let error = await #expect(throws: NetworkError.self) { try await operation.value }
        expect(error?.code == .unauthorized && error?.attempts == 2 && tokens.count.withLock { $0 } == 1)
    }

    @Test("CBK-7: the refresh never waits for itself, not over a queue whose only slot its job had either")
    func refreshOverQueue() async throws {
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        let tokens = Tokens(queue: queue)
        tokens.gate.open()
        let service = service(AuthenticationSession(tokens, credential: "token-1"))
        let operation = RequestOperation(Get(api: "items"), service: service)
        queue.addOperation(operation)
        try await expect(operation.value.text(), equals: "items")
        expect(server.requests.map(\.path), equals: ["/items", "/token", "/items"])
    }

    @Test("CBK-7, OPQ-2: cancelled while it waits for the refresh, a job ends at once, and the refresh goes on")
    func cancelled() async throws {
        let tokens = Tokens()
        let session = AuthenticationSession(tokens, credential: "token-1")
        let service = service(session)
        let queue = NetworkQueue()
        let cancelled = RequestOperation(Get(api: "items"), service: service)
        queue.addOperation(cancelled)
        await server.waitForRequests(1)
        await expect(eventually { tokens.count.withLock { $0 } == 1 })
        cancelled.cancel()
        await cancelled.ended()
        expect(cancelled.error?.code, equals: .cancelled)
        tokens.gate.open()
        let later = RequestOperation(Get(api: "items"), service: service)
        queue.addOperation(later)
        try await expect(later.value.text(), equals: "items")
        expect(session.credential == "token-2" && tokens.count.withLock { $0 } == 1)
    }

    @Test("SEC-1: the credential goes to the host's origin only, and not where a request brings its own")
    func origin() async throws {
        let elsewhere = try MockServer()
        elsewhere.route("GET", "/items") { _ in .status(401) }
        server.route("GET", "/away") { _ in .status(302, headers: ["Location": "\(elsewhere.baseURL)/items"]) }
        struct Own: BaseAPIRequest {
            var api: String { "items" }
            var options: RequestOptions { RequestOptions(credential: try? .bearer("own")) }
        }
        let tokens = Tokens()
        let service = service(AuthenticationSession(tokens, credential: "token-2"))
        for path in ["\(elsewhere.baseURL)/items", "away"] {
            let error = await #expect(throws: NetworkError.self) { try await service.send(Get(api: path)) }
            expect(error?.code, equals: .unauthorized)
        }
        await #expect(throws: NetworkError.self) { try await service.send(Own()) }
        expect(elsewhere.requests.map { $0.headers["Authorization"] }, equals: [nil, nil])
        expect(server.requests.map { $0.headers["Authorization"] }, equals: ["Bearer token-2", "Bearer own"])
        expect(tokens.count.withLock { $0 }, equals: 0)
    }

    @Test("CBK-7: user and password answer a challenge of Digest, also for the address that it is redirected to")
    func digest() async throws {
        let challenge: HTTPHeaders = [
            "WWW-Authenticate": "Digest realm=\"r\", qop=\"auth\", algorithm=SHA-256, nonce=\"n\", opaque=\"o\""
        ]
        server.route("GET", "/digest") { request in
            guard let field = request.headers["Authorization"], field.hasPrefix("Digest ") else {
                return .status(401, headers: challenge)
            }
            return field.contains("uri=\"/digest\"") ? .status(302, headers: ["Location": "/next?a=1"]) : .status(400)
        }
        server.route("GET", "/next") { request in
            request.headers["Authorization"]?.contains("uri=\"/next?a=1\"") == true ? .text("done") : .status(400)
        }
        let service = service(try .password(user: "ada", password: "secret"))
        try await expect(service.send(Get(api: "digest")).text(), equals: "done")
        expect(server.requests.map(\.path), equals: ["/digest", "/digest", "/next"])
        expect(server.requests.allSatisfy { $0.headers["Authorization"]?.contains("secret") != true })
    }
}
