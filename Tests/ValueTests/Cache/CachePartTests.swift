import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

/// Parts of responses, by ranges (RFC 9110, section 14; RFC 9111, section 3.3).
@Suite("Parts in the cache", .timeLimit(.minutes(10)))
struct CachePartTests: CacheSuite {
    private static let body = Data("0123456789".utf8)

    let fixture = CachedCallFixture()
    private let headers = Locked<HTTPHeaders>(["Cache-Control": "max-age=60", "ETag": "\"x\"", "X-Version": "1"])

    init() {
        transport.route("GET", "/a") { [headers] request in
            let fields = headers.withLock { $0 }
            guard let range = request.headers["Range"], request.headers["If-Range"] ?? "\"x\"" == "\"x\"" else {
                return MockResponse(headers: fields, body: .data(Self.body))
            }
            guard let part = ContentRange(bodyCount: 10).part(range), let bytes = part.range else {
                return .status(416, headers: ["Content-Range": "bytes */10"])
            }
            let fieldsOfPart = fields.merging(["Content-Range": part.fieldValue ?? ""])
            let data = Self.body.subdata(in: Int(bytes.lowerBound)..<Int(bytes.upperBound))
            return MockResponse(statusCode: 206, headers: fieldsOfPart, body: .data(data))
        }
    }

    private func send(_ range: String? = nil, also headers: [String: String] = [:]) async throws -> NetworkResponse {
        let fields = headers.merging(range.map { ["Range": "bytes=\($0)"] } ?? [:]) { $1 }
        let validation = ResponseValidation(statusCodes: 200...599)
        return try await service().send(CachedCall(headers: fields, validation: validation))
    }

    private func ask(_ range: String? = nil, also headers: [String: String] = [:]) async throws -> String {
        let response = try await send(range, also: headers)
        return "\(response.statusCode) \(try response.text()) \(response.source)"
    }

    @Test(
        "BEY-10: RFC 9111, section 4: a fresh whole response answers a request for a part with a 206",
        arguments: [
            ("0-1", "01", "0-1"), ("1-", "123456789", "1-9"), ("-1", "9", "9-9"), ("-99", "0123456789", "0-9"),
            ("8-99", "89", "8-9"), ("0-0", "0", "0-0"), ("9-", "9", "9-9"), ("0-9", "0123456789", "0-9"),
        ]
    )
    func ofWhole(range: String, text: String, contents: String) async throws {
        headers.withLock { $0["Content-Digest"] = "sha-256=:YQ==:" }
        try await expect(ask(), equals: "200 0123456789 network")
        clock.advance(by: 59)
        let response = try await send(range)
        expect(response.source == .cache && response.statusCode == 206)
        try expect(response.text(), equals: text)
        expect(response.headers["Content-Range"], equals: "bytes \(contents)/10")
        expect(response.headers["Content-Length"], equals: "\(text.count)")
        expect(response.headers["ETag"] == "\"x\"" && response.headers["X-Version"] == "1")
        expect(response.headers["Age"] == "59" && response.headers["Content-Digest"] == nil)
        try await expect(ask(), equals: "200 0123456789 cache", "the whole stays")
    }

    @Test(
        "BEY-10: RFC 9110, section 14.2: several parts, other units, invalid ranges and ones behind the end go to the server",
        arguments: ["0-1,3-4", "10-", "10-12", "5-4", "-0", "-", "a-b", "0-1-2", "", "+1-2"]
    )
    func otherRanges(range: String) async throws {
        _ = try await ask()
        try await expect(send(range).source, equals: .network)
        expect(transport.requests.last?.headers["Range"], equals: "bytes=\(range)")
        try await expect(send(nil, also: ["Range": "items=0-1"]).source, equals: .network)
        try await expect(ask(), equals: "200 0123456789 cache")
    }

    @Test("BEY-10: a stale whole response does not answer for a part, and the part is stored beside it")
    func staleWhole() async throws {
        _ = try await ask()
        clock.advance(by: 61)
        try await expect(ask("0-3"), equals: "206 0123 network")
        expect(transport.requests.last?.headers["If-None-Match"] == nil, "a 304 has no part")
        try await expect(ask("1-2"), equals: "206 12 cache")
        transport.route("GET", "/a") { request in
            request.headers["If-None-Match"] == "\"x\"" ? .status(304) : .text("other")
        }
        try await expect(ask(), equals: "200 0123456789 revalidated")
    }

