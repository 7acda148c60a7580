import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Property lists")
struct PropertyListTests {
    private struct Item: Codable, Equatable {
        var name: String
        var numbers: [Int]
        var nested: [String: [Double]]
        var made: Date
        var data: Data
        var flag: Bool
    }

    private struct Deep: Decodable {
        init(from decoder: any Decoder) throws {
            guard var container = try? decoder.unkeyedContainer() else { return }
            while !container.isAtEnd { _ = try container.decode(Deep.self) }
        }
    }

    private func encoded(_ value: some Encodable, _ format: PropertyListSerialization.PropertyListFormat) throws -> Data
    {
        let encoder = PropertyListEncoder()
        encoder.outputFormat = format
        return try encoder.encode(value)
    }

    private func response(_ body: Data) -> NetworkResponse {
        NetworkResponse(headers: ["Content-Type": "application/x-plist"], body: body)
    }

    /// A binary property list of these objects, the first of which is the root; references take four bytes.
    private func binary(_ objects: [[UInt8]]) -> Data {
        var bytes = Array("bplist00".utf8)
        var offsets: [Int] = []
        for object in objects {
            offsets.append(bytes.count)
            bytes += object
        }
        let table = bytes.count
        for offset in offsets { bytes += bigEndian(offset, 4) }
        bytes += [0, 0, 0, 0, 0, 0, 4, 4]
        bytes += bigEndian(objects.count, 8) + bigEndian(0, 8) + bigEndian(table, 8)
        return Data(bytes)
    }

    private func bigEndian(_ number: Int, _ size: Int) -> [UInt8] {
        (0..<size).map { UInt8(truncatingIfNeeded: number >> (8 * (size - 1 - $0))) }
    }

    @Test("RSP-2: random items survive writing and reading in XML and in binary")
    func roundTrip() throws {
        let seed = UInt64.random(in: 0 ... .max)
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<100 {
            func number() -> Int { Int.random(in: -1_000...1_000, using: &generator) }
            let item = Item(
                name: ["", "é😀", "<a>&", "x\ny", " z "].randomElement(using: &generator) ?? "",
                numbers: (0..<(abs(number()) % 50)).map { _ in number() },
                nested: ["a.b": [Double(number()) / 8], "": []],
                made: Date(timeIntervalSinceReferenceDate: Double(number())),
                data: Data((0..<(abs(number()) % 50)).map { _ in UInt8(truncatingIfNeeded: number()) }),
                flag: Bool.random(using: &generator)
            )
            for format in [PropertyListSerialization.PropertyListFormat.xml, .binary] {
                let answer = response(try encoded(item, format))
                try expect(answer.decode(Item.self, with: .propertyList), equals: item, "seed \(seed)")
                let object = try #require(try answer.propertyList() as? [String: Any], "seed \(seed)")
                expect(object["name"] as? String, equals: item.name, "seed \(seed)")
                expect(object["made"] as? Date, equals: item.made, "seed \(seed)")
            }
        }
    }

