import Foundation

/// What pinning reads out of an X.509 certificate (RFC 5280, section 4.1), which libcurl reads itself and Apple's
/// Security framework gives only without its algorithm, so that it can't be compared with a pin.
///
/// It does not judge a certificate: that the platform trusts it has to be known before.
enum CertificateDER {
    /// The SubjectPublicKeyInfo with its tag and length, as `openssl x509 -pubkey -noout | openssl pkey -pubin
    /// -outform der` gives it; nil for anything that is not one whole certificate.
    static func publicKeyInfo(in certificate: Data) -> Data? {
        var outside = DERReader(certificate)
        guard let whole = outside.next(DERReader.Tag.sequence), outside.isAtEnd else { return nil }
        var parts = DERReader(whole.contents)
        guard
            let signed = parts.next(DERReader.Tag.sequence),
            parts.next(DERReader.Tag.sequence) != nil,
            parts.next(DERReader.Tag.bitString) != nil,
            parts.isAtEnd
        else { return nil }
        return publicKeyInfo(inSigned: signed.contents)
    }

    private static func publicKeyInfo(inSigned contents: Data) -> Data? {
        var fields = DERReader(contents)
        guard let version = version(&fields), fields.next(DERReader.Tag.integer) != nil else { return nil }
        // The signature's algorithm, the issuer, the validity, the subject.
        for _ in 0..<4 {
            guard fields.next(DERReader.Tag.sequence) != nil else { return nil }
        }
        guard let key = fields.next(DERReader.Tag.sequence), isPublicKey(key.contents) else { return nil }
        if version >= 2 {
            _ = fields.next(DERReader.Tag.primitive(1))
            _ = fields.next(DERReader.Tag.primitive(2))
        }
        if version >= 3 { _ = fields.next(DERReader.Tag.constructed(3)) }
        return fields.isAtEnd ? Data(Array(key.encoding)) : nil
    }

    /// 1 when there is no such field, as DER leaves out what is the default; nil when it is malformed.
    private static func version(_ fields: inout DERReader) -> Int? {
        var ahead = fields
        guard let field = ahead.next(DERReader.Tag.constructed(0)) else { return 1 }
        fields = ahead
        var inside = DERReader(field.contents)
        guard let number = inside.next(DERReader.Tag.integer), inside.isAtEnd else { return nil }
        return switch Array(number.contents) {
        case [1]: 2
        case [2]: 3
        default: nil
        }
    }

    private static func isPublicKey(_ contents: Data) -> Bool {
        var fields = DERReader(contents)
        guard
            let algorithm = fields.next(DERReader.Tag.sequence),
            let key = fields.next(DERReader.Tag.bitString),
            let unusedBits = key.contents.first
        else { return false }
        var parts = DERReader(algorithm.contents)
        return parts.next(DERReader.Tag.objectIdentifier) != nil && unusedBits < 8 && fields.isAtEnd
    }
}
