import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("HTTPHeaders")
struct HTTPHeadersTests {
    @Test("RSP-6: header names are case-insensitive, repeats and order are kept")
    func repeatsAndCase() {
        var headers: HTTPHeaders = ["Set-Cookie": "a=1", "X": "1", "set-cookie": "b=2"]
        expect(headers.values(for: "SET-COOKIE"), equals: ["a=1", "b=2"])
        expect(headers["x"], equals: "1")
        expect(headers["Set-Cookie"], equals: "a=1, b=2")
        expect(headers.map(\.name), equals: ["Set-Cookie", "X", "set-cookie"])
        headers["SET-cookie"] = "c=3"
        expect(headers.map(\.value), equals: ["c=3", "1"])
        headers["set-cookie"] = nil
        expect(headers.map(\.name), equals: ["X"])
        expect(headers["missing"] == nil)
    }

    @Test("SEC-2: copies share their storage until one of them is changed")
    func storage() {
        let headers: HTTPHeaders = ["Accept": "text/plain"]
        var copy = headers
        expect(copy.hasStorage(of: headers) && headers.merging([:]).hasStorage(of: headers))
        copy["Accept"] = "text/plain"
        expect(copy == headers && !copy.hasStorage(of: headers))
        expect(HTTPHeaders().hasStorage(of: [:]) && !HTTPHeaders().hasStorage(of: headers))
        copy = headers
        copy.remove("Accept")
        expect(!copy.hasStorage(of: headers))
    }

    @Test("CFG-6: the later headers win in merging, by name without case")
    func merging() {
        let host: HTTPHeaders = ["Accept": "text/html", "User-Agent": "host"]
        let merged = host.merging(["accept": "application/json", "Accept": "text/plain"])
        expect(merged.values(for: "Accept"), equals: ["application/json", "text/plain"])
        expect(merged["User-Agent"], equals: "host")
    }

    @Test(
        "RSP-10: a value and its parts keep their bytes; those that are not UTF-8 are read as ISO 8859-1",
        arguments: [
            (Array("a=é; b".utf8), "a=é; b"), ([0x61, 0xE9], "aé"), ([0xE9, 0xC3, 0xA9], "éÃ©"),
            ([0x80, 0xFF], "\u{80}ÿ"),
            (Array("\u{10FEE9}".utf8), "\u{10FEE9}"), (Array("\u{10FEE9}".utf8) + [0xE9], "ô\u{8F}»©é"), ([], ""),
            ([0xED, 0xA0, 0x80], "í\u{A0}\u{80}"),
        ] as [([UInt8], String)]
    )
    func bytes(bytes: [UInt8], text: String) {
        var field = HTTPHeaders.Field(name: "A", value: "")
        field.raw = String(fieldBytes: bytes)
        expect(field.raw.fieldBytes == bytes && field.value == text)
        let twice = String(fieldBytes: bytes + [0x3B] + bytes)
        expect(twice.split(separator: ";").allSatisfy { String($0).fieldText == text || text == "a=é; b" })
        let headers = HTTPHeaders([field, field])
        expect(headers["a"] == "\(text), \(text)" && headers.values(for: "A") == [text, text])
        expect(headers.rawValues(for: "A").joined(separator: ",").fieldBytes, equals: bytes + [0x2C] + bytes)
        field.value = "é"
        expect(field.raw, equals: "é")
    }

    @Test("RSP-10: any bytes come back", arguments: 0..<UInt64(50))
    func anyBytes(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let bytes: [UInt8] = [0x41, 0x80, 0x8F, 0xBA, 0xBB, 0xBF, 0xC3, 0xA9, 0xE2, 0x82, 0xAC, 0xF4, 0xFF]
        for _ in 0..<200 {
            let count = Int.random(in: 0...9, using: &random)
            let value = (0..<count).map { _ in bytes.randomElement(using: &random) ?? 0 }
            let raw = String(fieldBytes: value)
            expect(raw.fieldBytes, equals: value, "seed \(seed)")
            expect((raw.trimmed + ";" + raw).fieldBytes, equals: value + [0x3B] + value, "seed \(seed)")
        }
    }

    @Test("RSP-10: of a repeated field with one value, one counts, or all have to be the same")
    func single() {
        let headers: HTTPHeaders = [
            "Content-Type": "text/html", "content-type": "a/b, text/plain; charset=\"a,b\"", "Content-Type": "none",
            "Content-Disposition": "", "Content-Disposition": "attachment; filename=a.txt",
            "Content-Disposition": "attachment; filename=b.txt", "ETag": "\"a\"", "ETag": " \"a\"", "Age": "5",
            "Age": "6",
            "Content-Length": "5", "Content-Length": "5", "Content-Range": "bytes 0-1/3",
            "Content-Range": "bytes 0-1/3",
            "Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT", "Last-Modified": "Sunday, 06-Nov-94 08:49:37 GMT",
        ]
        expect(MediaType(headers)?.essence == "text/plain" && MediaType(headers)?.charset == "a,b")
        expect(headers["Content-Type"].flatMap(MediaType.init(_:)), equals: MediaType(headers), "joined, as by a proxy")
        expect(ContentDisposition(headers)?.fileName, equals: "a.txt")
        expect(EntityTag(headers)?.text == "\"a\"" && headers.contentLength == 5)
        expect(ContentRange(headers)?.range, equals: 0..<2)
        expect(headers.httpDate("Last-Modified", now: .init(timeIntervalSince1970: 8e8)) != nil)
        let different = headers.merging([
            "ETag": "\"a\"", "ETag": "W/\"a\"", "Content-Length": "5", "Content-Length": "6",
            "Content-Range": "bytes 0-1/3", "Content-Range": "bytes 0-1/4", "Last-Modified": "never",
            "Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT",
        ])
        expect(EntityTag(different) == nil && different.contentLength == nil && ContentRange(different) == nil)
        expect(different.httpDate("Last-Modified", now: .init(timeIntervalSince1970: 8e8)) == nil)
    }

    @Test("REQ-2: a dictionary of headers is sent in a stable order")
    func stableOrder() {
        expect(HTTPHeaders(["b": "2", "a": "1", "c": "3"]).map(\.name), equals: ["a", "b", "c"])
    }
}
