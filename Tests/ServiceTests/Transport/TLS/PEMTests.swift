import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("PEM")
struct PEMTests {
    private static func certificates(_ text: String) -> [String] {
        TLSConfiguration.certificates(inPEM: Data(text.utf8)).map { String(decoding: $0, as: UTF8.self) }
    }

    private static func block(_ base64: String, label: String = "CERTIFICATE") -> String {
        "-----BEGIN \(label)-----\n\(base64)\n-----END \(label)-----\n"
    }

    @Test("SEC-1: certificates are read in the order of the text", arguments: ["\n", "\r\n", "\r", " \t\n", "\n\n"])
    func lineEnds(end: String) throws {
        let text = TestCertificate.all.map(\.pem).joined(separator: "\n").replacingOccurrences(of: "\n", with: end)
        let certificates = TLSConfiguration.certificates(inPEM: Data(text.utf8))
        try expect(certificates, equals: TestCertificate.all.map { try $0.der })
    }

    @Test("SEC-1: text and other blocks around the certificates are ignored")
    func surroundings() {
        let key = Self.block("a2V5", label: "PRIVATE KEY")
        let text = "subject=CN = a\n" + Self.block("b25l") + key + "\nissuer: é\n" + Self.block("dHdv") + "the end"
        expect(Self.certificates(text), equals: ["one", "two"])
        expect(Self.certificates("no certificate at all"), equals: [])
        expect(Self.certificates(""), equals: [])
    }

    @Test("SEC-1: a slice of data is read")
    func slice() {
        let slice = Data(("12345" + Self.block("b25l")).utf8).dropFirst(5)
        expect(TLSConfiguration.certificates(inPEM: slice), equals: [Data("one".utf8)])
    }

    @Test("SEC-1: a malformed block is left out, and its neighbors are read", arguments: malformed)
    func leftOut(what: String, text: String) {
        expect(Self.certificates(Self.block("b25l") + text + Self.block("dHdv")), equals: ["one", "two"], "\(what)")
    }

    private static let malformed: [(String, String)] = [
        ("not base64", block("a*b=")),
        ("a header inside", block("Proc-Type: 4,ENCRYPTED\n\nb25l")),
        ("padding missing", block("b25lMQ")),
        ("padding in the middle", block("b24=\nb24=")),
        ("empty", block("")),
        ("no end", "-----BEGIN CERTIFICATE-----\nYmFk\n"),
        ("no beginning", "YmFk\n-----END CERTIFICATE-----\n"),
        ("another end", "-----BEGIN CERTIFICATE-----\nYmFk\n-----END PRIVATE KEY-----\n"),
        ("two ends", "-----END CERTIFICATE-----\nYmFk\n-----END CERTIFICATE-----\n"),
        ("another block inside", "-----BEGIN CERTIFICATE-----\n" + block("YmFk", label: "X") + "YmFk\n"),
        ("something behind the beginning", "-----BEGIN CERTIFICATE----- x\nYmFk\n-----END CERTIFICATE-----\n"),
        ("another label", block("YmFk", label: "CERTIFICATE REQUEST")),
    ]
}
