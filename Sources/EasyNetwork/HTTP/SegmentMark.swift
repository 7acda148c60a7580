import Foundation

/// A mark in a string that replaces a path segment which would lead to another resource.
///
/// A string interpolation cannot throw, and does not know the purpose of the string. It therefore inserts this mark,
/// and every part of a message is checked for it, because a string that is intended for a path can end up in a query, a
/// header or a body. The mark consists of noncharacters, which no text contains, and is long enough not to occur in a
/// binary body.
enum SegmentMark {
    static let text = String(decoding: [0xFDD0, 0xFDD1, 0xFDD0, 0xFDD1], as: UTF16.self)

    /// The mark in a URL and in a form.
    private static let encoded = PercentEncoding.encode(text, .unreserved)

    /// The mark in UTF-8, percent-encoded, and in UTF-16 as in binary property lists.
    private static let forms = [
        Array(text.utf8), Array(encoded.utf8), text.utf16.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] },
    ]

    static func isIn(_ text: String) -> Bool {
        text.utf8Bytes { isIn(UnsafeRawBufferPointer($0)) }
    }

    static func isIn(_ bytes: UnsafeRawBufferPointer) -> Bool {
        forms.contains { form in
            guard var next = bytes.baseAddress, bytes.count >= form.count else { return false }
            let end = next + (bytes.count - form.count + 1)
            while let found = memchr(next, Int32(form[0]), end - next) {
                if memcmp(found, form, form.count) == 0 { return true }
                next = UnsafeRawPointer(found) + 1
            }
            return false
        }
    }

    /// Returns a URL for use in a message.
    static func shown(_ address: String) -> String {
        address.replacingOccurrences(of: encoded, with: "…")
    }

    static func refusal(_ place: String) -> NetworkError {
        .invalidRequest("\(place) has a \\(segment: …) that is empty, \".\" or \"..\"")
    }
}
