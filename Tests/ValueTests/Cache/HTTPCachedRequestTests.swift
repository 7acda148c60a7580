import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Requests cached by HTTP's rules", .timeLimit(.minutes(10)))
struct HTTPCachedRequestTests: CacheSuite {
    let fixture = CachedCallFixture()

    /// Responds with these fields and a body with a count, or with 304 to a current validator.
    private func answers(_ headers: HTTPHeaders, path: String = "/a") {
        let count = Locked(0)
        transport.route("GET", path) { request in
            if let tag = headers["ETag"], request.headers["If-None-Match"] == tag {
                return .status(304, headers: headers)
            }
            return .text(String(count.next()), headers: headers)
        }
    }

    @Test("BEY-10: a response is reused with its Age while it is fresh (RFC 9111, sections 4.2 and 5.1)")
    func freshness() async throws {
        answers(["Cache-Control": "max-age=60"])
        try await expect(ask(), equals: "1 network")
        clock.advance(by: 59)
        let response = try await service().send(CachedCall())
        expect(response.source == .cache && response.headers["Age"] == "59" && response.history.isEmpty)
        clock.advance(by: 1)
        try await expect(ask(), equals: "2 network")
        try await expect(ask(), equals: "2 cache")
    }

    @Test("BEY-10: a stale entry is revalidated, a 304 refreshes it, the body is reused (sections 4.3.1 and 4.3.4)")
    func revalidation() async throws {
        answers(["Cache-Control": "max-age=60", "ETag": "\"x\""])
        try await expect(ask(), equals: "1 network")
        clock.advance(by: 61)
        let response = try await service().send(CachedCall())
        try expect(response.text() == "1" && response.source == .revalidated && response.statusCode == 200)
        expect(response.history.map(\.statusCode) == [304] && response.history.map(\.cacheMiss) == [.expired])
        expect(transport.requests.last?.headers["If-None-Match"], equals: "\"x\"")
        clock.advance(by: 59)
        try await expect(ask(), equals: "1 cache")
        expect(transport.requests.count, equals: 2)
    }

    @Test("BEY-10: after a 304 with another validator the request is sent again without conditions")
    func strange304() async throws {
        let sent = Locked(0)
        transport.route("GET", "/a") { request in
            sent.withLock { $0 += 1 }
            guard request.headers["If-None-Match"] != nil else {
                return .text(String(sent.withLock { $0 }), headers: ["ETag": "\"x\"", "Cache-Control": "no-cache"])
            }
            return .status(304, headers: ["ETag": "\"other\""])
        }
        try await expect(ask(), equals: "1 network")
        let response = try await service().send(CachedCall())
        try expect(response.text() == "3" && response.source == .network)
        expect(response.history.map(\.reason), equals: [.first, .unconditional])
        expect(response.history.map(\.statusCode), equals: [304, 200])
    }

    @Test("BEY-10: a changed response replaces the entry")
    func changed() async throws {
        answers(["Cache-Control": "max-age=60", "ETag": "\"x\""])
        _ = try await ask()
        answers(["Cache-Control": "max-age=60", "ETag": "\"y\""])
        clock.advance(by: 61)
        transport.route("GET", "/a") { _ in .text("new", headers: ["Cache-Control": "max-age=60", "ETag": "\"y\""]) }
        try await expect(ask(), equals: "new network")
        try await expect(ask(), equals: "new cache")
    }

    static let unstorable: [(headers: HTTPHeaders, request: [String: String]?)] = [
        (["Cache-Control": "no-store, max-age=60"], nil),
        (["Cache-Control": "max-age=60"], ["Cache-Control": "no-store"]),
        (["Cache-Control": "max-age=60", "Vary": "*"], nil),
        (["Cache-Control": "max-age=0"], nil),
    ]

    @Test("BEY-10: a response that is not storable or usable is not stored (section 3)", arguments: unstorable)
    func unstored(headers: HTTPHeaders, request: [String: String]?) async throws {
        answers(headers)
        try await expect(ask(CachedCall(headers: request)), equals: "1 network")
        await expect(cache.usage.memoryCount, equals: 0)
    }

    @Test("BEY-10: a response that is not storable removes the entry")
    func noStoreLater() async throws {
        answers(["Cache-Control": "max-age=60"])
        _ = try await ask()
        answers(["Cache-Control": "no-store"])
        _ = try await ask(CachedCall(headers: ["Cache-Control": "no-cache"]))
        await expect(cache.usage.memoryCount, equals: 0)
    }

