import Foundation

/// A certificate of made-up contents, each part of which can be spoiled.
struct CertificateParts {
    /// What stands before the serial number; empty in version 1.
    var version = DERBytes.element(0xA0, DERBytes.element(0x02, Data([2])))
    var serial = DERBytes.element(0x02, Data([1]))
    var algorithm = DERBytes.element(0x30, DERBytes.element(0x06, Data([0x2B, 0x65, 0x70])))
    var issuer = DERBytes.element(0x30)
    var validity = DERBytes.element(0x30)
    var subject = DERBytes.element(0x30)
    var keyAlgorithm = DERBytes.element(0x30, DERBytes.element(0x06, Data([0x2B, 0x65, 0x70])))
    var key = DERBytes.element(0x03, Data([0]) + Data(repeating: 7, count: 32))
    var behindKey = Data()
    var extensions = DERBytes.element(0xA3, DERBytes.element(0x30))
    var signatureAlgorithm = DERBytes.element(0x30, DERBytes.element(0x06, Data([0x2B, 0x65, 0x70])))
    var signature = DERBytes.element(0x03, Data(repeating: 0, count: 65))
    var behindSignature = Data()
    var behindAll = Data()

    var publicKeyInfo: Data { DERBytes.element(0x30, keyAlgorithm, key, behindKey) }

    var der: Data {
        let names = issuer + validity + subject
        let signed = DERBytes.element(0x30, version, serial, algorithm, names, publicKeyInfo, extensions)
        return DERBytes.element(0x30, signed, signatureAlgorithm, signature, behindSignature) + behindAll
    }

    static func version(_ number: UInt8) -> Data {
        DERBytes.element(0xA0, DERBytes.element(0x02, Data([number])))
    }

    init(_ change: (inout CertificateParts) -> Void = { _ in }) {
        change(&self)
    }
}
