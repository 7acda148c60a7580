import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("HTTPFieldReader")
struct HTTPFieldReaderTests {
    /// Reads the quoted string at this place independently of earlier reads.
    private func quotedString(_ bytes: [UInt8], from start: Int) -> (text: String, end: Int)? {
        var text: [UInt8] = []
        var rest = bytes[(start + 1)...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "\"") { return (String(decoding: text, as: UTF8.self), rest.startIndex) }
            if byte != UInt8(ascii: "\\") { text.append(byte) } else if let next = rest.popFirst() { text.append(next) }
        }
        return nil
    }

    @Test(
        "BEY-10: RFC 9110, section 5.6.4: reading a quoted string does not depend on earlier attempts",
        arguments: 0..<200
    )
    func quotedStrings(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let bytes = (0..<40).map { _ in Array("\"\"\\\\a,".utf8).randomElement(using: &generator) ?? 0 }
        var reader = HTTPFieldReader(String(decoding: bytes, as: UTF8.self))
        while let byte = reader.next {
            guard byte == UInt8(ascii: "\"") else {
                reader.position += 1
                continue
            }
            let start = reader.position
            let expected = quotedString(bytes, from: start)
            expect(reader.quotedString(), equals: expected?.text, "seed \(seed), byte \(start)")
            expect(reader.position, equals: expected?.end ?? start)
            if expected == nil { reader.position += 1 }
        }
    }

    /// Beginnings, each with a unit that is repeated after it to make a parser rescan.
    static let hostile: [(beginning: String, unit: String)] = ["max-age=60, x", "a; b=", "Basic ", "Digest a=b, "]
        .flatMap { beginning in
            [
                #"\""#, #""\""#, #""\"#, #"""#, #"x=""#, #"x="\", "#, #"x"\","#, #"; x="\""#, #"a="b", "#, "a ", "a, ",
                "=", "a=b, ",
                ",", "; ", " ", "a", "x=;", "a=b c ", "x='a,", #"x="a"b,"#, "x=b c,", "'",
            ].map { (beginning, $0) }
        }

    @Test("BEY-10, SEC-4, TRF-2: any field of 64 KiB is read in linear time", arguments: hostile)
    func linear(beginning: String, unit: String) {
        let text = beginning + String(repeating: unit, count: 65_536 / unit.utf8.count)
        let limit = 8 * text.utf8.count
        var reader = HTTPFieldReader(text)
        _ = CacheControl.directives(&reader)
        expect(reader.readCount <= limit, "Cache-Control")
        reader = HTTPFieldReader(text)
        _ = ContentDisposition(&reader)
        expect(reader.readCount <= limit, "Content-Disposition")
        reader = HTTPFieldReader(text)
        _ = reader.challenges()
        expect(reader.readCount <= limit, "WWW-Authenticate")
        reader = HTTPFieldReader(text)
        _ = reader.challenges(after: AuthenticationChallenge(scheme: ""))
        expect(reader.readCount <= limit, "Authentication-Info")
    }

    @Test("BEY-10: behind 64 KiB of open quotes a directive still counts")
    func hiddenDirective() {
        let control = CacheControl(
            response: ["Cache-Control": "max-age=60, x\"" + String(repeating: "\\\"", count: 32_768) + ", no-store"]
        )
        expect(control.maxAge == 60 && control.noStore)
    }
}
