import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("EntityTag")
struct EntityTagTests {
    @Test(
        "BEY-10: RFC 9110, section 8.8.3: a tag is sent as it was received",
        arguments: ["\"a\"", "W/\"a\"", "\"\"", "\"é,!\""]
    )
    func sound(field: String) throws {
        expect(EntityTag(field)?.text, equals: field)
        let weak = try #require(EntityTag("W/\"a\""))
        let strong = try #require(EntityTag("\"a\""))
        expect(weak.isWeak && !strong.isWeak && weak.opaqueTag == strong.opaqueTag && weak != strong)
    }

    @Test(
        "BEY-10: RFC 9110, section 8.8.3: invalid tags are rejected, also the star, which matches any state",
        arguments: [
            "", "*", "a", "\"", "\"a", "w/\"a\"", "W/ \"a\"", "\"a\", \"b\"", "\"a\",\"b\"", "\"a b\"", "W/",
            "\"a\u{7F}\"",
        ]
    )
    func unsound(field: String) {
        expect(EntityTag(field) == nil)
    }

    @Test("BEY-10: RFC 9110, section 8.8.3: two tags are invalid")
    func repeated() {
        expect(EntityTag(HTTPHeaders.lines("ETag: \"a\" | ETag: \"b\"")) == nil)
        expect(EntityTag(HTTPHeaders.lines("etag: \"a\"")) != nil)
    }
}