    @Test("BEY-10: request directives: no-cache requires validation, only-if-cached forbids a request (section 5.2.1)")
    func directives() async throws {
        answers(["Cache-Control": "max-age=60"])
        let only = CachedCall(headers: ["Cache-Control": "only-if-cached"])
        let error = await #expect(throws: NetworkError.self) { try await ask(only) }
        expect(error?.code == .notCached && error?.cacheMiss == .absent && transport.requests.isEmpty)
        expect(error?.statusCode == 504 && error?.mayHaveReachedServer == false, "section 5.2.1.7")
        try await expect(ask(), equals: "1 network")
        try await expect(ask(only), equals: "1 cache")
        try await expect(ask(CachedCall(headers: ["Cache-Control": "no-cache"])), equals: "2 network")
    }

    @Test("BEY-10: Vary: the entry is for requests with the same fields only (section 4.1)")
    func vary() async throws {
        answers(["Cache-Control": "max-age=60", "Vary": "Accept-Language"])
        let (english, german) = (
            CachedCall(headers: ["Accept-Language": "en"]), CachedCall(headers: ["Accept-Language": "de"])
        )
        try await expect(ask(english), equals: "1 network")
        try await expect(ask(english), equals: "1 cache")
        let response = try await service().send(german)
        try expect(response.text() == "2" && response.history.first?.cacheMiss == .varies)
    }

    @Test("BEY-10, SEC-1: responses to requests with other credentials are never used")
    func credentials() async throws {
        answers(["Cache-Control": "max-age=60"])
        let (ada, eve) = (CachedCall(headers: ["Authorization": "ada"]), CachedCall(headers: ["Authorization": "eve"]))
        try await expect(ask(ada), equals: "1 network")
        try await expect(ask(ada), equals: "1 cache")
        try await expect(ask(eve), equals: "2 network")
        try await expect(ask(), equals: "3 network")
        try await expect(ask(ada), equals: "1 cache")
        try await expect(ask(eve), equals: "2 cache")
    }

    @Test(
        "BEY-10, SEC-1: the same holds for each field that a redirect to another origin drops",
        arguments: [
            "X-Api-Key", "x-auth-token", "Proxy-Authorization", "X-Amz-Security-Token", "Ocp-Apim-Subscription-Key",
        ],
        [nil, "team"]
    )
    func otherCredentials(name: String, partition: String?) async throws {
        expect(HTTPHeaders([name: "ada"]).withoutCredentials.isEmpty)
        answers(["Cache-Control": "max-age=60, private"])
        let service = service { $0.cachePartition = partition }
        let (ada, bob) = (CachedCall(headers: [name: "ada"]), CachedCall(headers: [name: "bob"]))
        try await expect(ask(ada, over: service), equals: "1 network")
        try await expect(ask(ada, over: service), equals: "1 cache")
        try await expect(ask(bob, over: service), equals: "2 network")
        try await expect(ask(over: service), equals: "3 network", "nobody has another credential than ada")
        try await expect(ask(bob, over: service), equals: "2 cache", "and bob another one than nobody")
        try await expect(ask(ada, over: service), equals: "1 cache")
        try await expect(ask(over: service), equals: "3 cache")
    }

    @Test("BEY-10, SEC-1: a credential of the request counts, the host's authentication does not")
    func keyBesideSession() async throws {
        answers(["Cache-Control": "max-age=60"])
        let session = AuthenticationSession(TestTokens { _ in "new" }, credential: "old")
        let service = service {
            $0.authentication = session
            $0.cachePartition = "team"
        }
        let (ada, bob) = (CachedCall(headers: ["X-Api-Key": "ada"]), CachedCall(headers: ["X-Api-Key": "bob"]))
        try await expect(ask(ada, over: service), equals: "1 network")
        session.signIn("other")
        try await expect(ask(ada, over: service), equals: "1 cache")
        try await expect(ask(bob, over: service), equals: "2 network")
    }

    @Test(
        "BEY-10: a response to HEAD updates the stored one to GET, or removes it if they differ (RFC 9111, section 4.3.5)"
    )
    func head() async throws {
        let cases: [(fields: HTTPHeaders, body: String, isKept: Bool)] = [
            (["ETag": "\"x\""], "x", true), ([:], "x", true), (["ETag": "\"y\""], "x", false), ([:], "xx", false),
            (["Cache-Control": "no-store"], "x", false),
        ]
        for (fields, body, isKept) in cases {
            try await cache.removeAll()
            let old: HTTPHeaders = ["Cache-Control": "max-age=60", "ETag": "\"x\"", "X": "1", "Y": "1"]
            transport.route("GET", "/a") { _ in .text("x", headers: old) }
            // The length is sent without a body.
            let base: HTTPHeaders = ["Cache-Control": "max-age=90", "X": "2"]
            let new = base.merging(fields)
            transport.route("HEAD", "/a") { _ in .text(body, headers: new) }
            _ = try await service().send(CachedCall())
            clock.advance(by: 61)
            let head = try await service().send(CachedCall(method: .head))
            expect(head.source == .network && head.body.isEmpty)
            let next = try? await service().cachedResponse(for: CachedCall())
            expect((next != nil), equals: isKept, "\(fields)")
            guard let next else { continue }
            try expect(next.text() == "x" && next.headers["X"] == "2" && next.headers["Y"] == "1")
            clock.advance(by: 89)
            try await expect(service().send(CachedCall()).source, equals: .cache)
        }
    }

