import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Empty bodies")
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

    @Test(
        "RSP-1: 204, 205, 304 and any answer to HEAD may be empty; others if the validation says so",
        arguments: [
            (false, 200, nil, false), (false, 204, nil, true), (false, 205, .get, true), (false, 304, .get, true),
            (false, 200, .head, true), (false, 200, .get, false), (true, 200, .delete, true), (true, 404, .get, true),
        ] as [(Bool, Int, NetworkService.Method?, Bool)]
    )
    func rule(_ allowsEmptyBody: Bool, _ status: Int, _ method: NetworkService.Method?, _ allowed: Bool) throws {
        let validation = ResponseValidation(allowsEmptyBody: allowsEmptyBody)
        var response = answer(status)
        response = method.map { response.prepared(for: $0, validation, decoder: nil) } ?? response
        expect(response.mayBeEmpty, equals: allowed)
        if allowed {
            try expect(response.decode(Int?.self) == nil)
        } else {
            #expect(throws: NetworkError.self) { try response.decode(Int?.self) }
        }
    }

    @Test("RSP-2: an optional item is nil after a 204, and Void takes any body")
    func emptyItems() throws {
        try expect(GetNumber().item(from: answer(204)) == .some(nil))
        try expect(GetNumber().item(from: answer(200, nil, "7")), equals: 7)
        try expect(GetNumber().item(from: answer(200, nil, "null")) == nil)
        try expect(answer(204).decode(Int?.self, using: JSONDecoder()) == nil)
        try expect(answer(204).decode(Int?.self, with: .json) == nil)
        try expect(answer(200, nil, "null").decode(Int?.self, with: .json) == nil)
        try GetNothing().item(from: answer(200))
    }

    @Test("RSP-2: an empty body that the rule or the item does not allow is a clear error")
    func refused() {
        let wrong = #expect(throws: NetworkError.self) { try GetNumber().item(from: answer(200)) }
        expect(wrong?.code, equals: .cannotParseResponse)
        expect(wrong?.message, equals: "the body is empty, not JSON")
        let noValue = #expect(throws: NetworkError.self) { try answer(204).decode(Int.self) }
        expect(noValue?.message, equals: "the body is empty; use an optional or Void as item for such a response")
        // White space is a body, but not JSON.
        #expect(throws: NetworkError.self) { try answer(204, nil, " ").decode(Int?.self) }
    }
}
