import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("EasyNetworkService", .timeLimit(.minutes(10)))
struct EasyNetworkServiceTests {
    private let server: MockServer
    private let service: EasyNetworkService

    init() throws {
        server = try MockServer()
        service = EasyNetworkService(server.host(headers: ["X-Host": "h", "X-Both": "host"]))
    }

    private struct Search: BaseAPIRequest {
        var api = "search?kept=1#part"
        var method = NetworkService.Method.get
        var query = NetworkService.QueryType.path
        var headers: [String: String]? { ["x-both": "request"] }
        var params: [String: Any]? {
            [
                "text": "a&b=c+d%e f", "emoji": "🦜é", "empty": "", "none": NSNull(), "flag": true, "n": 5,
                "list": ["x", "y z"], "nested": ["inner": ["deep": "v"], "k&": "=&"] as [String: Any],
            ]
        }
    }

    @Test("REQ-2, CFG-1, CFG-6: a query arrives as it was given, headers of the request beat the host's")
    func query() async throws {
        server.route("GET", "/search") { _ in .json([:] as [String: Any]) }
        _ = try await service.send(Search())
        let request = try #require(server.requests.first)
        let items = request.queryItems.map { "\($0.name)=\($0.value ?? "nil")" }
        expect(
            items,
            equals: [
                "kept=1", "emoji=🦜é", "empty=", "flag=true", "list[]=x", "list[]=y z", "n=5", "nested[inner][deep]=v",
                "nested[k&]==&", "none=nil", "text=a&b=c+d%e f",
            ]
        )
        expect(request.headers["X-Host"] == "h" && request.headers["X-Both"] == "request")
    }

    @Test("REQ-2, REQ-3: the same parameters arrive in a JSON body")
    func jsonBody() async throws {
        server.route("POST", "/search") { _ in .json([:] as [String: Any]) }
        _ = try await service.send(Search(method: .post, query: .json))
        let request = try #require(server.requests.first)
        let json = try #require(request.json() as? [String: Any])
        expect(json["text"] as? String == "a&b=c+d%e f" && json["emoji"] as? String == "🦜é")
        expect(json["none"] is NSNull && json["flag"] as? Bool == true && json["list"] as? [String] == ["x", "y z"])
        expect((json["nested"] as? [String: Any])?["k&"] as? String, equals: "=&")
        expect(request.headers["Content-Type"], equals: "application/json")
        expect(request.query, equals: "kept=1")
    }

    @Test("RSP-6: a 404 with the server's own words: code, status, body, message, request, attempts")
    func notFound() async throws {
        server.route("GET", "/users/9") { _ in .json(["error": "no such user"], status: 404) }
        let error = await #expect(throws: NetworkError.self) { try await service.send(GetAccount(id: 9)) }
        expect(error?.code == .unacceptableStatus && error?.statusCode == 404 && error?.attempts == 1)
        expect(error?.serverMessage, equals: "no such user")
        expect(error?.responseBody, equals: Data("{\"error\":\"no such user\"}".utf8))
        expect(error?.request?.method == "GET" && error?.request?.url.path == "/users/9")
        expect(error?.localizedDescription.contains("no such user"), equals: true)
    }

    @Test("CBK-1: one closure is called, once, on the host's queue; with JSON, nil for no body, or the error")
    func closures() async throws {
        let key = DispatchSpecificKey<Bool>()
        let queue = DispatchQueue(label: "callbacks")
        queue.setSpecific(key: key, value: true)
        let service = EasyNetworkService(server.host(callbackQueue: queue))
        server.route("GET", "/json") { _ in .json(["a": 1]) }
        server.route("GET", "/empty") { _ in .status(204) }
        server.route("GET", "/text") { _ in .text("not { JSON") }
        let answers = Locked<[String]>([])
        for path in ["json", "empty", "text", "missing"] {
            await withCheckedContinuation { continuation in
                service.request(Get(api: path)) { json in
                    let isOnQueue = DispatchQueue.getSpecific(key: key) == true
                    let text = (json as? [String: Any]).map { "\($0["a"] ?? "")" } ?? "nothing"
                    answers.withLock { $0.append("\(path) \(text) \(isOnQueue)") }
                    continuation.resume()
                } failure: { error in
                    let isOnQueue = DispatchQueue.getSpecific(key: key) == true
                    answers.withLock { $0.append("\(path) \(error.code) \(isOnQueue)") }
                    continuation.resume()
                }
            }
        }
        expect(
            answers.withLock { $0 },
            equals: [
                "json 1 true", "empty nothing true", "text cannotParseResponse true", "missing unacceptableStatus true",
            ]
        )
    }

    @Test("CBK-7, CBK-8: a 401 posts the notification, with the error, before the failure is delivered")
    func unauthorized() async throws {
        server.route("GET", "/private") { _ in .json(["message": "sign in"], status: 401) }
        let posted = Locked<[NetworkError]>([])
        let token = NotificationCenter.default.addObserver(
            forName: Notification.Name(DidPerformUnauthorizedOperation),
            object: service.configuration,
            queue: nil
        ) { note in
            if let error = note.userInfo?["error"] as? NetworkError { posted.withLock { $0.append(error) } }
        }
        defer { NotificationCenter.default.removeObserver(token) }
        let error = await #expect(throws: NetworkError.self) { try await service.send(Get(api: "private")) }
        expect(error?.code == .unauthorized && error?.serverMessage == "sign in")
        expect(posted.withLock { $0.map(\.code) }, equals: [.unauthorized])
    }