    @Test(
        "BEY-10: a response to HEAD that does not match Vary, or is an error, does not change the entry"
    )
    func headOfOthers() async throws {
        answers(["Cache-Control": "max-age=60", "Vary": "Accept-Language"])
        let english = CachedCall(headers: ["Accept-Language": "en"])
        _ = try await ask(english)
        transport.route("HEAD", "/a") { _ in .status(200, headers: ["ETag": "\"new\"", "Vary": "Accept-Language"]) }
        _ = try await service().send(CachedCall(method: .head, headers: ["Accept-Language": "de"]))
        transport.route("HEAD", "/a") { _ in .status(503) }
        _ = try? await service().send(CachedCall(method: .head, headers: ["Accept-Language": "en"]))
        try await expect(ask(english), equals: "1 cache")
    }

    @Test("BEY-10: RFC 9110, section 14.4: a 200 with Content-Range is a 200")
    func contentRange() async throws {
        answers(["Cache-Control": "max-age=60", "Content-Range": "bytes 0-0/9"])
        try await expect(ask(), equals: "1 network")
        try await expect(ask(), equals: "1 cache")
    }

    @Test(
        "BEY-10, SEC-1: a response to a session is stored if it is public or in a partition"
    )
    func session() async throws {
        for (control, partition, source) in [
            ("max-age=60", nil, "2 network"), ("max-age=60, public", nil, "1 cache"), ("max-age=60", "ada", "1 cache"),
        ] {
            answers(["Cache-Control": control])
            let session = AuthenticationSession(TestTokens { _ in "new" }, credential: "old")
            let service = service {
                $0.authentication = session
                $0.cachePartition = partition
                $0.cache = NetworkCache(diskBytes: 0, clock: clock)
            }
            try await expect(ask(over: service), equals: "1 network")
            try await expect(ask(over: service), equals: source)
            session.signIn("other")
            try await expect(ask(over: service), equals: (source == "1 cache" ? source : "3 network"))
        }
    }

    @Test("BEY-10, SEC-1: without a partition an entry is for the same cookies only")
    func otherCookies() async throws {
        answers(["Cache-Control": "max-age=60"])
        let (ada, eve) = (CachedCall(headers: ["Cookie": "user=ada"]), CachedCall(headers: ["Cookie": "user=eve"]))
        try await expect(ask(ada), equals: "1 network")
        try await expect(ask(ada), equals: "1 cache")
        try await expect(ask(eve), equals: "2 network")
        let owned = service { $0.cachePartition = "ada" }
        try await expect(ask(ada, over: owned), equals: "3 network")
        try await expect(ask(eve, over: owned), equals: "3 cache")
    }

    @Test("BEY-10, CFG-3: cookies of the jar count if Vary names them")
    func cookies() async throws {
        answers(["Cache-Control": "max-age=60", "Vary": "Cookie"])
        let jar = CookieJar()
        let service = service { $0.cookies = jar }
        try await expect(ask(over: service), equals: "1 network")
        try await expect(ask(over: service), equals: "1 cache")
        let url = try #require(URL(string: "http://one.example/"))
        jar.store(["Set-Cookie": "user=ada"], from: url, at: clock.date)
        try await expect(ask(over: service), equals: "2 network")
        try await expect(ask(over: service), equals: "2 cache")
    }

