import Foundation

/// The kept part of a body, for a log or a recording: the whole, or its beginning.
package struct BodyExcerpt: Sendable {
    package let bytes: Data
    /// The length of the whole.
    package let count: Int

    /// - Parameters:
    ///   - body: the whole, or what there is of it.
    ///   - count: the length of the whole. Default that of `body`.
    ///   - limit: how many bytes are kept.
    package init(_ body: Data, count: Int? = nil, limit: Int) {
        // Copied, so that the beginning does not keep the whole alive.
        bytes = body.count > limit ? Data(Array(body.prefix(limit))) : body
        self.count = count ?? body.count
    }

    package var isWhole: Bool { bytes.count == count }
}

/// A body as a log or a recording may show it.
package enum ShownBody: Sendable {
    case text(String)
    /// Bytes that are no text.
    case bytes(Data)
    /// For this reason.
    case leftOut(String)

    /// - Parameter redaction: takes the secrets out; nil keeps them.
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

    /// The beginning of a text, up to a number of bytes and a whole character.
    package static func beginning(of text: String, _ count: Int) -> String {
        guard text.utf8.count > count else { return text }
        var end = text.utf8.index(text.startIndex, offsetBy: count)
        while end.samePosition(in: text.unicodeScalars) == nil { end = text.utf8.index(before: end) }
        return String(text[..<end])
    }

    /// The body as text; nil for bytes that are no text in UTF-8.
    private static func text(of body: BodyExcerpt) -> String? {
        // The last character of a beginning may be cut.
        for cut in 0...(body.isWhole ? 0 : 3) {
            guard let text = String(data: body.bytes.dropLast(cut), encoding: .utf8) else { continue }
            // All of them, without branches, so that the processor compares many at once.
            let found = text.utf8.withContiguousStorageIfAvailable { $0.reduce(0) { $0 | $1.isBinary } }
            return (found ?? text.utf8.reduce(0) { $0 | $1.isBinary }) == 0 ? text : nil
        }
        return nil
    }
}

extension UInt8 {
    /// 1 for a control character that is in no text, else 0.
    fileprivate var isBinary: UInt8 {
        func equals(_ character: Unicode.Scalar) -> UInt8 { self == UInt8(ascii: character) ? 1 : 0 }
        let isText = equals("\t") | equals("\n") | equals("\u{C}") | equals("\r") | equals("\u{1B}")
        return (self < 0x20 ? 1 : 0) ^ isText
    }
}

extension MediaType {
    fileprivate var isText: Bool {
        essence.hasPrefix("text/") || essence.hasPrefix("multipart/") || isJSON || essence.hasSuffix("xml")
            || essence.hasSuffix("javascript") || essence == "application/x-www-form-urlencoded"
    }
}