    @Test("BEY-10: RFC 9110, section 13.1.5: If-Range has to be the strong validator of the stored response")
    func ifRange() async throws {
        _ = try await ask()
        try await expect(ask("0-1", also: ["If-Range": "\"x\""]), equals: "206 01 cache")
        try await expect(ask("0-1", also: ["If-Range": "\"y\""]), equals: "200 0123456789 network")
        try await expect(ask("0-1", also: ["If-Range": "W/\"x\""]), equals: "200 0123456789 network")
        let (old, now) = ((clock.date - 9).httpText, clock.date.httpText)
        headers.withLock { $0 = ["Cache-Control": "max-age=60", "Last-Modified": old, "Date": now] }
        _ = try await ask(also: ["Cache-Control": "no-cache"])
        try await expect(ask("0-1", also: ["If-Range": old]), equals: "206 01 cache")
        try await expect(ask("0-1", also: ["If-Range": now]), equals: "200 0123456789 network")
        headers.withLock { $0 = ["Cache-Control": "max-age=60", "ETag": "W/\"x\""] }
        _ = try await ask(also: ["Cache-Control": "no-cache"])
        try await expect(ask("0-1", also: ["If-Range": "W/\"x\""]), equals: "200 0123456789 network")
        try await expect(ask("0-1"), equals: "206 01 cache")
    }

    @Test("BEY-10: a stored part answers requests for what it contains, and never one for the whole")
    func ofPart() async throws {
        try await expect(ask("-6"), equals: "206 456789 network")
        for (range, expected) in [
            ("-6", "456789"), ("6-8", "678"), ("6-", "6789"), ("-1", "9"), ("4-99", "456789"), ("4-4", "4"),
        ] {
            let response = try await send(range)
            try expect(response.text() == expected && response.source == .cache && response.statusCode == 206)
            let part = ContentRange(bodyCount: 10).part("bytes=\(range)")
            expect(response.headers["Content-Range"], equals: part?.fieldValue)
        }
        try await expect(ask("6-7", also: ["If-Range": "\"x\""]), equals: "206 67 cache")
        try await expect(ask("3-5"), equals: "206 345 network")
        try await expect(ask("3-4"), equals: "206 34 cache", "both parts are stored")
        try await expect(ask("6-"), equals: "206 6789 cache")
        try await expect(ask("-7"), equals: "206 3456789 network", "parts are not combined")
        let only = ["Cache-Control": "only-if-cached"]
        await #expect(throws: NetworkError.self) { try await send(also: only) }
        await #expect(throws: NetworkError.self) { try await send("0-", also: only) }
        try await expect(ask(), equals: "200 0123456789 network")
        try await expect(ask(), equals: "200 0123456789 cache")
        try await expect(ask("0-"), equals: "206 0123456789 cache")
        clock.advance(by: 61)
        try await expect(ask("6-8"), equals: "206 678 network", "a part is not validated")
    }

    @Test("BEY-10: even a part that has all bytes is not used for a request for the whole")
    func wholePart() async throws {
        try await expect(ask("0-"), equals: "206 0123456789 network")
        try await expect(ask(), equals: "200 0123456789 network")
    }

    @Test("BEY-10: parts are for requests with the same fields of Vary and the same credentials only")
    func variants() async throws {
        headers.withLock { $0["Vary"] = "X-Kind" }
        _ = try await ask("0-3", also: ["X-Kind": "1"])
        try await expect(ask("0-3", also: ["X-Kind": "2"]), equals: "206 0123 network")
        try await expect(ask("0-3", also: ["X-Kind": "1"]), equals: "206 0123 cache")
        try await expect(ask("0-3", also: ["X-Kind": "1", "Authorization": "ada"]), equals: "206 0123 network")
    }

    static let unstorable: [(headers: HTTPHeaders, body: String)] = [
        (["Content-Range": "bytes 4-9/10"], "01234"), (["Content-Range": "bytes 4-8/10"], "012345"),
        (["Content-Range": "bytes 0-9/5"], "0123456789"), (["Content-Range": "bytes */10"], ""),
        (["Content-Type": "multipart/byteranges; boundary=a"], "--a"), ([:], "01234"),
        (["Content-Range": "items 0-4/10"], "01234"),
        (["Content-Range": "bytes 0-4/10", "Content-Encoding": "x"], "01234"),
        (["Content-Range": "bytes 0-4/10", "Cache-Control": "no-cache"], "01234"),
        (["Content-Range": "bytes 0-4/10", "Cache-Control": "no-store"], "01234"),
    ]

    @Test(
        "BEY-10: a 206 whose body is not what Content-Range says, is coded, or cannot be used without validation is not stored",
        arguments: unstorable
    )
    func unstored(fields: HTTPHeaders, body: String) async throws {
        let base: HTTPHeaders = ["Cache-Control": "max-age=60", "ETag": "\"x\""]
        transport.route("GET", "/a") { _ in
            MockResponse(statusCode: 206, headers: base.merging(fields), body: .data(Data(body.utf8)))
        }
        _ = try await send("0-4")
        await expect(cache.entries, equals: [])
        // Not for a request without a range either.
        _ = try await send()
        await expect(cache.entries, equals: [])
    }

