import Foundation

@testable import EasyNetwork

/// Reads a form as a server would.
enum MultipartText {
    struct Part: Equatable {
        var name: String
        var filename: String?
        var data: Data
    }

    /// - Returns: nil when it is no form.
    static func parts(_ bytes: Data, boundary: String) -> [Part]? {
        guard bytes.suffix(2).elementsEqual("\r\n".utf8) else { return nil }
        let seam = Data("\r\n--\(boundary)".utf8)
        // As if a line came before it, so that all seams are the same.
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
        // Quotes are escaped, so that each one begins or ends a value.
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

extension BodyReader {
    /// The next piece; nil after the last.
    func next() async throws(NetworkError) -> Data? {
        try await withCheckedContinuation { continuation in next { continuation.resume(returning: $0) } }.get()
    }
}

extension TransportBodyStream {
    /// All of one sending.
    func wholeBody() async throws(NetworkError) -> Data {
        let reader = try reader()
        defer { reader.cancel() }
        var whole = Data()
        while let piece = try await reader.next() { whole.append(piece) }
        return whole
    }
}

/// A folder that is removed with its last user.
final class TemporaryFolder: Sendable {
    let url = FileManager.default.temporaryDirectory.appendingPathComponent("EasyNetworkTests-\(UUID().uuidString)")

    init() throws {
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(at: url)
    }
}
