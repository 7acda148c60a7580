import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("StoredResponse")
struct StoredResponseTests {
    @Test("BEY-10: RFC 9111, section 3.1: fields of the connection and of proxies are not stored, all others are")
    func storedFields() {
        let stored = StoredResponse.stub(
            """
            Connection: close, X-Hop | Connection: x-other | X-Hop: 1 | X-Other: 2 | Keep-Alive: 5 | TE: x | Upgrade: h2 \
            | Proxy-Authenticate: Basic | Proxy-Authentication-Info: x | Proxy-Authorization: x | Proxy-Connection: x \
            | Transfer-Encoding: chunked | Set-Cookie: a=1 | Set-Cookie: b=2 | X-Kept: 3 | Content-Length: 4 \
            | Date: \(Arrival.text(-1))
            """
        )
        let kept = "Set-Cookie: a=1 | Set-Cookie: b=2 | X-Kept: 3 | Content-Length: 4 | Date: \(Arrival.text(-1))"
        expect(stored.headers, equals: .lines(kept))
    }

    @Test("BEY-10: RFC 9111, section 5.2.2.4: fields of no-cache are not stored")
    func noCacheFields() {
        let stored = StoredResponse.stub("Cache-Control: no-cache=\"Set-Cookie\" | Set-Cookie: a | X: 1")
        expect(stored.headers["Set-Cookie"] == nil && stored.headers["X"] == "1")
    }

    @Test(
        "BEY-10: RFC 9110, section 6.6.1: a response without a date has that of its arrival",
        arguments: ["", "Date: x"]
    )
    func date(field: String) {
        expect(StoredResponse.stub(field).headers["Date"], equals: Arrival.text())
    }

    @Test(
        "BEY-10: RFC 9111, sections 4 and 5.1: a stored response has its age in whole seconds, and its own date"
    )
    func age() {
        let stored = StoredResponse.stub("Age: 10 | Age: 3 | Date: \(Arrival.text(-2))")
        let headers = stored.headers(at: Arrival.date + 5.9)
        expect(headers.values(for: "Age") == ["15"] && headers["Date"] == Arrival.text(-2))
        expect(stored.headers(at: .distantFuture)["Age"], equals: "2147483648")
        expect(stored.headers(at: Date(timeIntervalSince1970: .nan))["Age"], equals: "2147483648")
        expect(StoredResponse.stub("").headers(at: Arrival.date)["Age"], equals: "0")
    }

    @Test("BEY-10: RFC 9111, section 4.2.3: the response delay counts as age")
    func delay() {
        let entry = NetworkCache.Entry(
            key: "k",
            headers: ["Age": "10"],
            requestedAt: Arrival.date - 7,
            receivedAt: Arrival.date
        )
        let stored = StoredResponse(arrived: entry, request: [:])
        expect(stored.headers(at: Arrival.date)["Age"], equals: "17")
    }
}

@Suite("StoredResponse: validation")
struct StoredResponseValidationTests {
    private func freshened(_ stored: String, by response: String, request: String = "") -> StoredResponse? {
        StoredResponse.stub(stored, request: request)
            .freshened(
                by: .lines(response),
                request: .lines(request),
                requestDate: Arrival.date + 99,
                responseDate: Arrival.date + 100
            )
    }

    @Test("BEY-10: RFC 9111, section 3.2: a 304 replaces its fields and keeps the others")
    func update() throws {
        let old = "ETag: \"a\" | Cache-Control: max-age=60 | X: 1 | X: 2 | Y: 1 | Content-Type: text/plain"
        let new = "ETag: \"a\" | cache-control: max-age=90 | x: 3 | Z: 4 | Z: 5 | Content-Type: text/html"
        let stored = try #require(freshened(old, by: new))
        expect(stored.headers["Cache-Control"] == "max-age=90" && stored.headers.values(for: "X") == ["3"])
        expect(stored.headers["Y"] == "1" && stored.headers.values(for: "Z") == ["4", "5"])
        expect(stored.headers["Content-Type"] == "text/html" && stored.entry.statusCode == 200)
        expect(stored.headers.values(for: "ETag"), equals: ["\"a\""])
    }

