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
                read.append("\(found.statusCode)")
                read += found.headers.map { "\(Array($0.name.utf8)) \(Array($0.value.utf8))" }
            }
        } catch {
            read.append(error.localizedDescription)
        }
        return read + head.trailers.map { "\(Array($0.name.utf8)) \(Array($0.value.utf8))" }
    }

    @Test(
        "BEY-14: a head is read alike whatever the fields of the answer before were",
        arguments: 0..<UInt64(TestLoad.count(300, part: 100))
    )
    func likeTheOneBefore(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let names = ["A", "Set-Cookie", "", "a", " B", "C "]
        let colons = [": ", ": ", ": ", ":", " : ", ":  ", ""]
        let values = ["1", "2", "", "a longer value than others", "\u{E9}", "e\u{301}", "x: y", " z "]
        func line() -> [UInt8] {
            if Int.random(in: 0..<20, using: &random) == 0 { return Array("X: ".utf8) + [0xE9, 0x0D, 0x0A] }
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
