import Dispatch
import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Calls with a cache", .timeLimit(.minutes(10)))
struct CachedCallTests: CacheSuite {
    let fixture = CachedCallFixture()

    private struct JSONCall: APIRequest {
        struct Item: Decodable { var userName: String }
        var api = "a"
        var cache: CachePolicy? = .http
        var options: RequestOptions { RequestOptions(cache: cache) }
    }

    private struct Adapter: RequestInterceptor {
        var adapting: @Sendable (TransportRequest, AttemptContext) -> TransportRequest = { message, _ in message }
        var landing: @Sendable (Result<NetworkResponse, NetworkError>) -> ResponseDecision = { _ in .proceed }

        func adapt(_ message: TransportRequest, context: AttemptContext) async throws -> TransportRequest {
            adapting(message, context)
        }

        func didReceive(_ result: Result<NetworkResponse, NetworkError>, context: AttemptContext) async
            -> ResponseDecision
        {
            landing(result)
        }
    }

    private func language(_ language: Locked<String>) -> Adapter {
        Adapter(adapting: { message, _ in
            var message = message
            let separator = message.url.query == nil ? "?" : "&"
            let address = message.url.absoluteString + separator + "lang=" + language.withLock { $0 }
            message.url = URL(string: address) ?? message.url
            return message
        })
    }

    private func echo() {
        transport.route("GET", "/a") { request in
            .text(request.query ?? "none", headers: ["Cache-Control": "max-age=60", "ETag": "\"same\""])
        }
    }

    @Test("CCH-5: by a policy the key has the URL after adapt")
    func adaptedPolicy() async throws {
        echo()
        let now = Locked("de")
        let service = service { $0.interceptors = [language(now)] }
        let call = CachedCall(cache: CachePolicy(.cacheElseNetwork))
        try await expect(service.send(call).text(), equals: "lang=de")
        now.withLock { $0 = "fr" }
        try await expect(service.send(call).text(), equals: "lang=fr")
    }

    @Test("BEY-10: by HTTP an adapted request finds its entry")
    func adaptedHTTP() async throws {
        echo()
        let service = service { $0.interceptors = [language(Locked("de"))] }
        _ = try await service.send(CachedCall())
        try await expect(service.send(CachedCall()).source, equals: .cache)
    }

    @Test("BEY-10: by HTTP an adapted request does not use the entry of another URL")
    func adaptedHTTPOther() async throws {
        echo()
        try await expect(service().send(CachedCall()).text(), equals: "none")
        let adapted = try await service().send(CachedCall(interceptors: [language(Locked("de"))]))
        try expect(adapted.text(), equals: "lang=de")
    }

    @Test("BEY-10: by HTTP the validator of another URL is not sent")
    func adaptedValidator() async throws {
        transport.route("GET", "/a") { request in
            if request.headers["If-None-Match"] != nil { return .status(304) }
            return .text(request.query ?? "none", headers: ["Cache-Control": "no-cache", "ETag": "\"1\""])
        }
        try await expect(service().send(CachedCall()).text(), equals: "none")
        let adapted = try await service().send(CachedCall(interceptors: [language(Locked("de"))]))
        try expect(adapted.text(), equals: "lang=de")
        expect(transport.requests.last?.headers["If-None-Match"] == nil)
    }

    @Test("BEY-10: an adapted URL of the second attempt receives no validator of the first")
    func failover() async throws {
        let isDown = Locked(false)
        for name in ["a", "b"] {
            transport.route("GET", "/\(name)") { request in
                if name == "a", isDown.withLock({ $0 }) { return .status(503) }
                if request.headers["If-None-Match"] == "\"1\"" { return .status(304) }
                return .text(name, headers: ["Cache-Control": "no-cache", "ETag": "\"1\""])
            }
        }
        let other = Adapter(
            adapting: { message, context in
                var message = message
                if !context.history.isEmpty { message.url = URL(string: "http://one.example/b") ?? message.url }
                return message
            },
            landing: { result in
                if case .failure(let error) = result, error.statusCode == 503 { return .sendAgain() }
                return .proceed
            }
        )
        let service = service { $0.interceptors = [other] }
        try await expect(service.send(CachedCall()).text(), equals: "a")
        isDown.withLock { $0 = true }
        let response = try await service.send(CachedCall())
        try expect(response.text(), equals: "b")
        expect(response.source, equals: .network)
        expect(transport.requests.last?.headers["If-None-Match"] == nil)
        // The entry of b.
        let plain = try await self.service().send(CachedCall(api: "b"))
        try expect(plain.text(), equals: "b")
    }

