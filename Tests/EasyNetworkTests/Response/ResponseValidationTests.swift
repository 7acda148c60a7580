import Foundation
import Testing

@testable import EasyNetwork

@Suite("ResponseValidation")
struct ResponseValidationTests {
    @Test("RSP-1: 200 to 299 are accepted by default, both ends in; other sets and ranges can be given")
    func statusCodes() {
        let standard = ResponseValidation()
        for (status, accepted) in [(199, false), (200, true), (204, true), (299, true), (300, false), (404, false)] {
            #expect(standard.accepts(statusCode: status) == accepted, "\(status)")
        }
        #expect(ResponseValidation(statusCodes: [404]).accepts(statusCode: 404))
        #expect(!ResponseValidation(statusCodes: [404]).accepts(statusCode: 200))
        #expect(ResponseValidation(statusCodes: 200...399).accepts(statusCode: 399))
        #expect(!ResponseValidation(statusCodes: .min ... .max).accepts(statusCode: -1))
        #expect([100, 304, 500, 999].allSatisfy(ResponseValidation.any.accepts(statusCode:)))
    }

    @Test("RSP-1: a status that is not accepted is an error with the server's words; 401 has its own code")
    func statusErrors() {
        let body = Data(#"{"message":"No such user"}"#.utf8)
        let missing = ResponseValidation().error(for: NetworkResponse(statusCode: 404, headers: ["X": "1"], body: body))
        #expect(missing?.code == .unacceptableStatus)
        #expect(missing?.statusCode == 404)
        #expect(missing?.headers["X"] == "1")
        #expect(missing?.responseBody == body)
        #expect(missing?.serverMessage == "No such user")
        #expect(ResponseValidation().error(for: NetworkResponse(statusCode: 401))?.code == .unauthorized)
        #expect(ResponseValidation().error(for: NetworkResponse(statusCode: 200)) == nil)
        #expect(ResponseValidation.any.error(for: NetworkResponse(statusCode: 401)) == nil)
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
        #expect(validation.accepts(contentType: type) == expected)
        var headers = HTTPHeaders()
        headers["Content-Type"] = type
        let error = validation.error(for: NetworkResponse(headers: headers, body: Data("x".utf8)))
        #expect(error?.code == (expected ? nil : .cannotParseResponse))
        #expect(validation.error(for: NetworkResponse(statusCode: 204, headers: headers)) == nil)
    }
}
