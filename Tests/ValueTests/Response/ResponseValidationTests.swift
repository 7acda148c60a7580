import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("ResponseValidation")
struct ResponseValidationTests {
    @Test("RSP-1: 200 to 299 are accepted by default; other sets and ranges can be set")
    func statusCodes() {
        let standard = ResponseValidation()
        for (status, accepted) in [(199, false), (200, true), (204, true), (299, true), (300, false), (404, false)] {
            expect(standard.accepts(statusCode: status), equals: accepted, "\(status)")
        }
        expect(ResponseValidation(statusCodes: [404]).accepts(statusCode: 404))
        expect(!ResponseValidation(statusCodes: [404]).accepts(statusCode: 200))
        expect(ResponseValidation(statusCodes: 200...399).accepts(statusCode: 399))
        expect(!ResponseValidation(statusCodes: Int.min ... .max).accepts(statusCode: -1))
        expect([100, 304, 500, 999].allSatisfy(ResponseValidation.any.accepts(statusCode:)))
    }

    @Test("RSP-1: a status that is not accepted is an error with the server's message; 401 has its own code")
    func statusErrors() {
        let body = Data(#"{"message":"No such user"}"#.utf8)
        let missing = ResponseValidation().error(for: NetworkResponse(statusCode: 404, headers: ["X": "1"], body: body))
        expect(missing?.code, equals: .unacceptableStatus)
        expect(missing?.statusCode, equals: 404)
        expect(missing?.headers["X"], equals: "1")
        expect(missing?.responseBody, equals: body)
        expect(missing?.serverMessage, equals: "No such user")
        expect(ResponseValidation().error(for: NetworkResponse(statusCode: 401))?.code, equals: .unauthorized)
        expect(ResponseValidation().error(for: NetworkResponse(statusCode: 200)) == nil)
        expect(ResponseValidation.any.error(for: NetworkResponse(statusCode: 401)) == nil)
    }

    @Test(
        "RSP-1: content types are compared without case and parameters; wild cards match",
        arguments: [
            (["application/json"], "Application/JSON; charset=utf-8", true), (["application/json"], "text/html", false),
            (["text/*"], "text/html", true), (["text/*"], "texts/html", false), (["*/*"], "image/png", true),
            (["*/*"], nil, true), (["text/html"], nil, false), (["text/html"], "html", false),
            (["TEXT/HTML", "image/png"], "text/html", true), ([], "text/html", false), (nil, "x/y", true),
        ] as [(Set<String>?, String?, Bool)]
    )
    func contentTypes(_ accepted: Set<String>?, _ type: String?, _ expected: Bool) {
        let validation = ResponseValidation(contentTypes: accepted)
        expect(validation.accepts(contentType: type), equals: expected)
        var headers = HTTPHeaders()
        headers["Content-Type"] = type
        let error = validation.error(for: NetworkResponse(headers: headers, body: Data("x".utf8)))
        expect(error?.code, equals: (expected ? nil : .cannotParseResponse))
        expect(validation.error(for: NetworkResponse(statusCode: 204, headers: headers)) == nil)
    }

    @Test("RSP-1: a body beyond the maximum is an error, after those of the head: status and media type")
    func maximumBodyCount() {
        var validation = ResponseValidation(contentTypes: ["image/png"], maximumBodyCount: 3)
        let long = validation.error(
            for: NetworkResponse(headers: ["Content-Type": "image/png"], body: Data("abcd".utf8))
        )
        expect(long?.code, equals: .bodyTooLong)
        expect(long?.message, equals: "the body has more than 3 bytes")
        expect(validation.error(for: NetworkResponse(body: Data("abcd".utf8)))?.code, equals: .cannotParseResponse)
        expect(validation.error(for: NetworkResponse(body: Data("abc".utf8)))?.code, equals: .cannotParseResponse)
        let refused = NetworkResponse(statusCode: 500, body: Data("abcd".utf8))
        expect(validation.error(for: refused)?.code, equals: .unacceptableStatus)
        validation.contentTypes = nil
        expect(validation.error(for: NetworkResponse(body: Data("abc".utf8))) == nil)
        for none in [0, -1, .min] {
            validation.maximumBodyCount = none
            expect(validation.accepts(bodyCount: 0))
            expect(!validation.accepts(bodyCount: 1))
        }
        expect(ResponseValidation().accepts(bodyCount: .max))
    }

    @Test("RSP-3: an answer of another shape is an error that names the place; an allowed empty body is not checked")
    func jsonShape() {
        let validation = ResponseValidation(statusCodes: 200...299, jsonShape: ["users": .array(of: ["name": .string])])
        func error(_ status: Int, _ body: String) -> NetworkError? {
            validation.error(for: NetworkResponse(statusCode: status, body: Data(body.utf8)))
        }
        expect(error(200, #"{"users":[{"name":"a"}]}"#) == nil)
        let wrong = error(200, #"{"users":[{"name":"a"},{"name":null}]}"#)
        expect(wrong?.code, equals: .cannotParseResponse)
        expect(wrong?.message, equals: "$.users[1].name: expected String but found null")
        expect(error(204, "") == nil)
        expect(error(200, "")?.message?.contains("empty"), equals: true)
        expect(error(200, "<html>")?.message?.contains("not JSON"), equals: true)
        expect(error(404, "<html>")?.code, equals: .unacceptableStatus)
    }
}
