import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("NominatedFields")
struct NominatedFieldsTests {
    private func match(vary: String, _ first: String, _ second: String) -> Bool {
        NominatedFields(vary: .lines(vary), of: .lines(first)).match(.lines(second))
    }

    @Test(
        "BEY-10: RFC 9111, section 4.1: requests with the same values of the fields of Vary match",
        arguments: [
            ("", "Foo: 1", "Foo: 2"), ("Vary: Foo", "Foo: 1", "foo: 1 | Bar: 2"), ("Vary: Foo", "Bar: 1", ""),
            ("Vary: FOO", "foo: 1", "Foo: 1"), ("Vary: Foo", "Foo: 1, 2", "Foo: 1 | Foo: 2"),
            ("Vary: Foo", "Foo: 1,2", "Foo: 1 \t,  2"), ("Vary: Foo", "Foo: \"a,b\", c", "Foo: \"a,b\",c"),
            ("Vary: Foo, Bar", "Foo: 1 | Bar: 2", "Bar: 2 | Foo: 1"), ("Vary: , Foo, ", "Foo: 1", "Foo: 1"),
            ("Vary: Accept-Language", "Accept-Language: en-US,de;q=0.5", "Accept-Language: EN-us , DE; q=0.5"),
            ("Vary: Accept-Encoding", "Accept-Encoding: GZIP", "Accept-Encoding: gzip"),
        ]
    )
    func same(vary: String, first: String, second: String) {
        expect(match(vary: vary, first, second))
        expect(match(vary: vary, second, first))
    }

    @Test(
        "BEY-10: RFC 9111, section 4.1: requests with other values do not match",
        arguments: [
            ("Vary: Foo", "Foo: 1", "Foo: 2"), ("Vary: Foo", "Foo: 1", ""), ("Vary: Foo", "Foo:", ""),
            ("Vary: Foo", "Foo: a", "Foo: A"), ("Vary: Foo", "Foo: a b", "Foo: a  b"),
            ("Vary: Foo", "Foo: 1, 2", "Foo: 2, 1"), ("Vary: Foo", "Foo: \"a, b\"", "Foo: \"a,b\""),
            ("Vary: Foo", "Foo: \"a, b", "Foo: \"a,b"),
            ("Vary: Foo | Vary: Bar", "Foo: 1 | Bar: 2", "Foo: 1 | Bar: 3"),
            ("Vary: Authorization", "Authorization: Bearer a", "Authorization: Bearer b"),
            ("Vary: Cookie", "Cookie: a=1", "Cookie: a=2"),
            ("Vary: Accept-Language", "Accept-Language: en, de", "Accept-Language: en"),
            ("Vary: *", "", ""), ("Vary: *, Foo", "Foo: 1", "Foo: 1"), ("Vary: Foo | Vary: *", "Foo: 1", "Foo: 1"),
            ("Vary: , *", "", ""), ("Vary: a b", "", ""), ("Vary: \"Foo\"", "", ""),
        ]
    )
    func other(vary: String, first: String, second: String) {
        expect(!match(vary: vary, first, second))
        expect(!match(vary: vary, second, first))
    }

    @Test(
        "BEY-10: RFC 9110, section 12.5: preferences with the same weights match, in any order and spelling",
        arguments: [
            ("Accept-Language", "en, de", "de, en"), ("Accept-Language", "en, de", "eN, De"),
            ("Accept-Language", "en, de", " en ,   de"), ("Accept-Language", "en,de;q=0.5", "de;Q=0.50, en;q=1"),
            ("Accept-Language", "en;q=1.000, , fr;q=0", "fr;q=0.0,en"),
            ("Accept-Encoding", "gzip, br;q=0.8", "br; q=0.8,gzip;q=1"),
            ("Accept-Charset", "utf-8, *;q=0.1", "*;q=.1,UTF-8"),
        ]
    )
    func samePreferences(name: String, first: String, second: String) {
        expect(match(vary: "Vary: \(name)", "\(name): \(first)", "\(name): \(second)"))
        expect(match(vary: "Vary: \(name)", "\(name): \(second)", "\(name): \(first)"))
    }

    @Test(
        "BEY-10: RFC 9110, section 12.5: preferences with other weights, and invalid ones in another order, do not match",
        arguments: [
            ("en, de;q=0.5", "en;q=0.5, de"), ("en, de", "en, de;q=0.9"), ("en, de;q=0", "en"),
            ("en, fr;q=x", "fr;q=x, en"),
            ("en, fr;q=0.5;a=b", "fr;q=0.5;a=b, en"), ("en, fr;q=nan", "fr;q=nan, en"), ("en-GB", "en"),
            ("en, de", "ende"), ("en, d/e", "d/e, en"),
        ]
    )
    func otherPreferences(first: String, second: String) {
        expect(!match(vary: "Vary: Accept-Language", "Accept-Language: \(first)", "Accept-Language: \(second)"))
    }

    @Test("BEY-10: RFC 9111, section 4.1: further fields can be nominated")
    func more() {
        let request = HTTPHeaders.lines("Authorization: Bearer a | Foo: 1")
        let fields = NominatedFields(vary: ["Vary": "Foo"], and: ["Authorization"], of: request)
        expect(fields.match(request))
        expect(!fields.match(.lines("Authorization: Bearer b | Foo: 1")))
        expect(Set(fields.digests.keys), equals: ["foo", "authorization"])
    }

    @Test(
        "BEY-10, SEC-1: a further credential does not match; a cookie that is not nominated does"
    )
    func additionalCredential() {
        let fields = NominatedFields(vary: HTTPHeaders(), and: ["X-Api-Key"], of: ["X-Api-Key": "ada", "X-Page": "1"])
        expect(fields.match(["x-api-key": "ada", "X-Page": "2", "Cookie": "a=b"]))
        expect(!fields.match(["X-Api-Key": "bob"]) && !fields.match(HTTPHeaders()))
        expect(!fields.match(["X-Api-Key": "ada", "X-Auth-Token": "bob"]))
    }

    @Test("BEY-10: a repeated name of Vary counts once")
    func repeatedName() {
        let vary: HTTPHeaders = ["Vary": Array(repeating: "Foo, foo", count: 5_000).joined(separator: ",")]
        expect(
            NominatedFields(vary: vary, of: ["Foo": "1"]),
            equals: NominatedFields(vary: ["Vary": "foo"], of: ["Foo": "1"])
        )
    }

    @Test(
        "BEY-10: RFC 9111, section 7.1: credentials are stored as a digest, also in an entry, and absent fields as absent"
    )
    func digests() throws {
        let vary: HTTPHeaders = ["Vary": "Authorization, Cookie, Accept"]
        let request = HTTPHeaders.lines("Authorization: Bearer secret | Cookie: sid=secret")
        let fields = NominatedFields(vary: vary, of: request)
        let data = try JSONEncoder().encode(fields)
        expect(!String(decoding: data, as: UTF8.self).contains("secret"))
        expect(!"\(fields)".contains("secret"))
        expect(fields.digests["cookie"], equals: SHA256.digest(of: Data("sid=secret".utf8)))
        expect(fields.digests["accept"], equals: .some(nil))
        let read = try JSONDecoder().decode(NominatedFields.self, from: data)
        expect(read == fields && read.match(request) && !read.match(request.merging(["Accept": "*/*"])))
    }

    @Test("BEY-10: RFC 9111, section 4.1: an entry without nominated fields matches no request")
    func unknown() {
        let entry = NetworkCache.Entry(key: "k", requestedAt: Arrival.date, receivedAt: Arrival.date)
        expect(!StoredResponse(entry).nominated.match(HTTPHeaders()))
    }
}
