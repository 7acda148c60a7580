import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("JSON of parameters")
struct JSONValueTextTests {
    @Test("REQ-3: parameters become the bytes that a JSONEncoder with sorted keys makes of them")
    func bytes() throws {
        let seed = UInt64.random(in: 0 ... .max)
        print("JSONValueTextTests.bytes: seed \(seed)")
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<TestLoad.count(20_000) {
            let text = RandomJSON.document(&generator)
            guard let tree = try? NetworkResponse(body: Data(text.utf8)).json() else { continue }
            let value = try JSONValue(parameter: tree)
            let expected = String(decoding: try JSONEncoder.stable().encode(value), as: UTF8.self)
            expect(String(decoding: value.json(), as: UTF8.self), equals: expected)
        }
    }

    @Test("REQ-3: a number that is not finite is an error, and no text")
    func notFinite() {
        for value in [Double.infinity, [Double.nan], ["a": Decimal.nan]] as [Any] {
            #expect(throws: NetworkError.self) { try JSONValue(parameter: value) }
        }
    }
}
