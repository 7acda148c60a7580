import EasyNetwork
import Foundation

extension RequestParser {
    /// RFC 9112, section 3: method, target and version with one space between them.
    mutating func readRequestLine(_ line: ArraySlice<UInt8>) throws(Failure) {
        let parts = line.split(separator: 0x20, omittingEmptySubsequences: false)
        guard parts.count == 3 else { throw Failure(reason: "the request line has not three parts") }
        guard HTTPSyntax.isToken(parts[0]) else { throw Failure(reason: "the method is no token") }
        guard !parts[1].isEmpty, parts[1].allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw Failure(reason: "the target is empty or has bytes that have to be escaped")
        }
        let version = parts[2]
        guard version.count == 8, version.starts(with: "HTTP/".utf8),
            let major = Self.digit(version[version.startIndex + 5]), version[version.startIndex + 6] == 0x2E,
            let minor = Self.digit(version[version.startIndex + 7])
        else { throw Failure(reason: "the version is not that of HTTP") }
        guard major == 1 else { throw Failure(statusCode: 505, reason: "only HTTP/1 is spoken here") }
        message = Message(method: Self.text(parts[0]), target: Self.text(parts[1]), minorVersion: min(minor, 1))
        fields = []
    }

    /// RFC 9112, section 5: name, colon, value. Folded lines are refused.
    static func field(_ line: ArraySlice<UInt8>) throws(Failure) -> HTTPHeaders.Field {
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")), HTTPSyntax.isToken(line[..<colon]) else {
            throw Failure(reason: "a header line has no proper name")
        }
        let isBlank = { (byte: UInt8) in byte == 0x20 || byte == 0x09 }
        var value = line[(colon + 1)...].drop(while: isBlank)
        while let last = value.last, isBlank(last) { value.removeLast() }
        guard HTTPSyntax.isFieldValue(value) else { throw Failure(reason: "a header has a control character in it") }
        return HTTPHeaders.Field(name: text(line[..<colon]), value: text(value))
    }

    /// RFC 9112, section 6: how the body is framed.
    mutating func finishHead() throws(Failure) {
        message.headers = HTTPHeaders(fields)
        fields = []
        let hosts = message.headers.values(for: "Host").count
        guard hosts == 1 || hosts == 0 && message.minorVersion == 0 else {
            throw Failure(reason: "there is not exactly one Host")
        }
        let lengths = message.headers.values(for: "Content-Length")
        let codings = message.headers.values(for: "Transfer-Encoding")
        if !codings.isEmpty {
            guard lengths.isEmpty, message.minorVersion > 0 else {
                throw Failure(reason: "Transfer-Encoding stands beside Content-Length or in HTTP/1.0")
            }
            guard codings.count == 1, codings[0].isEqualIgnoringASCIICase(to: "chunked") else {
                throw Failure(statusCode: 501, reason: "no transfer coding but chunked is known")
            }
            phase = .chunkSize
        } else if let length = lengths.first {
            guard lengths.count == 1, !length.isEmpty, length.utf8.allSatisfy({ Self.digit($0) != nil }),
                let count = Int(length)
            else { throw Failure(reason: "the Content-Length is not one number") }
            phase = .fixedBody(left: count)
        } else {
            phase = .fixedBody(left: 0)
        }
    }

    /// RFC 9112, section 7.1: hexadecimal digits, then perhaps extensions, which are passed over.
    static func chunkSize(_ line: ArraySlice<UInt8>) throws(Failure) -> Int {
        let digits = line.prefix { ($0 | 0x20 >= 0x61 && $0 | 0x20 <= 0x66) || digit($0) != nil }
        let rest = line.dropFirst(digits.count).drop { $0 == 0x20 || $0 == 0x09 }
        guard let size = Int(text(digits), radix: 16), rest.isEmpty || rest.first == UInt8(ascii: ";"),
            HTTPSyntax.isFieldValue(rest)
        else { throw Failure(reason: "a chunk has no proper size") }
        return size
    }

    private static func digit(_ byte: UInt8) -> Int? {
        byte >= 0x30 && byte <= 0x39 ? Int(byte) - 0x30 : nil
    }

    /// UTF-8, or, when it is not that, Latin-1, which takes every byte.
    private static func text(_ bytes: ArraySlice<UInt8>) -> String {
        String(bytes: bytes, encoding: .utf8) ?? String(bytes.map { Character(Unicode.Scalar($0)) })
    }
}

extension HTTPHeaders {
    /// Whether one of the comma-separated values of the field is this token, in any case.
    func hasToken(_ token: String, in name: String) -> Bool {
        values(for: name).contains { value in
            value.split(separator: ",").contains { item in
                item.trimmingCharacters(in: .whitespaces).isEqualIgnoringASCIICase(to: token)
            }
        }
    }
}
