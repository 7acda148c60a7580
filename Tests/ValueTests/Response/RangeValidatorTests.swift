import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("RangeValidator")
struct RangeValidatorTests {
    private static let modified = "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT"
    private static let later = "Date: Sun, 06 Nov 1994 08:49:38 GMT"

    @Test("TRF-3: RFC 9110, section 13.1.5: a strong tag is the value of If-Range as written, and precedes the date")
    func strongTag() {
        for tag in ["\"a\"", "\"\"", "\"é,!\""] {
            let validator = RangeValidator(HTTPHeaders.lines("\(Self.modified) | etag: \(tag) | \(Self.later)"))
            expect(validator == .entityTag(tag) && validator?.fieldValue == tag)
        }
    }

    @Test(
        "TRF-3: RFC 9110, section 13.1.5: without a tag it is the date as written, if the answer is later"
    )
    func date() {
        let now = Date(timeIntervalSince1970: 784_111_777)
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT", "sun, 06 nov 1994 08:49:37 gmt", "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ] {
            let validator = RangeValidator(HTTPHeaders.lines("Last-Modified: \(text) | \(Self.later)"), now: now)
            expect(validator == .date(text) && validator?.fieldValue == text, "\(text)")
        }
    }

    @Test(
        "TRF-3: RFC 9110, section 8.8.2.2: the date of the second of the answer is no strong validator",
        arguments: [
            modified, later, "\(modified) | Date: Sun, 06 Nov 1994 08:49:37 GMT",
            "\(modified) | Date: Sun, 06 Nov 1994 08:49:36 GMT", "\(modified) | Date: today",
            "Last-Modified: 1994 | \(later)",
            "\(modified) | \(modified.replacing("1994", with: "1993")) | \(later)", "",
        ]
    )
    func weakDate(fields: String) {
        expect(RangeValidator(HTTPHeaders.lines(fields)) == nil)
    }

    @Test(
        "TRF-3: RFC 9110, section 13.1.5: the date does not replace a weak tag",
        arguments: ["W/\"a\"", "w/\"a\"", "a", "*", "", "\"a\", \"b\""]
    )
    func weakTag(tag: String) {
        expect(RangeValidator(HTTPHeaders.lines("ETag: \(tag) | \(Self.modified) | \(Self.later)")) == nil)
    }

    @Test("TRF-3: a validator survives encoding and decoding")
    func coding() throws {
        for validator in [RangeValidator.entityTag("\"a\""), .date("Sun, 06 Nov 1994 08:49:37 GMT")] {
            let data = try JSONEncoder().encode(validator)
            try expect(JSONDecoder().decode(RangeValidator.self, from: data), equals: validator)
        }
    }
}