    @Test("BEY-10: with stale-while-revalidate one request refreshes the entry in the background (RFC 5861, section 3)")
    func staleWhileRevalidate() async throws {
        answers(["Cache-Control": "max-age=60, stale-while-revalidate=30"])
        let service = service()
        try await expect(ask(over: service), equals: "1 network")
        clock.advance(by: 61)
        let sent = Locked(0)
        transport.route("GET", "/a") { _ in
            sent.withLock { $0 += 1 }
            return MockResponse(headers: ["Cache-Control": "max-age=60"], body: .data(Data("new".utf8)), delay: 5)
        }
        for _ in 0..<5 { try await expect(ask(over: service), equals: "1 cache") }
        service.cancel()
        await expect(transport.waitForRequests(2))
        await clock.waitForTimers(1)
        clock.advance(by: 5)
        let other = self.service()
        let key = CacheKey.http(try #require(URL(string: "http://one.example/a")), partition: nil)
        await expect(eventually { cache.memoryEntry(for: key)?.body == Data("new".utf8) })
        try await expect(ask(over: other), equals: "new cache")
        expect(sent.withLock { $0 } == 1 && transport.requests.count == 2)
    }

    @Test("BEY-10: with stale-if-error a stale response replaces an error of the server (RFC 5861, section 4)")
    func staleIfError() async throws {
        answers(["Cache-Control": "max-age=60, stale-if-error=100"])
        _ = try await ask()
        clock.advance(by: 100)
        transport.route("GET", "/a") { _ in .status(503) }
        let response = try await service().send(CachedCall())
        try expect(response.text() == "1" && response.source == .cache)
        expect(response.history.map(\.statusCode) == [503] && response.headers["Age"] == "100")
        transport.route("GET", "/a") { _ in .fault(.reset) }
        try await expect(ask(), equals: "1 cache")
        transport.route("GET", "/a") { _ in .status(404) }
        expect((await #expect(throws: NetworkError.self) { try await ask() })?.statusCode, equals: 404)
        transport.route("GET", "/a") { _ in .status(503) }
        clock.advance(by: 61)
        expect((await #expect(throws: NetworkError.self) { try await ask() })?.statusCode, equals: 503)
    }

    @Test("BEY-10: an unsafe method invalidates its URL and those that the response names (section 4.4)")
    func invalidation() async throws {
        for path in ["/a", "/b"] { answers(["Cache-Control": "max-age=60"], path: path) }
        for api in ["a", "b"] { _ = try await ask(CachedCall(api: api)) }
        transport.route("POST", "/a") { _ in .status(201, headers: ["Location": "/b"]) }
        transport.route("DELETE", "/b") { _ in .status(403) }
        _ = try await service().send(CachedCall(method: .post, cache: nil))
        await expect(cache.usage.memoryCount, equals: 0)
        _ = try await ask(CachedCall(api: "b"))
        _ = try? await service().send(CachedCall(api: "b", method: .delete, cache: nil))
        try await expect(ask(CachedCall(api: "b")), equals: "2 cache")
    }

    @Test("BEY-10, SEC-2: the response after a redirect is stored under its own URL")
    func redirect() async throws {
        transport.route("GET", "/old") { _ in .status(302, headers: ["Location": "/a"]) }
        answers(["Cache-Control": "max-age=60"])
        try await expect(ask(CachedCall(api: "old")), equals: "1 network")
        try await expect(ask(), equals: "1 cache")
        try await expect(ask(CachedCall(api: "old")), equals: "2 network")
        expect(transport.requests.count, equals: 4)
    }

    @Test("BEY-10, SEC-2: a redirect instead of a 304 is followed without conditions")
    func redirectOfRevalidation() async throws {
        answers(["Cache-Control": "no-cache", "ETag": "\"x\""])
        _ = try await ask()
        transport.route("GET", "/a") { _ in .status(302, headers: ["Location": "/b"]) }
        answers(["Cache-Control": "no-cache", "ETag": "\"x\""], path: "/b")
        let response = try await service().send(CachedCall())
        expect(response.source == .network && response.history.map(\.statusCode) == [302, 200])
    }

    @Test("BEY-10, BEY-8: a retry has the same conditions")
    func retry() async throws {
        answers(["Cache-Control": "no-cache", "ETag": "\"x\""])
        _ = try await ask()
        let isDown = Locked(true)
        transport.route("GET", "/a") { request in
            if isDown.exchange(false) { return .status(503) }
            return request.headers["If-None-Match"] == "\"x\"" ? .status(304) : .text("new")
        }
        let service = service {
            $0.retry = RetryPolicy()
            $0.random = { 0.5 }
        }
        let response = Task { try await service.send(CachedCall()) }
        await clock.waitForTimers(1)
        clock.advance(by: 60)
        try await expect(response.value.source, equals: .revalidated)
    }

    @Test("BEY-10: a request with a condition, or for several ranges, does not use the cache (sections 3 and 4)")
    func ownCondition() async throws {
        answers(["Cache-Control": "max-age=60", "ETag": "\"x\""])
        _ = try await ask()
        let ranges = try await service().send(CachedCall(headers: ["Range": "bytes=0-0,2-2"]))
        expect(ranges.source == .network && ranges.history.first?.cacheMiss == .mustAsk)
        let part = CachedCall(headers: ["Range": "bytes=0-0", "If-Modified-Since": Arrival.text()])
        try await expect(ask(part), equals: "3 network")
        try await expect(ask(), equals: "3 cache")
    }
}
