#if os(Linux)
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Heads of answers", .timeLimit(.minutes(10)))
struct CurlHeadTests {
    /// - Returns: the head with its fields, or the error; then the trailers.
    private func read(_ lines: [[UInt8]], _ head: inout CurlHead) -> [String] {
        var read: [String] = []
        do throws(NetworkError) {
            for line in lines {
                let result = line.withUnsafeBytes { bytes in
                    Result { () throws(NetworkError) in try head.add(bytes) }
                }
                guard let found = try result.get() else { continue }
                read.append("\(found.head.statusCode)")
                read += found.head.headers.map { "\(Array($0.name.utf8)) \($0.raw.fieldBytes)" }
            }
        } catch {
            read.append(error.localizedDescription)
        }
        return read + head.trailers.map { "\(Array($0.name.utf8)) \($0.raw.fieldBytes)" }
    }

    @Test(
        "SEC-2: framing that libcurl does not see, and names that are no token, are a bad answer",
        arguments: [
            "Transfer-Encoding:\r\n chunked", "Transfer-Encoding: chunked\r\n\tx", "transfer-encoding : chunked",
            "Transfer-Encoding\t: chunked", "Content-Length:\r\n 5", "Content-Length: 5\r\n ", "Content-Length : 5",
            "Transfer-Encoding\u{B}: chunked", "X Y: a", ": a", "é: a", "A: b\r\nX\"Y: a",
        ]
    )
    func hiddenFraming(field: String) {
        let lines = ["HTTP/1.1 200 OK"] + field.components(separatedBy: "\r\n") + [""]
        var head = CurlHead()
        let read = read(lines.map { Array(($0 + "\r\n").utf8) }, &head)
        expect(read.count == 1 && read[0].contains("The server's response"), "\(read)")
        // Also if the answer before had the field.
        var before = CurlHead()
        let known = "\(lines[1].prefix { !": \t\u{B}".contains($0) }): chunked\r\n"
        _ = self.read([Array("HTTP/1.1 200 OK\r\n".utf8), Array(known.utf8), Array("\r\n".utf8)], &before)
        var next = CurlHead(like: before.known)
        expect(self.read(lines.map { Array(($0 + "\r\n").utf8) }, &next), equals: read)
    }

    @Test("RSP-10: a folded value has a blank at each fold and none at its ends, and keeps its bytes")
    func folded() throws {
        let text = "HTTP/1.1 200 OK\r\nA:\r\n \r\n\t\"b \r\n  c\"\r\n \r\nX: \r\nY : 1\r\nZ:  caf"
        var head = CurlHead()
        var found: TransportHead?
        let bytes = Array(text.utf8) + [0xE9, 0x0D, 0x0A, 0x0D, 0x0A]
        for line in bytes.split(separator: 0x0A, omittingEmptySubsequences: false).dropLast() {
            let line = Array(line + [0x0A])
            let result = line.withUnsafeBytes { line in Result { () throws(NetworkError) in try head.add(line) } }
            found = try result.get()?.head ?? found
        }
        let fields = try #require(found).headers
        expect(fields.map(\.name) == ["A", "X", "Y", "Z"] && fields.map(\.value) == ["\"b c\"", "", "1", "café"])
        expect(fields.rawValues(for: "Z").first?.fieldBytes, equals: Array("caf".utf8) + [0xE9])
    }

    @Test(
        "BEY-14: a head is read alike whatever the fields of the answer before were",
        arguments: 0..<UInt64(TestLoad.count(300, part: 100))
    )
    func likeTheOneBefore(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let names = ["A", "Set-Cookie", "A", "a", " B", "C "]
        let colons = [": ", ": ", ": ", ":", " : ", ":  ", ""]
        let values = ["1", "2", "", "a longer value than others", "\u{E9}", "e\u{301}", "x: y", " z "]
        func line() -> [UInt8] {
            if Int.random(in: 0..<20, using: &random) == 0 { return Array("X: ".utf8) + [0xE9, 0x0D, 0x0A] }
            // As text, the bytes of the line before are kept like this.
            if Int.random(in: 0..<20, using: &random) == 0 { return Array("X: \u{10FEE9}\r\n".utf8) }
            let parts = [names, colons, values].map { $0.randomElement(using: &random) ?? "" }
            return Array((parts.joined() + "\r\n").utf8)
        }
        func fields() -> [[UInt8]] { (0..<Int.random(in: 0...4, using: &random)).map { _ in line() } }
        var before = CurlHead()
        for _ in 0..<20 {
            // Often the lines of the answer before, and some others.
            var lines = [Array("HTTP/1.1 200 OK\r\n".utf8)] + fields() + [Array("\r\n".utf8)] + fields()
            if Bool.random(using: &random) { lines = [Array("HTTP/1.1 103 \r\n".utf8)] + lines.dropFirst() + lines }
            for _ in 0..<2 {
                var (alone, next) = (CurlHead(), CurlHead(like: before.known))
                expect(read(lines, &next), equals: read(lines, &alone), "seed \(seed)")
                before = next
                lines[Int.random(in: 1..<lines.count, using: &random)] = line()
            }
        }
    }
}
#endif
