import EasyNetwork
import Foundation
import Testing

@testable import TestSupport

private struct User: ParsedItem, Equatable {
    var id: Int
    var name: String?
    var tags: [String] = []
}

private final class UserMapper: ResponseMapper<User>, ResponseMapperProtocol {
    static func process(_ json: Any?) throws -> User {
        try process(json) { json in
            User(id: try json.required("id"), name: try json.optional("name"), tags: try json.optional("tags") ?? [])
        }
    }
}

/// A mapper of an older program, which names the dictionary.
private final class DictionaryMapper: ResponseMapper<User>, ResponseMapperProtocol {
    static func process(_ json: Any?) throws -> User {
        try process(json) { (json: [String: Any]) in
            User(id: try json.required("id"), name: json["name"] as? String, tags: json["tags"] as? [String] ?? [])
        }
    }
}

private enum UsersMapper: ResponseMapperProtocol {
    static func process(_ json: Any?) throws -> [User] {
        try ArrayResponseMapper.process(json, mapper: UserMapper.process)
    }
}

private func response(_ text: String) -> NetworkResponse {
    NetworkResponse(body: Data(text.utf8))
}

@Suite("JSONObject")
struct JSONObjectTests {
    @Test("RSP-9: a mapper reads the body of an answer, and gives what it gives for a tree")
    func views() throws {
        let ada = response(#" {"name": "Ada\u0021", "id": 7, "tags": ["a", "é"], "id2": 1} "#)
        let expected = User(id: 7, name: "Ada!", tags: ["a", "é"])
        try expect(UserMapper.process(ada), equals: expected)
        try expect(UserMapper.process(ada.json()), equals: expected)
        try expect(DictionaryMapper.process(ada), equals: expected)
        let list = response(#"[{"id":1},{"id":2,"name":null}]"#)
        try expect(ArrayResponseMapper.process(list, mapper: UserMapper.process).map(\.id), equals: [1, 2])
        try expect(ArrayResponseMapper.process(list, mapper: DictionaryMapper.process).map(\.id), equals: [1, 2])
        try expect(UsersMapper.process(list).map(\.id), equals: [1, 2])
        let names = try ArrayResponseMapper<Text>.process(response(#"["a","b"]"#)) { Text(value: $0 as? String ?? "") }
        expect(names.map(\.value), equals: ["a", "b"])
    }

    private struct Text: ParsedItem { let value: String }

    @Test("RSP-9: errors of views name the key and the index, as those of trees")
    func errors() throws {
        let list = response(#"[{"id":1},{"id":"x"},{},7]"#)
        let mismatch = ResponseMapperError.mismatch(key: "id", expected: "Int", found: "String")
        #expect(throws: ResponseMapperError.element(index: 1, underlying: mismatch)) {
            try ArrayResponseMapper.process(list, mapper: UserMapper.process)
        }
        let lenient = try ArrayResponseMapper.processLeniently(list, mapper: UserMapper.process)
        expect(lenient.items.map(\.id), equals: [1])
        let failures = lenient.failures.map { $0.error as? ResponseMapperError }
        expect(failures, equals: [mismatch, .missing(key: "id"), .invalid])
        expect(lenient.failures.map(\.index), equals: [1, 2, 3])
        #expect(throws: ResponseMapperError.invalid) { try UserMapper.process(list) }
        #expect(throws: ResponseMapperError.invalid) {
            try ArrayResponseMapper.process(response("{}"), mapper: UserMapper.process)
        }
        for body in ["", "{", "[1,]"] {
            let error = #expect(throws: NetworkError.self) { try UserMapper.process(response(body)) }
            expect(error?.code, equals: .cannotParseResponse)
        }
    }

    @Test("RSP-9: values of a view are those of the tree, in any order and for every type")
    func values() throws {
        let text =
            #"{"t":true,"one":1,"half":0.5,"whole":3.0,"big":9007199254740993,"huge":18446744073709551615,"s":"x","n":null,"#
            + #""o":{"p":{"q":"deep"}},"l":[1,2],"d.ot":"literal","mixed":[1,null],"long":0.12345678901234567890}"#
        let tree = try #require(try response(text).json() as? [String: Any])
        for order in 0..<2 {
            let object = try object(text)
            let keys = order == 0 ? Array(tree.keys) : tree.keys.sorted().reversed()
            for key in keys { try expect(same(object[key], tree[key]), "\(key)") }
            expect(object["none"] == nil)
            try expect(same(object.dictionary, tree))
            try expect(object.required("t"), equals: true)
            try expect(object.required("huge", as: UInt64.self), equals: .max)
            try expect(object.required("one", as: Double.self), equals: 1)
            try expect(object.required("one", as: UInt8.self), equals: 1)
            try expect(object.required("whole", as: Int.self), equals: 3)
            try expect(object.required("half", as: Float.self), equals: 0.5)
            try expect(object.required("long", as: Double.self), equals: 0.12345678901234567890)
            try expect(object.required("half", as: Decimal.self), equals: Decimal(string: "0.5"))
            try expect(object.required("l", as: [Int].self), equals: [1, 2])
            try expect(object.required("mixed", as: [Int?].self), equals: [1, nil])
            try expect(object.required("o.p.q", as: String.self), equals: "deep")
            try expect(object.required("d.ot", as: String.self), equals: "literal")
            let below = try object.required("o", as: JSONObject.self).required("p", as: JSONObject.self)
            expect(below["q"] as? String, equals: "deep")
            try expect(object.optional("n", as: String.self) == nil)
            try expect(object.optional("none", as: String.self) == nil)
            #expect(throws: ResponseMapperError.missing(key: "o.x")) {
                try object.required("o.x", as: String.self)
            }
            let mismatches: [(String, Any.Type, String)] = [
                ("t", Int.self, "Bool"), ("big", Double.self, "Int"), ("half", Int.self, "Double"),
                ("n", Int.self, "null"), ("o", Int.self, "object"), ("l", Int.self, "array"),
            ]
            for (key, type, found) in mismatches {
                let error = ResponseMapperError.mismatch(key: key, expected: "\(type)", found: found)
                #expect(throws: error) {
                    type == Int.self
                        ? Double(try object.required(key, as: Int.self)) : try object.required(key, as: Double.self)
                }
            }
        }
    }

    @Test("RSP-9: elements of arrays and dates have the values and errors of single ones, in trees and in views")
    func arraysAndDates() throws {
        let text =
            #"{"i":[1,3.0,-2],"d":[0.5,1,0],"b":[true,false],"s":["a","\u00e4"],"o":[{"x":1}],"#
            + #""t":"2024-02-29T12:00:00Z","f":"2024-02-29T13:00:00.25+01:00","ts":["2024-02-29T12:00:00Z"],"#
            + #""bad":[1,true],"half":[1,0.5]}"#
        let tree = try #require(try response(text).json() as? [String: Any])
        for object in [try object(text), try object(of: tree)] {
            try expect(object.required("i", as: [Int].self), equals: [1, 3, -2])
            try expect(object.required("d", as: [Double].self), equals: [0.5, 1, 0])
            try expect(object.required("b", as: [Bool].self), equals: [true, false])
            try expect(object.required("s", as: [String].self), equals: ["a", "ä"])
            try expect(
                object.required("o", as: [JSONObject].self).map { try $0.required("x", as: Int.self) },
                equals: [1]
            )
            let noon = Date(timeIntervalSince1970: 1_709_208_000)
            try expect(object.required("t", as: Date.self), equals: noon)
            try expect(object.optional("f", as: Date.self), equals: noon + 0.25)
            try expect(object.required("ts", as: [Date].self), equals: [noon])
            for key in ["bad", "half"] {
                let error = ResponseMapperError.mismatch(key: key, expected: "Array<Int>", found: "array")
                #expect(throws: error) { try object.required(key, as: [Int].self) }
            }
            let error = ResponseMapperError.mismatch(key: "s", expected: "Date", found: "array")
            #expect(throws: error) { try object.required("s", as: Date.self) }
        }
    }

    @Test("RSP-9: of repeated keys the last one counts, for trees and for views")
    func repeats() throws {
        let text = #"{"a":1,"b":2,"a":3,"é":4,"e\#u{301}":5}"#
        let object = try object(text)
        try expect(object.required("b", as: Int.self), equals: 2)
        try expect(object.required("a", as: Int.self), equals: 3)
        try expect(object.required("a", as: Int.self), equals: 3)
        try expect(object.required("é", as: Int.self), equals: 5)
        let tree = try #require(try response(text).json() as? [String: Any])
        expect(tree["a"] as? Int, equals: 3)
    }

    private func object(_ text: String) throws -> JSONObject { try object(of: Holder.process(response(text))) }

    private func object(of json: Any?) throws -> JSONObject {
        var result: JSONObject?
        _ = try ResponseMapper<Text>.process(json) { (object: JSONObject) -> Text? in
            result = object
            return Text(value: "")
        }
        return try #require(result)
    }

    /// Hands on what a mapper is given.
    private enum Holder: ResponseMapperProtocol {
        static func process(_ json: Any?) throws -> Any? { json }
    }

    private func same(_ left: Any?, _ right: Any?) throws -> Bool {
        guard let left, let right else { return left == nil && right == nil }
        return try JSONSerialization.data(withJSONObject: [left], options: .sortedKeys)
            == JSONSerialization.data(withJSONObject: [right], options: .sortedKeys)
    }
}
