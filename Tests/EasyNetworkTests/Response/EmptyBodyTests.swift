import Foundation
import Testing

@testable import EasyNetwork

@Suite("EmptyBodyRule")
struct EmptyBodyTests {
    private func answer(_ status: Int, _ method: NetworkService.Method? = nil, _ body: String = "") -> NetworkResponse {
        var response = NetworkResponse(statusCode: status, body: Data(body.utf8))
        response.requestMethod = method
        return response
    }

    private struct GetNumber: APIRequest {
        typealias Item = Int?
        var api: String { "number" }
    }

    private struct GetNothing: APIRequest {
        typealias Item = Void
        var api: String { "nothing" }
    }

    private struct GetEmpty: APIRequest {
        typealias Item = EmptyItem
        var api: String { "empty" }
    }

    @Test(
        "RSP-1: by default 204, 205, 304 and any answer to HEAD may be empty; another rule may be set",
        arguments: [
            (EmptyBodyRule(), 200, nil, false), (EmptyBodyRule(), 204, nil, true), (EmptyBodyRule(), 205, .get, true),
            (EmptyBodyRule(), 304, .get, true), (EmptyBodyRule(), 200, .head, true),
            (EmptyBodyRule(), 200, .get, false),
            (.never, 204, .head, false), (.always, 200, nil, true),
            (EmptyBodyRule(statusCodes: [200], methods: []), 200, .delete, true),
            (EmptyBodyRule(statusCodes: [200], methods: []), 204, .head, false),
        ] as [(EmptyBodyRule, Int, NetworkService.Method?, Bool)]
    )
    func rule(_ rule: EmptyBodyRule, _ status: Int, _ method: NetworkService.Method?, _ allowed: Bool) throws {
        #expect(rule.allows(statusCode: status, method: method) == allowed)
        let validation = ResponseValidation(emptyBody: rule)
        var response = answer(status)
        response = method.map { response.prepared(for: $0, validation, decoder: nil) } ?? response
        response.emptyBody = rule
        if allowed {
            #expect(try response.decode(Int?.self) == nil)
        } else {
            #expect(throws: NetworkError.self) { try response.decode(Int?.self) }
        }
    }

    @Test("RSP-2: an optional item is nil after a 204, an EmptyItem and Void are made from it")
    func emptyItems() throws {
        #expect(try GetNumber().item(from: answer(204)) == .some(nil))
        #expect(try GetNumber().item(from: answer(200, nil, "7")) == 7)
        #expect(try GetNumber().item(from: answer(200, nil, "null")) == nil)
        #expect(try GetEmpty().item(from: answer(204)) == EmptyItem())
        #expect(try GetEmpty().item(from: answer(200, nil, #"{"a":1}"#)) == EmptyItem())
        #expect(try answer(204).decode(Int?.self, using: JSONDecoder()) == nil)
        #expect(try answer(204).decode(Int?.self, with: JSONResponseDecoder()) == nil)
        try GetNothing().item(from: answer(200))
    }

    @Test("RSP-2: an empty body that the rule or the item does not allow is a clear error")
    func refused() {
        let wrong = #expect(throws: NetworkError.self) { try GetNumber().item(from: answer(200)) }
        #expect(wrong?.code == .cannotParseResponse)
        #expect(wrong?.message == "the body is empty, not JSON")
        let noValue = #expect(throws: NetworkError.self) { try answer(204).decode(Int.self) }
        #expect(noValue?.message == "the body is empty; use an optional item or EmptyItem for such an answer")
        #expect(throws: NetworkError.self) { try GetEmpty().item(from: answer(200)) }
        // White space is a body, and no JSON.
        #expect(throws: NetworkError.self) { try answer(204, nil, " ").decode(Int?.self) }
    }
}