    @Test("RSP-2: a failed decoding names the place, the expected and the found type")
    func places() throws {
        for format in [PropertyListSerialization.PropertyListFormat.xml, .binary] {
            let answer = response(try encoded(["users": [["age": 1], ["age": 2]]], format))
            struct User: Decodable { var age: String }
            let wrong = #expect(throws: NetworkError.self) {
                try answer.decode([String: [User]].self, with: .propertyList)
            }
            expect(wrong?.message, equals: "users[0].age: expected String but found Int")
            expect(wrong?.code, equals: .cannotParseResponse)
            expect(wrong?.underlying is DecodingError)
        }
    }

    @Test(
        "RSP-2: a body that is no property list is an error",
        arguments: [
            "", "hello", "{a = 1;}", "<plist", "<plist version=\"1.0\"><array>", "<html/>", "bplist00",
            "bplist00garbage",
            #"<!DOCTYPE plist [<!ENTITY a "x">]><plist version="1.0"><string>&a;</string></plist>"#,
        ]
    )
    func broken(_ body: String) {
        let answer = response(Data(body.utf8))
        let error = #expect(throws: NetworkError.self) { try answer.propertyList() }
        expect(error?.code, equals: .cannotParseResponse)
        expect(error?.message?.contains("property list"), equals: true, "\(error?.message ?? "nil")")
        expect(error?.message?.hasSuffix("."), equals: false)
        #expect(throws: NetworkError.self) { try answer.decode([Int].self, with: .propertyList) }
    }

    @Test("RSP-2: lists that Foundation does not survive are refused: too deep, in themselves, many times over, sets")
    func bombs() throws {
        let open = String(repeating: "<array>", count: 100_000)
        let close = String(repeating: "</array>", count: 100_000)
        let xml = Data("<plist version=\"1.0\">\(open)\(close)</plist>".utf8)
        let deep = binary((0..<100_000).map { [0xA1] + bigEndian($0 + 1, 4) } + [[0x08]])
        let itself = binary([[0xA1] + bigEndian(0, 4)])
        let twice = binary((0..<60).map { [0xA2] + bigEndian($0 + 1, 4) + bigEndian($0 + 1, 4) } + [[0x08]])
        let longText = binary(
            [[0xAF, 0x12] + bigEndian(5_000, 4) + (0..<5_000).flatMap { _ in bigEndian(1, 4) }]
                + [[0x5F, 0x12] + bigEndian(50_000, 4) + [UInt8](repeating: 0x61, count: 50_000)]
        )
        let huge = binary([[0xDF, 0x13] + bigEndian(.max, 8)])
        let outside = binary([[0xA1] + bigEndian(7, 4)])
        let set = binary([[0xC1] + bigEndian(1, 4), [0x09]])
        let endless = binary([[0x33, 0x7F, 0xF8, 0, 0, 0, 0, 0, 0]])
        for body in [xml, deep, itself, twice, huge, longText, outside, set, endless] {
            for read in [{ try $0.propertyList() }, { try $0.decode(Deep.self, with: .propertyList) }]
                as [(NetworkResponse) throws -> Any]
            {
                let error = #expect(throws: NetworkError.self) { try read(response(body)) }
                expect(error?.message?.hasPrefix("the body is not a property list"), equals: true)
            }
        }
        // Shared objects and the greatest depth that Foundation reads are valid.
        let shared = binary([[0xA3] + (0..<3).flatMap { _ in bigEndian(1, 4) }, [0x51, 0x61]])
        try expect(response(shared).propertyList() as? [String], equals: ["a", "a", "a"])
        let row = binary((0..<500).map { [0xA1] + bigEndian($0 + 1, 4) } + [[0x08]])
        try expect(response(row).propertyList() is [Any])
        _ = try response(row).decode(Deep.self, with: .propertyList)
    }

    @Test("RSP-2: randomly changed bytes are an error that says so, or a list that can be written, never a crash")
    func mutations() throws {
        let seed = UInt64.random(in: 0 ... .max)
        print("PropertyListTests.mutations: seed \(seed)")
        var generator = SeededGenerator(seed: seed)
        let item = Item(
            name: "é",
            numbers: Array(0..<40),
            nested: ["a": [1, 2], "b": []],
            made: Date(timeIntervalSince1970: 0),
            data: Data([1, 2]),
            flag: true
        )
        for format in [PropertyListSerialization.PropertyListFormat.xml, .binary] {
            let original = try encoded(item, format)
            for _ in 0..<3_000 {
                var body = original
                for _ in 0..<Int.random(in: 1...4, using: &generator) {
                    let index = Int.random(in: 0..<body.count, using: &generator)
                    body[index] = UInt8.random(in: 0...255, using: &generator)
                }
                if Bool.random(using: &generator) { body.removeLast(Int.random(in: 0...8, using: &generator)) }
                let answer = response(body)
                let list = Result { () throws(NetworkError) in try answer.propertyList() }
                switch list {
                case .success(let list):
                    expect(PropertyListSerialization.propertyList(list, isValidFor: .binary))
                case .failure(let error):
                    expect(error.code == .cannotParseResponse && error.message?.hasPrefix("the body is") == true)
                }
                // What decodes is in the list.
                if let item = try? answer.decode(Item.self, with: .propertyList) {
                    try expect((list.get() as? [String: Any])?["name"] as? String, equals: item.name)
                }
                _ = try? answer.decode(Deep.self, with: .propertyList)
            }
        }
    }

    private func value(_ xml: String) throws -> Any {
        try response(Data("<plist version=\"1.0\">\(xml)</plist>".utf8)).propertyList()
    }

    @Test("RSP-2: values of every kind, integers up to both ends, in XML and in binary")
    func values() throws {
        try expect(value("<integer>42</integer>") as? Int, equals: 42)
        try expect(value("<integer>-9223372036854775808</integer>") as? Int64, equals: .min)
        try expect(value("<integer>18446744073709551615</integer>") as? UInt64, equals: .max)
        try expect(value("<real>-1.5e3</real>") as? Double, equals: -1_500)
        try expect(value("<date>2001-01-01T00:00:05Z</date>") as? Date, equals: Date(timeIntervalSinceReferenceDate: 5))
        try expect(value("<data> AQ \n I= </data>") as? Data, equals: Data([1, 2]))
        try expect(value("<string> <![CDATA[<]]>&amp; </string>") as? String, equals: " <& ")
        try expect(value("<array>\n<true/><false/></array>") as? [Bool], equals: [true, false])
        try expect(value("<dict/>") as? [String: Int], equals: [:])
        struct Ends: Codable, Equatable { var ends: [Int64], top: UInt64 }
        let ends = Ends(ends: [.min, -1, 0, 255, 256, 65_536, .max], top: .max)
        for format in [PropertyListSerialization.PropertyListFormat.xml, .binary] {
            let answer = response(try encoded(ends, format))
            try expect(answer.decode(Ends.self, with: .propertyList), equals: ends)
        }
    }

    @Test(
        "RSP-2: a property list that is well-formed but wrong is an error",
        arguments: [
            "<dict><key>a</key></dict>", "<dict><string/><string/></dict>", "<array>x</array>",
            "<string><true/></string>", "<set/>", "<integer>1.5</integer>", "<integer/>",
            "<integer>18446744073709551616</integer>", "<real>x</real>", "<date>today</date>", "<true/><true/>", "",
        ]
    )
    func wrong(_ xml: String) {
        let error = #expect(throws: NetworkError.self) { try value(xml) }
        expect(error?.message?.hasPrefix("the body is not a property list"), equals: true, "\(error?.message ?? "nil")")
    }

    @Test("RSP-2: a binary list with a key that is no text, or with kinds that property lists do not have, is an error")
    func wrongBinary() {
        for objects in [
            [[0xD1, 0, 0, 0, 1, 0, 0, 0, 1], [0x09]], [[0xC1, 0, 0, 0, 1], [0x09]], [[0xB1, 0, 0, 0, 1], [0x09]],
            [[0x00]], [[0xA1, 0, 0, 0, 1], [0x00]], [[0x5F, 0x12, 0, 0, 0, 9, 0x61]], [[0xF0]],
        ] as [[[UInt8]]] {
            let error = #expect(throws: NetworkError.self) { try response(binary(objects)).propertyList() }
            expect(error?.message?.contains("property list"), equals: true, "\(objects): \(error?.message ?? "nil")")
        }
    }
}
