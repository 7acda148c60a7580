import Foundation
import Testing

@testable import EasyNetwork

@Suite("DERReader")
struct DERReaderTests {
    private static func first(_ bytes: [UInt8]) -> DERReader.Element? {
        var reader = DERReader(Data(bytes))
        return reader.next()
    }

    @Test("SEC-1: elements are read one after the other, with their tags, contents and encodings")
    func reads() {
        let bytes = Data([0x02, 0x01, 0x05, 0x30, 0x00])
        var reader = DERReader(bytes)
        let number = reader.next()
        let sequence = reader.next()
        let none = reader.next()
        #expect(number == .init(tag: 0x02, contents: Data([5]), encoding: Data([0x02, 0x01, 0x05])))
        #expect(sequence == .init(tag: 0x30, contents: Data(), encoding: Data([0x30, 0x00])))
        #expect(reader.isAtEnd && none == nil)
    }

    @Test("SEC-1: an element of another tag is not read past")
    func otherTag() {
        var reader = DERReader(Data([0x02, 0x01, 0x05]))
        let sequence = reader.next(DERReader.Tag.sequence)
        let number = reader.next(DERReader.Tag.integer)
        #expect(sequence == nil && number?.contents == Data([5]))
    }

    @Test("SEC-1: lengths have one to five bytes", arguments: [0, 1, 127, 128, 255, 256, 65_535, 65_536, 20_000_000])
    func lengths(count: Int) throws {
        let encoding = DERBytes.element(0x04, Data(count: count))
        var reader = DERReader(encoding + [0x05])
        let next = reader.next()
        let element = try #require(next)
        #expect(element.contents.count == count && element.encoding.count == encoding.count)
        #expect(!reader.isAtEnd)
    }

    @Test("SEC-1: what is not DER is refused", arguments: malformed)
    func refused(what: String, bytes: [UInt8]) {
        #expect(Self.first(bytes) == nil, "\(what)")
    }

    private static let malformed: [(String, [UInt8])] = [
        ("nothing", []),
        ("no length", [0x30]),
        ("contents cut off", [0x04, 0x02, 0x00]),
        ("a length cut off", [0x04, 0x82, 0x01]),
        ("an indefinite length", [0x30, 0x80, 0x00, 0x00]),
        ("a long form for a short length", [0x04, 0x81, 0x01, 0x00]),
        ("a length that begins with zero", [0x04, 0x82, 0x00, 0x80] + [UInt8](repeating: 0, count: 128)),
        ("a length of five bytes", [0x04, 0x85, 0x01, 0x00, 0x00, 0x00, 0x80] + [UInt8](repeating: 0, count: 128)),
        ("the largest length", [0x04, 0x84, 0xFF, 0xFF, 0xFF, 0xFF, 0x00]),
        ("a reserved length", [0x04, 0xFF, 0x00]),
        ("a tag of several bytes", [0x1F, 0x01, 0x00]),
    ]
}