    @Test("BEY-10: a stale response instead of an error is decoded by the host's decoder")
    func standInDecoder() async throws {
        transport.route("GET", "/a") { _ in
            .text("{\"user_name\":\"ada\"}", headers: ["Cache-Control": "max-age=60, stale-if-error=100"])
        }
        let service = service {
            $0.decoder = .json {
                let decoder = JSONDecoder()
                decoder.keyDecodingStrategy = .convertFromSnakeCase
                return decoder
            }
        }
        try await expect(service.perform(JSONCall()).userName, equals: "ada")
        try await expect(service.perform(JSONCall()).userName, equals: "ada")
        clock.advance(by: 61)
        transport.route("GET", "/a") { _ in .status(503) }
        try await expect(service.perform(JSONCall()).userName, equals: "ada")
    }

    @Test("BEY-10: a response to HEAD keeps the stored body")
    func head() async throws {
        transport.route("GET", "/a") { _ in .text("x", headers: ["Cache-Control": "max-age=60"]) }
        transport.route("HEAD", "/a") { _ in .text("x", headers: ["Cache-Control": "max-age=60"]) }
        let service = service { $0.cachePolicy = .http }
        _ = try await service.send(CachedCall(cache: nil))
        _ = try await service.send(CachedCall(method: .head, cache: nil))
        let response = try await service.send(CachedCall(cache: nil))
        try expect(response.source == .cache && response.text() == "x")
    }

    @Test("BEY-10: a 206 does not change the entry")
    func range() async throws {
        transport.route("GET", "/a") { request in
            request.headers["Range"] != nil
                ? .status(206, headers: ["Cache-Control": "max-age=60", "Content-Range": "bytes 0-0/1"])
                : .text("x", headers: ["Cache-Control": "max-age=60"])
        }
        _ = try await service().send(CachedCall())
        _ = try await service().send(CachedCall(headers: ["Range": "bytes=0-0"]))
        try await expect(service().send(CachedCall()).source, equals: .cache)
    }

    @Test("BEY-10: a request with no-store does not change the entry")
    func noStoreRequest() async throws {
        transport.route("GET", "/a") { _ in .text("x", headers: ["Cache-Control": "max-age=60"]) }
        _ = try await service().send(CachedCall())
        _ = try await service().send(CachedCall(headers: ["Cache-Control": "no-store"]))
        try await expect(service().send(CachedCall()).source, equals: .cache)
    }

    @Test("CCH-4: by a policy a 206 is not stored")
    func partByPolicy() async throws {
        transport.route("GET", "/a") { request in
            request.headers["Range"] != nil
                ? MockResponse(statusCode: 206, headers: ["Content-Range": "bytes 0-0/3"], body: .data(Data("a".utf8)))
                : .text("abc")
        }
        let policy = CachePolicy(.cacheElseNetwork)
        _ = try await service().send(CachedCall(headers: ["Range": "bytes=0-0"], cache: policy))
        try await expect(service().send(CachedCall(cache: policy)).text(), equals: "abc")
    }

    @Test("CCH-4: a response that an interceptor made of an error is not stored")
    func madeUp() async throws {
        transport.route("GET", "/a") { _ in .status(503) }
        let offline = Adapter(landing: { result in
            if case .failure = result { return .succeed(NetworkResponse(body: Data("offline".utf8))) }
            return .proceed
        })
        let service = service { $0.interceptors = [offline] }
        let call = CachedCall(cache: CachePolicy(.cacheElseNetwork))
        try await expect(service.send(call).text(), equals: "offline")
        transport.route("GET", "/a") { _ in .text("real") }
        try await expect(service.send(call).text(), equals: "real")
    }

