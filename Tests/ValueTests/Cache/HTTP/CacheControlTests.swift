import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("CacheControl")
struct CacheControlTests {
    private func response(_ lines: String...) -> CacheControl {
        CacheControl(response: HTTPHeaders(lines.map { HTTPHeaders.Field(name: "cache-control", value: $0) }))
    }

    private func request(_ line: String) -> CacheControl {
        CacheControl(request: ["Cache-Control": line])
    }

    @Test(
        "BEY-10: RFC 9111, section 5.2: max-age is a number, as a token or in quotes",
        arguments: [
            ("max-age=60", 60.0), ("MAX-Age=60", 60), ("max-age=\"60\"", 60), ("max-age=0060", 60),
            (" , no-transform,\tmax-age=60 ,", 60), ("x=\"a, b\", max-age=60", 60),
            ("extension=\"max-age=3600\", max-age=1", 1), ("max-age=1, extension=\"max-age=3600\"", 1),
            ("a=\"\\\", max-age=9, \", max-age=60", 60), ("\"x, max-age=9\", max-age=60", 60),
        ]
    )
    func maxAge(field: String, seconds: TimeInterval) {
        expect(response(field).maxAge, equals: seconds)
    }

    @Test(
        "BEY-10: RFC 9111, section 4.2.1: an invalid number means stale",
        arguments: [
            "max-age", "max-age=", "max-age=-1", "max-age=+5", "max-age=1.5", "max-age=3600.0", "max-age='60'",
            "max-age=a60", "max-age=60a", "max-age =60", "max-age= 60", "max-age=60 s", "max-age=\"60",
            "max-age=\"\"", "max-age=６０", "max-age=x, max-age=60",
        ]
    )
    func invalidSeconds(field: String) {
        expect(response(field).maxAge, equals: 0)
    }

    @Test(
        "BEY-10: RFC 9111, section 1.2.2: a too large number becomes 2^31",
        arguments: ["2147483648", "2147483649", "99999999999999999999999", String(repeating: "9", count: 400)]
    )
    func overflow(number: String) {
        expect(response("max-age=" + number).maxAge, equals: 2_147_483_648)
        expect(response("max-age=2147483647").maxAge, equals: 2_147_483_647)
    }

    @Test("BEY-10: RFC 9111, section 4.2.1: the first directive of a name counts, on one line or several")
    func repeated() {
        expect(response("max-age=1, max-age=1800").maxAge, equals: 1)
        expect(response("max-age=1800", "max-age=1").maxAge, equals: 1_800)
        expect(response("max-age=1800", "No-Store").noStore)
    }

    @Test("BEY-10: RFC 9111, section 5.2: absent and unknown directives and those of shared caches are ignored")
    func others() {
        let control = response("s-maxage=60, proxy-revalidate, community=\"UCI\"")
        expect(control.maxAge == nil && control.staleIfError == nil && control.maxStale == nil)
        expect(!control.noStore && !control.noCache && !control.mustRevalidate && !control.isPublic)
        expect(CacheControl(response: HTTPHeaders()).directives.isEmpty)
    }

    @Test(
        "BEY-10: RFC 9111, section 5.2.2: restrictive directives count after malformed ones",
        arguments: [
            "x=\"a, no-store", "\"x, no-store", "@, no-store", "no-store x", "no-store=1", "max-age=\", no-store",
            "=, no-store", "x=\"\\, no-store", "a b \"c, d\" e, NO-STORE",
        ]
    )
    func malformed(field: String) {
        expect(response(field).noStore)
    }

    @Test("BEY-10: RFC 9111, section 5.2.2.4: no-cache with fields excludes only these")
    func qualifiedNoCache() {
        let control = response("no-cache=\"Set-Cookie, x-Token\"", "no-cache=X-Other")
        expect(!control.noCache && control.fieldsNotToStore == ["set-cookie", "x-token", "x-other"])
        expect(response("private=\"Set-Cookie\"").isPrivate)
        expect(response("private=\"Set-Cookie\"").fieldsNotToStore, equals: [])
    }

    @Test(
        "BEY-10: RFC 9111, section 5.2.2.4: no-cache with fields that cannot be left out is for the whole response",
        arguments: [
            "no-cache", "No-Cache", "no-cache=\"\"", "no-cache=", "no-cache=\" , \"", "no-cache=\"a b\"",
            "no-cache=\"Set-Cookie", "no-cache=\"Vary\"", "no-cache=\"X, Cache-Control\"",
            "no-cache=\"Set-Cookie\", no-cache", "no-cache= \"Set-Cookie\"",
        ]
    )
    func wholeNoCache(field: String) {
        expect(response(field).noCache)
    }

    @Test("BEY-10: RFC 9111, section 5.2.1: directives of requests; invalid ones are restrictive")
    func requests() {
        expect(request("max-stale").maxStale, equals: .infinity)
        expect(request("max-stale=5").maxStale, equals: 5)
        expect(request("max-stale=x").maxStale == 0 && request("max-stale=").maxStale == 0)
        expect(request("min-fresh=5").minFresh, equals: 5)
        expect(request("min-fresh").minFresh == 2_147_483_648 && request("min-fresh=x").minFresh == 2_147_483_648)
        expect(request("only-if-cached").onlyIfCached && request("stale-if-error=9").staleIfError == 9)
    }

    @Test("BEY-10: RFC 9111, section 5.4: Pragma counts in a request without Cache-Control, and in no response")
    func pragma() {
        expect(CacheControl(request: ["Pragma": "No-Cache"]).noCache)
        expect(CacheControl(request: ["Pragma": "x, no-cache"]).noCache)
        expect(CacheControl(request: ["Pragma": "no-store, max-age=1"]).directives.isEmpty)
        expect(!CacheControl(request: ["Pragma": "no-cache", "Cache-Control": "max-age=1"]).noCache)
        expect(!CacheControl(request: ["Pragma": "no-cache", "Cache-Control": ""]).noCache)
        expect(!CacheControl(response: ["Pragma": "no-cache"]).noCache)
    }

    @Test("BEY-10: RFC 9111, section 5.2: any bytes are read to the end", arguments: UInt64(1)...5)
    func anyBytes(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let pieces = ["no-store", "max-age", "=", "\"", "\\", ",", " ", "\t", "60", "é", "@", "no-cache", ";"]
        for _ in 0..<500 {
            let field = (0..<Int.random(in: 0..<12, using: &generator))
                .compactMap { _ in pieces.randomElement(using: &generator) }.joined()
            let control = response(field)
            expect(control.directives.allSatisfy { HTTPSyntax.isToken($0.name.utf8) }, "seed \(seed): \(field)")
        }
    }
}