    @Test("BEY-10: a part that is not stored does not outdate the stored whole")
    func otherPart() async throws {
        for fields: HTTPHeaders in [["Cache-Control": "no-store"], [:], ["Cache-Control": "max-age=60", "Vary": "*"]] {
            _ = try await ask()
            clock.advance(by: 61)
            headers.withLock { $0 = fields }
            try await expect(ask("0-1"), equals: "206 01 network")
            await expect(cache.entries.map(\.statusCode), equals: [200], "\(fields)")
            headers.withLock { $0 = ["Cache-Control": "max-age=60", "ETag": "\"x\""] }
            try await cache.removeAll()
        }
        _ = try await ask()
        clock.advance(by: 61)
        var call = CachedCall(headers: ["Range": "bytes=0-1"])
        call.cache?.isStorable = { _ in false }
        _ = try await service().send(call)
        await expect(cache.entries.map(\.statusCode), equals: [200])
    }

    @Test("BEY-10: a part whose whole has no known length answers ranges with both ends")
    func unknownLength() async throws {
        transport.route("GET", "/a") { _ in
            let fields: HTTPHeaders = ["Cache-Control": "max-age=60", "Content-Range": "bytes 2-5/*"]
            return MockResponse(statusCode: 206, headers: fields, body: .data(Data("2345".utf8)))
        }
        _ = try await send("2-5")
        let response = try await send("3-4")
        try expect(response.text() == "34" && response.source == .cache)
        expect(response.headers["Content-Range"], equals: "bytes 3-4/*")
        for range in ["3-", "-1", "2-6"] { try await expect(send(range).source, equals: .network) }
    }

    @Test("BEY-10: a whole response with a content coding, an error, or another status does not answer for a part")
    func otherWholes() async throws {
        headers.withLock { $0["Content-Encoding"] = "x" }
        for status in [200, 404, 301] {
            try await cache.removeAll()
            transport.route("GET", "/a") { [headers] _ in
                let fields = headers.withLock { $0 }
                return MockResponse(statusCode: status, headers: fields, body: .data(Self.body))
            }
            try await expect(send().source, equals: .network)
            try await expect(send().source, equals: .cache)
            try await expect(send("0-1").source, equals: .network)
            headers.withLock { $0["Content-Encoding"] = nil }
        }
    }

    @Test("BEY-10: parts are invalidated with their URL, and found after a relaunch", arguments: [0, 20_000_000])
    func onDisk(memoryBytes: Int) async throws {
        let fixture = CacheFixture()
        func cache() -> NetworkCache { fixture.cache(memoryBytes: memoryBytes) }
        func ask(_ range: String?, _ cache: NetworkCache) async throws -> String {
            let fields = range.map { ["Range": "bytes=\($0)"] }
            let response = try await service(with: cache).send(CachedCall(headers: fields))
            await cache.flush()
            return "\(try response.text()) \(response.source)"
        }
        try await expect(ask("0-3", cache()), equals: "0123 network")
        try await expect(ask("6-9", cache()), equals: "6789 network")
        try await expect(ask("1-2", cache()), equals: "12 cache")
        try await expect(ask("-2", cache()), equals: "89 cache")
        try await expect(ask(nil, cache()), equals: "0123456789 network")
        try await expect(ask("2-7", cache()), equals: "234567 cache")
        let last = cache()
        try service(with: last).removeCachedResponse(for: CachedCall())
        await last.flush()
        expect(fixture.paths(), equals: [])
        try await expect(ask("1-2", last), equals: "12 network")
    }

    @Test(
        "BEY-10: random ranges get the bytes that the server has",
        arguments: UInt64(1)...UInt64(TestLoad.count(8, part: 2))
    )
    func random(seed: UInt64) async throws {
        var generator = SeededGenerator(seed: seed)
        for step in 0..<150 {
            let (first, last) = (Int.random(in: 0..<12, using: &generator), Int.random(in: 0..<14, using: &generator))
            let range = ["\(first)-\(last)", "\(first)-", "-\(last)", nil].randomElement(using: &generator) ?? nil
            let response = try await send(range)
            let part = range.flatMap { ContentRange(bodyCount: 10).part("bytes=\($0)") }
            guard let bytes = part?.range else {
                expect(response.statusCode, equals: (range == nil ? 200 : 416), "seed \(seed), step \(step)")
                continue
            }
            expect(response.statusCode == 206 && response.headers["Content-Range"] == part?.fieldValue)
            expect(response.body, equals: Self.body.subdata(in: Int(bytes.lowerBound)..<Int(bytes.upperBound)))
            if step % 20 == 19 { clock.advance(by: 61) }
        }
        await expect(cache.entries.count <= CacheEntry.variantLimit)
        expect(transport.requests.count < 130, "seed \(seed)")
    }
}