    @Test(
        "BEY-10: RFC 9111, section 3.2: a 304 does not change fields of the stored body and of the connection",
        arguments: [
            "Content-Length", "Content-Encoding", "Content-Range", "Transfer-Encoding", "Connection", "Keep-Alive",
            "Upgrade", "TE", "Proxy-Authenticate", "Proxy-Connection", "X-Hop",
        ]
    )
    func excluded(name: String) throws {
        let old = StoredResponse.stub("ETag: \"a\" | \(name): 36 | X-Hop: 1")
        let new = HTTPHeaders.lines("ETag: \"a\" | Connection: x-hop | \(name): 10")
        let stored = try #require(
            old.freshened(by: new, request: [:], requestDate: Arrival.date, responseDate: Arrival.date)
        )
        expect(stored.headers[name], equals: old.headers[name])
    }

    @Test("BEY-10: RFC 9111, section 4.2.3: the age starts with the 304")
    func age() throws {
        let old = "ETag: \"a\" | Cache-Control: max-age=60 | Age: 50 | Date: \(Arrival.text(-50))"
        let plain = try #require(freshened(old, by: "ETag: \"a\""))
        expect(plain.headers["Age"] == nil && plain.headers["Date"] == Arrival.text(100))
        expect(plain.entry.requestedAt == Arrival.date + 99 && plain.entry.receivedAt == Arrival.date + 100)
        expect(plain.isFresh(at: Arrival.date + 150))
        let aged = try #require(freshened(old, by: "ETag: \"a\" | Age: 20 | Date: \(Arrival.text(80))"))
        expect(aged.headers["Age"] == "20" && aged.headers["Date"] == Arrival.text(80))
        expect(aged.initialAge, equals: 21)
    }

    @Test("BEY-10: RFC 9111, section 5.2.2: the directives of the 304 count at once")
    func directives() throws {
        let old = "ETag: \"a\" | Cache-Control: max-age=600 | X: 1"
        let forbidden = try #require(freshened(old, by: "Cache-Control: no-store"))
        expect(forbidden.reuse(for: .get, [:], at: Arrival.date + 100), equals: .unusable)
        let partial = try #require(freshened(old, by: "Cache-Control: no-cache=\"X\""))
        expect(partial.headers["X"] == nil)
    }

    @Test("BEY-10: RFC 9111, section 4.1: a Vary of the 304 counts from then on, with the fields of the request")
    func vary() throws {
        let old = "ETag: \"a\" | Vary: Foo"
        let stored = try #require(freshened(old, by: "Vary: Bar", request: "Foo: 1 | Bar: 2"))
        expect(stored.nominated.match(.lines("Foo: 1 | Bar: 2")))
        expect(!stored.nominated.match(.lines("Foo: 1")) && !stored.nominated.match(.lines("Bar: 2")))
    }

    private static let confirmations: [(String, String, Bool)] = [
        ("ETag: \"a\"", "ETag: \"a\"", true), ("ETag: \"a\"", "ETag: \"b\"", false),
        ("ETag: W/\"a\"", "ETag: W/\"a\"", true), ("ETag: W/\"a\"", "ETag: W/\"b\"", false),
        // The tags of nginx for a compressed response and for the 304.
        ("ETag: W/\"a\"", "ETag: \"a\"", true), ("ETag: \"a\"", "ETag: W/\"a\"", true),
        ("Last-Modified: \(Arrival.text(-9))", "Last-Modified: \(Arrival.text(-9))", true),
        ("Last-Modified: \(Arrival.text(-9))", "Last-Modified: \(Arrival.text(-8))", false),
        ("ETag: \"a\" | Last-Modified: \(Arrival.text(-9))", "Last-Modified: \(Arrival.text(-8))", false),
        ("ETag: \"a\" | Last-Modified: \(Arrival.text(-9))", "ETag: \"a\" | Last-Modified: \(Arrival.text(-8))", true),
        ("ETag: \"a\" | Last-Modified: \(Arrival.text(-9))", "ETag: \"b\" | Last-Modified: \(Arrival.text(-9))", false),
        ("Last-Modified: \(Arrival.text(-9))", "ETag: \"a\" | Last-Modified: \(Arrival.text(-9))", true),
        ("Last-Modified: \(Arrival.text(-9))", "ETag: \"a\" | Last-Modified: \(Arrival.text(-8))", false),
        ("X: 1", "ETag: \"a\"", false), ("ETag: \"a\"", "", true), ("Last-Modified: \(Arrival.text(-9))", "", true),
        ("", "", true),
    ]

    @Test(
        "BEY-10: RFC 9111, section 4.3.4: a 304 validates the response with its validator",
        arguments: confirmations
    )
    func confirmation(stored: String, response: String, expected: Bool) {
        expect((freshened(stored, by: response) != nil), equals: expected)
    }

    @Test("BEY-10: RFC 9111, section 4.3.4: a weak tag stays weak")
    func weakness() throws {
        let stored = try #require(freshened("ETag: W/\"a\"", by: "ETag: \"a\""))
        expect(stored.headers.values(for: "ETag"), equals: ["W/\"a\""])
    }
}