    @Test("CCH-4: a stored response passes through interceptors once")
    func unwrapped() async throws {
        transport.route("GET", "/a") { _ in .text("((x))") }
        let unwrap = Adapter(landing: { result in
            guard case .success(let response) = result else { return .proceed }
            let body = Data(response.body.dropFirst().dropLast())
            return .succeed(NetworkResponse(body: body, source: response.source))
        })
        let service = service { $0.interceptors = [unwrap] }
        let call = CachedCall(cache: CachePolicy(.cacheElseNetwork))
        try await expect(service.send(call).text(), equals: "(x)")
        try await expect(service.send(call).text(), equals: "(x)")
    }

    @Test("BEY-10: by HTTP an interceptor's response to an error does not remove the entry")
    func madeUpHTTP() async throws {
        transport.route("GET", "/a") { _ in .text("x", headers: ["Cache-Control": "no-cache", "ETag": "\"1\""]) }
        let offline = Adapter(landing: { result in
            if case .failure = result { return .succeed(NetworkResponse(body: Data("offline".utf8))) }
            return .proceed
        })
        let service = service { $0.interceptors = [offline] }
        _ = try await service.send(CachedCall())
        transport.route("GET", "/a") { _ in .status(503) }
        try await expect(service.send(CachedCall()).text(), equals: "offline")
        await expect(cache.usage.memoryCount, equals: 1)
    }

    @Test("CCH-3: cached has been called when the operation has finished, with any other closures")
    func cachedAlone() async throws {
        transport.route("GET", "/a") { _ in .text("new") }
        let service = service()
        try service.store(NetworkResponse(body: Data("old".utf8)), for: CachedText())
        let callbacks = DispatchQueue(label: "callbacks")
        callbacks.suspend()
        let story = Locked<[String]>([])
        let operation = RequestOperation(CachedText(), service: service)
        operation.callbackQueue = callbacks
        operation.cached = { item in story.withLock { $0.append("cached \(item)") } }
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        queue.addOperation(operation)
        await expect(transport.waitForRequests(1))
        let finishedEarly = Locked(false)
        operation.asNetworkOperation.whenFinished { finishedEarly.withLock { $0 = true } }
        await expect(staysFalse { finishedEarly.withLock { $0 } }, "finished though cached has not been called")
        callbacks.resume()
        await operation.ended()
        callbacks.sync {}
    }

    @Test("CCH-4: after the documented sign-out no entry returns")
    func signOut() async throws {
        let answers = Locked(0)
        transport.route("GET", "/a") { _ in
            let number = answers.next()
            return MockResponse(
                headers: ["Cache-Control": "max-age=60, stale-while-revalidate=100"],
                body: .data(Data("secret of ada \(number)".utf8)),
                delay: number == 1 ? 0 : 5
            )
        }
        let service = service()
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        let first = RequestOperation(CachedText(cache: .http), service: service)
        queue.addOperation(first)
        _ = try await first.value
        clock.advance(by: 61)
        let second = RequestOperation(CachedText(cache: .http), service: service)
        queue.addOperation(second)
        _ = try await second.value
        await expect(transport.waitForRequests(2))
        await clock.waitForTimers(1)
        queue.cancelAllOperations()
        service.cancel()
        try await cache.removeAll()
        await expect(cache.usage.memoryCount, equals: 0)
        clock.advance(by: 5)
        let isEmpty = await staysFalse { await cache.usage.memoryCount > 0 }
        expect(isEmpty, "the refresh was not cancelled, and stored after removeAll")
    }

    @Test("CCH-4: without storage, after an interceptor's repeat and a mapping failure, the request is sent once")
    func sentOnce() async throws {
        struct Strict: APIRequest {
            var api = "a"
            var cache: CachePolicy? = CachePolicy(.cacheElseNetwork, storesInMemory: false, storesOnDisk: false)
            var options: RequestOptions { RequestOptions(cache: cache) }
            func item(from response: NetworkResponse) throws -> String {
                let text = try response.text()
                guard text == "old" else { throw NetworkError(code: .cannotParseResponse) }
                return text
            }
        }
        transport.route("GET", "/a") { _ in .text("bad") }
        let again = Adapter(landing: { result in
            if case .success(let response) = result, response.source == .cache { return .sendAgain() }
            return .proceed
        })
        let service = service { $0.interceptors = [again] }
        try service.store(
            NetworkResponse(body: Data("old".utf8)),
            for: CachedCall(cache: CachePolicy(.cacheElseNetwork))
        )
        await #expect(throws: NetworkError.self) { try await service.perform(Strict()) }
        expect(transport.requests.count, equals: 1)
        await expect(cache.usage.memoryCount, equals: 1)
    }

