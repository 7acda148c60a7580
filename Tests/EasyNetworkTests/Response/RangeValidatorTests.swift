import Foundation
import Testing

@testable import EasyNetwork

@Suite("RangeValidator")
struct RangeValidatorTests {
    private static let modified = "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT"
    private static let later = "Date: Sun, 06 Nov 1994 08:49:38 GMT"

    @Test("TRF-3: RFC 9110, section 13.1.5: a strong tag goes into If-Range as it was written, and before the date")
    func strongTag() {
        for tag in ["\"a\"", "\"\"", "\"é,!\""] {
            let validator = RangeValidator(HTTPHeaders.lines("\(Self.modified) | etag: \(tag) | \(Self.later)"))
            #expect(validator == .entityTag(tag) && validator?.fieldValue == tag)
        }
    }

    @Test(
        "TRF-3: RFC 9110, section 13.1.5: without a tag it is the date, as it was written, that the answer is later than"
    )
    func date() {
        let now = Date(timeIntervalSince1970: 784_111_777)
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT", "sun, 06 nov 1994 08:49:37 gmt", "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ] {
            let validator = RangeValidator(HTTPHeaders.lines("Last-Modified: \(text) | \(Self.later)"), now: now)
            #expect(validator == .date(text) && validator?.fieldValue == text, "\(text)")
        }
    }

    @Test(
        "TRF-3: RFC 9110, section 8.8.2.2: a date that may have been overtaken in the same second is none",
        arguments: [
            modified, later, "\(modified) | Date: Sun, 06 Nov 1994 08:49:37 GMT",
            "\(modified) | Date: Sun, 06 Nov 1994 08:49:36 GMT", "\(modified) | Date: today",
            "Last-Modified: 1994 | \(later)",
            "\(modified) | \(modified) | \(later)", "",
        ]
    )
    func weakDate(fields: String) {
        #expect(RangeValidator(HTTPHeaders.lines(fields)) == nil)
    }

    @Test(
        "TRF-3: RFC 9110, section 13.1.5: where there is a tag that is not strong, the date is none either",
        arguments: ["W/\"a\"", "w/\"a\"", "a", "*", "", "\"a\", \"b\""]
    )
    func weakTag(tag: String) {
        #expect(RangeValidator(HTTPHeaders.lines("ETag: \(tag) | \(Self.modified) | \(Self.later)")) == nil)
    }

    @Test("TRF-3: it is kept beside the part of a file, and read again")
    func coding() throws {
        for validator in [RangeValidator.entityTag("\"a\""), .date("Sun, 06 Nov 1994 08:49:37 GMT")] {
            let data = try JSONEncoder().encode(validator)
            #expect(try JSONDecoder().decode(RangeValidator.self, from: data) == validator)
        }
    }
}
