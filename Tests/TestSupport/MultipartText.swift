import Foundation

@testable import EasyNetwork

/// Parses a form as a server would.
enum MultipartText {
    struct Part: Equatable {
        var name: String
        var filename: String?
        var data: Data
    }

    /// - Returns: nil if the bytes are not a form.
    static func parts(_ bytes: Data, boundary: String) -> [Part]? {
        guard bytes.suffix(2).elementsEqual("\r\n".utf8) else { return nil }
        let seam = Data("\r\n--\(boundary)".utf8)
        // The leading line break makes all delimiters equal.
        var rest = Data("\r\n".utf8) + bytes
        var pieces: [Data] = []
        while let range = rest.range(of: seam) {
            pieces.append(Data(rest[rest.startIndex..<range.lowerBound]))
            rest = Data(rest[range.upperBound...])
        }
        guard pieces.first?.isEmpty == true, rest.elementsEqual("--\r\n".utf8) else { return nil }
        let parts = pieces.dropFirst().map(part)
        return parts.contains { $0 == nil } ? nil : parts.compactMap { $0 }
    }

    private static func part(_ piece: Data) -> Part? {
        guard piece.prefix(2).elementsEqual("\r\n".utf8), let end = piece.range(of: Data("\r\n\r\n".utf8)) else {
            return nil
        }
        let head = String(decoding: piece[2..<end.lowerBound], as: UTF8.self)
        let lines = head.components(separatedBy: "\r\n")
        let start = "Content-Disposition: form-data; "
        guard let line = lines.first, line.hasPrefix(start) else { return nil }
        // Quotes within values are escaped, so each quote begins or ends a value.
        let words = line.dropFirst(start.count).components(separatedBy: "\"")
        guard words.count == 3 || words.count == 5, words[0] == "name=" else { return nil }
        if words.count == 5, words[2] != "; filename=" { return nil }
        return Part(
            name: unescaped(words[1]),
            filename: words.count == 5 ? unescaped(words[3]) : nil,
            data: Data(piece[end.upperBound...])
        )
    }

    private static func unescaped(_ text: String) -> String {
        text.replacingOccurrences(of: "%22", with: "\"")
            .replacingOccurrences(of: "%0D", with: "\r")
            .replacingOccurrences(of: "%0A", with: "\n")
    }
}

extension TransportBodyStream {
    /// Reads the whole body.
    func wholeBody() async throws(NetworkError) -> Data {
        let reader = try reader()
        defer { reader.cancel() }
        var whole = Data()
        while let piece = try await reader.next() { whole.append(piece) }
        return whole
    }
}