    @Test(
        "BEY-10: odd URLs are invalidated",
        arguments: [
            "a?x=[1]", "a?x=%5B1%5D", "a?x=a|b", "a?q='s", "a?x=é", "a?", "a?x=%c3%a9", "a;v=1?y=a:b@c", "a//b/../c",
        ]
    )
    func oddInvalidation(api: String) async throws {
        let scripted = ScriptedTransport { request, _ in .answer(200, ["Cache-Control": "max-age=60"], body: "x") }
        let service = service { $0.transport = scripted }
        _ = try await service.send(CachedCall(api: api))
        try await expect(service.send(CachedCall(api: api)).source, equals: .cache)
        _ = try await service.send(CachedCall(api: api, method: .post, cache: nil))
        try await expect(service.send(CachedCall(api: api)).source, equals: .network)
    }

    @Test(
        "BEY-10: the root is invalidated",
        arguments: ["http://one.example", "http://ONE.example", "http://one.example:80"]
    )
    func rootInvalidation(base: String) async throws {
        let scripted = ScriptedTransport { request, _ in .answer(200, ["Cache-Control": "max-age=60"], body: "x") }
        let service = service(at: base) { $0.transport = scripted }
        for api in ["", "/", "b"] {
            _ = try await service.send(CachedCall(api: api))
            try await expect(service.send(CachedCall(api: api)).source, equals: .cache)
            _ = try await service.send(CachedCall(api: api, method: .post, cache: nil))
            try await expect(service.send(CachedCall(api: api)).source, equals: .network)
        }
    }

    @Test("BEY-10: a validated entry that cannot be mapped is removed, and requested again")
    func confirmedUnreadable() async throws {
        transport.route("GET", "/a") { request in
            if request.headers["If-None-Match"] != nil { return .status(304) }
            return .text("{\"userName\":\"ada\"}", headers: ["Cache-Control": "no-cache", "ETag": "\"1\""])
        }
        let service = service()
        let bad = NetworkResponse(
            headers: ["Cache-Control": "no-cache", "ETag": "\"1\""],
            body: Data("garbage".utf8)
        )
        try service.store(bad, for: JSONCall())
        let names = await [try? service.perform(JSONCall()).userName, try? service.perform(JSONCall()).userName]
        expect(names, equals: ["ada", "ada"])
    }

    @Test("SEC-1: Set-Cookie is not stored")
    func cookiesOnDisk() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString, isDirectory: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let disk = try NetworkCache(directory: folder)
        transport.route("GET", "/a") { _ in
            .text("x", headers: ["Cache-Control": "max-age=60", "Set-Cookie": "session=verysecret; HttpOnly"])
        }
        let service = service {
            $0.cache = disk
            $0.cookies = CookieJar()
        }
        _ = try await service.send(CachedCall())
        await disk.flush()
        var found = false
        let files = try #require(FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)).allObjects
        for case let file as URL in files {
            if let data = try? Data(contentsOf: file), data.range(of: Data("verysecret".utf8)) != nil { found = true }
        }
        expect(!found)
    }

    @Test("CCH-5: parts of the key may have CRLF")
    func lineEnds() throws {
        func message(_ headers: HTTPHeaders) throws -> TransportRequest {
            try RequestBuilder.build(CachedCall(), for: service().configuration)
        }
        let one = CacheKey.key(
            for: try message([:]),
            CachePolicy(.cacheElseNetwork, extraKey: "E"),
            partition: "P\r"
        )
        expect(one?.contains("P\r\\n"), equals: false)
        let two = CacheKey.key(
            for: try message([:]),
            CachePolicy(.cacheElseNetwork, extraKey: "a\r\nb"),
            partition: nil
        )
        let three = CacheKey.key(
            for: try message([:]),
            CachePolicy(.cacheElseNetwork, extraKey: "a\nb"),
            partition: nil
        )
        expect(two?.utf8.filter { $0 == 10 }.count == 3 && two != three)
    }
}
