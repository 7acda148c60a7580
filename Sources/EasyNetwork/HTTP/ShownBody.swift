import Foundation

/// A body, or its beginning, that was kept for a log or a recording.
package struct BodyExcerpt: Sendable {
    package let bytes: Data
    /// The length of the complete body, in bytes.
    package let count: Int

    /// Creates an excerpt.
    ///
    /// - Parameters:
    ///   - body: The complete body, or the available part of it.
    ///   - count: The length of the complete body, in bytes. Defaults to the length of `body`.
    ///   - limit: The maximum number of bytes that are kept.
    package init(_ body: Data, count: Int? = nil, limit: Int) {
        // The beginning is copied, so that it does not keep the complete body alive.
        bytes = body.count > limit ? Data(Array(body.prefix(limit))) : body
        self.count = count ?? body.count
    }

    package var isWhole: Bool { bytes.count == count }
}

/// A body in the form in which a log or a recording is allowed to show it.
package enum ShownBody: Sendable {
    case text(String)
    /// Bytes that are not text.
    case bytes(Data)
    /// The body is omitted, for this reason.
    case leftOut(String)

    /// Decides how to show a body.
    ///
    /// - Parameter redaction: The redaction that removes the secrets; nil keeps them.
    package init(_ body: BodyExcerpt, contentType: String?, _ redaction: Redaction?) {
        guard let redaction else {
            self = Self.text(of: body).map { .text($0) } ?? .bytes(body.bytes)
            return
        }
        if body.isWhole, let text = redaction.redactedText(of: body.bytes, contentType: contentType) {
            self = .text(text)
        } else if let text = Self.text(of: body) {
            if !body.isWhole {
                self = .leftOut("left out: secrets cannot be found in its beginning alone")
            } else if redaction.hasSecretName(text) {
                self = .leftOut("left out: it has secrets")
            } else {
                self = .text(redaction.redacted(text))
            }
        } else {
            let isText = contentType.flatMap(MediaType.init)?.isText == true
            self = isText ? .leftOut("left out: its secrets cannot be found") : .bytes(body.bytes)
        }
    }

    /// Returns the beginning of a string, with at most this number of UTF-8 bytes and only whole characters.
    package static func beginning(of text: String, _ count: Int) -> String {
        guard text.utf8.count > count else { return text }
        var end = text.utf8.index(text.startIndex, offsetBy: count)
        while end.samePosition(in: text.unicodeScalars) == nil { end = text.utf8.index(before: end) }
        return String(text[..<end])
    }

    /// Returns the body as a string; nil if it is not UTF-8 text.
    private static func text(of body: BodyExcerpt) -> String? {
        // The last character of an excerpt can be cut.
        for cut in 0...(body.isWhole ? 0 : 3) {
            guard let text = String(data: body.bytes.dropLast(cut), encoding: .utf8) else { continue }
            return text.utf8Bytes { $0.hasByte { $0.isBinary } } ? nil : text
        }
        return nil
    }
}

extension UInt8 {
    /// 1 for a control character that does not occur in text, otherwise 0.
    fileprivate var isBinary: UInt8 {
        isControl ^ (equals("\t") | equals("\n") | equals("\u{C}") | equals("\r") | equals("\u{1B}"))
    }
}

extension MediaType {
    fileprivate var isText: Bool {
        essence.hasPrefix("text/") || essence.hasPrefix("multipart/") || isJSON || essence.hasSuffix("xml")
            || essence.hasSuffix("javascript") || essence == "application/x-www-form-urlencoded"
    }
}
