import Foundation

/// The text form of certificates (RFC 7468).
enum PEM {
    private static let begin = Data("-----BEGIN CERTIFICATE-----".utf8)
    private static let end = Data("-----END CERTIFICATE-----".utf8)

    /// The DER of each certificate in the order of the text; what stands around them is passed over, and a block is
    /// left out that has no end or is not base64, as with a header or another block inside. Whether the bytes are a
    /// certificate is not looked at.
    static func certificates(in text: Data) -> [Data] {
        var certificates: [Data] = []
        var block: Data?
        for line in text.split(whereSeparator: { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }) {
            let line = line.trimmed
            if line == begin {
                block = Data()
            } else if line == end {
                if let base64 = block, let certificate = Data(base64Encoded: base64), !certificate.isEmpty {
                    certificates.append(certificate)
                }
                block = nil
            } else {
                block?.append(line)
            }
        }
        return certificates
    }
}

extension Data {
    /// Without the spaces and tabs around it, which a PEM's lines may have.
    fileprivate var trimmed: Data {
        func isBlank(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
        guard let first = firstIndex(where: { !isBlank($0) }), let last = lastIndex(where: { !isBlank($0) }) else {
            return Data()
        }
        return self[first...last]
    }
}
