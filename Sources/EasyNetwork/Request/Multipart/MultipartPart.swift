import Foundation

/// One part of a ``MultipartForm``.
struct MultipartPart: Sendable {
    enum Content: Sendable {
        case data(Data)
        case file(URL)
        case stream(TransportBodyStream)
    }

    let content: Content
    let name: String
    let filename: String?
    let contentType: String?
    let headers: HTTPHeaders

    /// The header section with the empty line behind it (RFC 7578, section 4.2).
    ///
    /// - Throws: ``NetworkError/Code/invalidRequest`` for what would break it.
    func header() throws(NetworkError) -> String {
        var lines = "Content-Disposition: form-data; name=\"\(try escape(name, "the name"))\""
        if let filename { lines += "; filename=\"\(try escape(filename, "the file name"))\"" }
        lines += "\r\n"
        if let contentType { lines += try line("Content-Type", contentType) }
        for field in headers {
            guard HTTPSyntax.isToken(field.name.utf8) else {
                throw failure("the header name \"\(field.name.prefix(80))\" is no token (RFC 9110, section 5.6.2)")
            }
            guard !Self.own.contains(where: { $0.isEqualIgnoringASCIICase(to: field.name) }) else {
                throw failure("the header \(field.name) is set by name, filename and contentType")
            }
            lines += try line(field.name, field.value)
        }
        return lines + "\r\n"
    }

    /// - Throws: ``NetworkError/Code/invalidRequest`` for a file that cannot be read.
    func segment() throws(NetworkError) -> MultipartSegment {
        switch content {
        case .data(let data): return .bytes(data)
        case .stream(let stream): return .stream(stream, part: label)
        case .file(let file):
            let length = try BodyFile.length(of: file, role: label)
            return .stream(TransportBodyStream(length: length) { InputStream(url: file) }, part: label)
        }
    }

    func failure(_ reason: String) -> NetworkError {
        NetworkError(code: .invalidRequest, message: "\(label): \(reason)")
    }

    private var label: String {
        "part \"\(name.count > 80 ? name.prefix(80) + "…" : name[...])\" of the form"
    }

    private static let own = ["Content-Disposition", "Content-Type"]

    private func line(_ name: String, _ value: String) throws(NetworkError) -> String {
        // The value is not shown: it may be a secret.
        guard HTTPSyntax.isFieldValue(value.utf8) else {
            throw failure("the value of the header \(name.prefix(80)) has a line break or control character in it")
        }
        return "\(name): \(value)\r\n"
    }

    private func escape(_ text: String, _ role: String) throws(NetworkError) -> String {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.utf8.count)
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""): bytes += "%22".utf8
            case UInt8(ascii: "\r"): bytes += "%0D".utf8
            case UInt8(ascii: "\n"): bytes += "%0A".utf8
            // A reader in C takes a NUL for the end.
            case 0..<0x20, 0x7F: throw failure("\(role) has a control character in it")
            default: bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