    @Test("RSP-6: a port without a listener is .cannotConnect")
    func refused() async throws {
        let url = server.baseURL
        server.stop()
        let service = EasyNetworkService(
            HostConfiguration(baseURL: url, deadlines: TransportDeadlines(idle: nil), transport: URLSessionTransport())
            {
                $0.retry = .never
            }
        )
        let error = await #expect(throws: NetworkError.self) { try await service.send(Get(api: "a")) }
        expect(error?.code == .cannotConnect && error?.attempts == 1)
    }

    @Test("CBK-2: cancelled, a service ends what is under way and refuses what comes later, unsent")
    func cancel() async throws {
        server.route("GET", "/stall") { _ in .fault(.stall) }
        let service = service
        let stalled = Task { try await service.send(Get(api: "stall")) }
        await server.waitForRequests(1)
        service.cancel()
        await #expect(throws: NetworkError.self) { try await stalled.value }
        let error = await #expect(throws: NetworkError.self) { try await service.send(Get(api: "stall")) }
        expect(error?.code == .cancelled && error?.attempts == 0)
        expect(server.requests.count, equals: 1)
        await expect(server.waitForConnections(0))
    }

    @Test("BEY-3: cancelling the task cancels the request; a task already cancelled sends nothing")
    func cancelTask() async throws {
        server.route("GET", "/stall") { _ in .fault(.stall) }
        let service = service
        let task = Task { try await service.send(Get(api: "stall")) }
        await server.waitForRequests(1)
        task.cancel()
        let error = await #expect(throws: NetworkError.self) { try await task.value }
        expect(error?.code, equals: .cancelled)
        await expect(server.waitForConnections(0))
        let late = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await service.send(Get(api: "stall"))
        }
        await #expect(throws: NetworkError.self) { try await late.value }
        expect(server.requests.count, equals: 1)
    }

    @Test("CFG-2: a request that cannot be built is an error, and is not sent")
    func invalid() async throws {
        struct Bad: BaseAPIRequest {
            var api: String { "a" }
            var headers: [String: String]? { ["X-A": "1\r\nX-B: 2"] }
        }
        let error = await #expect(throws: NetworkError.self) { try await service.send(Bad()) }
        expect(error?.code == .invalidRequest && error?.message?.contains("X-A") == true)
        struct Framed: BaseAPIRequest {
            var name: String
            var api: String { "a" }
            var headers: [String: String]? { [name: "5"] }
        }
        for name in ["content-length", "Transfer-Encoding"] {
            let error = await #expect(throws: NetworkError.self) { try await service.send(Framed(name: name)) }
            expect(error?.code == .invalidRequest && error?.message?.contains(name) == true)
        }
        expect(server.requests.isEmpty)
    }

    #if os(Linux)
    @Test("RSP-10: the bytes of Location, cookies, tags and challenges come back to the server unchanged")
    func fieldBytes() async throws {
        let bytes: [UInt8] = [0x63, 0xE9, 0x80, 0xFF]
        let text = String(fieldBytes: bytes)
        server.route("GET", "*") { request in
            if request.path == "/start" {
                return .status(302, headers: ["Location": "/\(text)?\(text)", "Set-Cookie": "a=\(text)"])
            }
            guard request.headers["Authorization"] != nil else {
                let challenge = "Digest realm=\"\(text)\", nonce=\"\(text)\", opaque=\"\(text)\""
                return .status(401, headers: ["WWW-Authenticate": challenge])
            }
            let headers: HTTPHeaders = ["ETag": "\"\(text)\"", "Cache-Control": "no-cache", "X-Name": text]
            return request.headers["If-None-Match"] == nil
                ? .text("ok", headers: headers) : .status(304, headers: headers)
        }
        let folder = TestFolder()
        // On disk, so that the bytes also pass through a file.
        let cache = try NetworkCache(directory: folder.url, memoryBytes: 0)
        let authentication = try RequestAuthentication.password(user: "ada", password: "secret")
        let service = EasyNetworkService(
            server.host { host in
                host.cookies = CookieJar()
                host.authentication = authentication
                host.cachePolicy = .http
                host.cache = cache
                host.cachePartition = "ada"
            }
        )
        for api in ["start", "c%E9%80%FF?c%E9%80%FF"] {
            let response = try await service.send(Get(api: api))
            expect(response.headers["X-Name"], equals: "c\u{E9}\u{80}\u{FF}")
        }
        let last = try #require(server.requests.last)
        expect(server.requests.dropFirst().allSatisfy { $0.target == "/c%E9%80%FF?c%E9%80%FF" })
        func sent(_ name: String) -> [UInt8] { last.headers.rawValues(for: name).first?.fieldBytes ?? [] }
        expect(sent("Cookie"), equals: Array("a=".utf8) + bytes)
        expect(sent("If-None-Match"), equals: [0x22] + bytes + [0x22])
        func digest(_ parts: [[UInt8]]) -> [UInt8] {
            Array(MD5.digest(of: Data(parts.joined(separator: [0x3A]))).hexadecimal.utf8)
        }
        let key = digest([Array("ada".utf8), bytes, Array("secret".utf8)])
        let proof = digest([key, bytes, digest([Array("GET".utf8), Array(last.target.utf8)])])
        let authorization = Data(sent("Authorization"))
        for (name, value) in [("realm", bytes), ("nonce", bytes), ("opaque", bytes), ("response", proof)] {
            expect(authorization.range(of: Data("\(name)=\"".utf8) + value + [0x22]) != nil, "\(name)")
        }
    }
    #endif
}
