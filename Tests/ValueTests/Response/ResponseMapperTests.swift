import EasyNetwork
import Foundation
import Testing

@testable import TestSupport

private struct User: ParsedItem, Equatable {
    var id: Int
    var name: String?
}

private final class UserMapper: ResponseMapper<User>, ResponseMapperProtocol {
    static func process(_ json: Any?) throws -> User {
        try process(json, parse: { json in User(id: try json.required("id"), name: try json.optional("name")) })
    }
}

/// A mapper in the older style, without helpers.
private final class OldMapper: ResponseMapper<User>, ResponseMapperProtocol {
    static func process(_ json: Any?) throws -> User {
        try process(json) { json in
            guard let id = json["id"] as? Int else { return nil }
            return User(id: id, name: json["name"] as? String)
        }
    }
}

private func json(_ text: String) throws -> Any {
    try NetworkResponse(body: Data(text.utf8)).json()
}

@Suite("ResponseMapper")
struct ResponseMapperTests {
    @Test("RSP-4: an object becomes a struct")
    func object() throws {
        let object = try json(#"{"id":7,"name":"Ada"}"#)
        try expect(UserMapper.process(object), equals: User(id: 7, name: "Ada"))
        try expect(OldMapper.process(object), equals: User(id: 7, name: "Ada"))
        try expect(UserMapper.process(["id": 7] as [String: Any]), equals: User(id: 7, name: nil))
        try expect(UserMapper.process(NSDictionary(dictionary: ["id": 7])), equals: User(id: 7, name: nil))
    }

    @Test("RSP-4: JSON that is no object is invalid, and a parse without result is a missing attribute")
    func invalid() throws {
        for value in [nil, [1], "text", 7, NSNull()] as [Any?] {
            #expect(throws: ResponseMapperError.invalid) { try UserMapper.process(value) }
        }
        #expect(throws: ResponseMapperError.missingAttribute) { try OldMapper.process(["name": "x"]) }
        let wrongType = ResponseMapperError.mismatch(key: "id", expected: "Int", found: "String")
        #expect(throws: wrongType) { try UserMapper.process(["id": "x"]) }
        do throws(ResponseMapperError) {
            _ = try ["a": 1].required("b", as: Int.self)
        } catch {
            guard case .missing("b") = error else { Issue.record("\(error)"); return }
        }
    }

    @Test("RSP-4: an array is mapped in order; a failure names its index")
    func array() throws {
        let users = try json(#"[{"id":1},{"id":2}]"#)
        try expect(ArrayResponseMapper.process(users, mapper: UserMapper.process).map(\.id), equals: [1, 2])
        try expect(ArrayResponseMapper.process([Any](), mapper: UserMapper.process).isEmpty)
        let broken = try json(#"[{"id":1},{"id":2},{"name":"x"},{}]"#)
        let missing = ResponseMapperError.element(index: 2, underlying: ResponseMapperError.missing(key: "id"))
        let error = #expect(throws: ResponseMapperError.self) {
            try ArrayResponseMapper.process(broken, mapper: UserMapper.process)
        }
        expect(error, equals: missing)
        expect(error?.localizedDescription, equals: #"Element 2: no value for key "id"."#)
        for value in [nil, ["a": 1], NSNull(), "x"] as [Any?] {
            #expect(throws: ResponseMapperError.invalid) {
                try ArrayResponseMapper.process(value, mapper: UserMapper.process)
            }
            #expect(throws: ResponseMapperError.invalid) {
                try ArrayResponseMapper.processLeniently(value, mapper: UserMapper.process)
            }
        }
    }

    @Test("RSP-4: lenient mapping skips elements that cannot be mapped, and reports them")
    func lenient() throws {
        let mixed = try json(#"[{"id":1},null,{"id":3},{"id":"4"}]"#)
        let result = try ArrayResponseMapper.processLeniently(mixed, mapper: UserMapper.process)
        expect(result.items.map(\.id), equals: [1, 3])
        expect(result.failures.map(\.index), equals: [1, 3])
        expect(result.failures.first?.error as? ResponseMapperError, equals: .invalid)
        let mismatch = ResponseMapperError.mismatch(key: "id", expected: "Int", found: "String")
        expect(result.failures.last?.error as? ResponseMapperError, equals: mismatch)
    }

    @Test("RSP-4: every mapper error is a sentence with key and index")
    func sentences() {
        struct Odd: LocalizedError { var errorDescription: String? { "So odd." } }
        let table: [(ResponseMapperError, String)] = [
            (.invalid, "The JSON is not of the expected form."), (.missingAttribute, "An attribute is missing."),
            (.missing(key: "a.b"), #"No value for key "a.b"."#),
            (
                .mismatch(key: "age", expected: "Int", found: "String"),
                #"Key "age": expected Int but found String."#
            ),
            (
                .element(index: 1, underlying: ResponseMapperError.element(index: 2, underlying: Odd())),
                "Element 1: element 2: So odd."
            ),
            (.element(index: 0, underlying: NetworkError(code: .refused, message: "m")), "Element 0: m."),
        ]
        for (error, sentence) in table { expect(error.localizedDescription, equals: sentence) }
        expect(ResponseMapperError.element(index: 1, underlying: Odd()), equals: .element(index: 1, underlying: Odd()))
        expect(
            ResponseMapperError.element(index: 1, underlying: Odd())
                != .element(index: 1, underlying: ResponseMapperError.invalid)
        )
        expect(ResponseMapperError.element(index: 1, underlying: Odd()) != .element(index: 2, underlying: Odd()))
        expect(ResponseMapperError.missing(key: "a") != .missing(key: "b"))
        expect(ResponseMapperError.invalid != .missingAttribute)
    }
}

@Suite("Attributes of a JSON object")
struct AttributeTests {
    private static let text =
        #"{"t":true,"one":1,"zero":0,"half":0.5,"whole":3.0,"big":9007199254740993,"huge":18446744073709551615,"#
        + #""s":"x","n":null,"o":{"p":{"q":"deep"}},"l":[1,2],"m":[1,true],"d.ot":"literal","mixed":[1,null]}"#

    private func object() throws -> [String: Any] {
        try #require(try json(Self.text) as? [String: Any])
    }

    @Test("RSP-4: values are read as the requested type")
    func values() throws {
        let object = try object()
        try expect(object.required("t"), equals: true)
        try expect(object.required("one", as: Int.self), equals: 1)
        try expect(object.required("one", as: UInt8.self), equals: 1)
        try expect(object.required("one", as: Double.self), equals: 1)
        try expect(object.required("one", as: Decimal.self), equals: 1)
        try expect(object.required("half", as: Double.self), equals: 0.5)
        try expect(object.required("half", as: Float.self), equals: 0.5)
        try expect(object.required("whole", as: Int.self), equals: 3)
        try expect(object.required("big", as: Int64.self), equals: 9_007_199_254_740_993)
        try expect(object.required("huge", as: UInt64.self), equals: .max)
        try expect(object.required("s", as: String.self), equals: "x")
        try expect(object.required("l", as: [Int].self), equals: [1, 2])
        try expect(object.required("mixed", as: [Int?].self), equals: [1, nil])
        try expect(object.required("o", as: [String: [String: String]].self), equals: ["p": ["q": "deep"]])
        try expect(object.required("o.p.q", as: String.self), equals: "deep")
        try expect(object.required("d.ot", as: String.self), equals: "literal")
        try expect(object.required("o", as: [String: Any].self).count, equals: 1)
        try expect(object.required("l", as: [Any].self).count, equals: 2)
    }

    @Test("RSP-4: a Bool is no number, a fraction no Int, an Int a Double only if exact; nothing is cut")
    func mismatches() throws {
        let object = try object()
        func refuses<T>(_ key: String, _ type: T.Type, _ found: String) {
            let error = ResponseMapperError.mismatch(key: key, expected: String(describing: type), found: found)
            #expect(throws: error) { try object.required(key, as: type) }
            #expect(throws: error) { try object.optional(key, as: type) }
        }
        refuses("t", Int.self, "Bool")
        refuses("t", Double.self, "Bool")
        refuses("one", Bool.self, "Int")
        refuses("zero", Bool.self, "Int")
        refuses("half", Int.self, "Double")
        refuses("big", Double.self, "Int")
        refuses("huge", Int.self, "Int")
        refuses("s", Int.self, "String")
        refuses("one", String.self, "Int")
        refuses("o", [Int].self, "object")
        refuses("l", String.self, "array")
        refuses("m", [Int].self, "array")
        refuses("o.p", String.self, "object")
        #expect(throws: ResponseMapperError.mismatch(key: "n", expected: "Int", found: "null")) {
            try object.required("n", as: Int.self)
        }
    }

    @Test("RSP-4: a missing key is an error that names it, or nil where it is optional")
    func missing() throws {
        let object = try object()
        for key in ["x", "o.x", "o.p.q.r", "s.x", ".", "o.", ""] {
            #expect(throws: ResponseMapperError.missing(key: key)) { try object.required(key, as: String.self) }
            try expect(object.optional(key, as: String.self) == nil)
        }
        try expect(object.optional("n", as: String.self) == nil)
        try expect(object.optional("s", as: String.self), equals: "x")
        let inferred: String? = try object.optional("s")
        expect(inferred, equals: "x")
    }

    @Test("RSP-4: objects made by hand read as those made from JSON")
    func handMade() throws {
        let object: [String: Any] = ["a": 1, "b": UInt8(2), "c": Float(0.1), "d": NSNumber(value: true), "e": true]
        try expect(object.required("a", as: Double.self), equals: 1)
        try expect(object.required("b", as: Int.self), equals: 2)
        try expect(object.required("c", as: Double.self), equals: 0.1)
        try expect(object.required("d", as: Bool.self))
        #expect(throws: ResponseMapperError.self) { try object.required("d", as: Int.self) }
        #expect(throws: ResponseMapperError.self) { try object.required("e", as: Int.self) }
    }
}

@Suite("Views of a result")
struct ReformedResultTests {
    private let ada = Result<User, NetworkError>.success(User(id: 1, name: "Ada"))

    private func initial(_ user: User) throws -> Character {
        guard let first = user.name?.first else { throw ResponseMapperError.missing(key: "name") }
        return first
    }

    @Test("RSP-5: several views are derived from one result; one that fails leaves the others alone")
    func views() throws {
        try expect(ada.tryMap { "\($0.id). \($0.name ?? "")" }.get(), equals: "1. Ada")
        try expect(ada.tryMap(initial).get(), equals: "A")
        let unnamed = Result<User, NetworkError>.success(User(id: 2))
        try expect(unnamed.tryMap { $0.id }.get(), equals: 2)
        let error = #expect(throws: NetworkError.self) { try unnamed.tryMap(initial).get() }
        expect(error?.code, equals: .cannotParseResponse)
        expect(error?.message, equals: #"no value for key "name""#)
        expect(error?.underlying as? ResponseMapperError, equals: .missing(key: "name"))
    }

    @Test("RSP-5: a failure stays as it is, and no view is made")
    func failures() {
        let failed = Result<User, NetworkError>.failure(NetworkError(code: .timedOut, message: "m"))
        let error = #expect(throws: NetworkError.self) {
            try failed.tryMap { _ in Issue.record("called") }.get()
        }
        expect(error?.code, equals: .timedOut)
        expect(error?.message, equals: "m")
        let refused = #expect(throws: NetworkError.self) {
            try ada.tryMap { _ in throw NetworkError(code: .refused) }.get()
        }
        expect(refused?.code, equals: .refused)
    }
}
