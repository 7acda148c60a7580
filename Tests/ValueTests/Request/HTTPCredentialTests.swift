import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("HTTPCredential")
struct HTTPCredentialTests {
    @Test("SEC-1: basic credentials are those of RFC 7617, in UTF-8 and normalized")
    func basic() throws {
        try expect(
            HTTPCredential.basic(user: "Aladdin", password: "open sesame").authorization,
            equals: "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="
        )
        try expect(HTTPCredential.basic(user: "test", password: "123£").authorization, equals: "Basic dGVzdDoxMjPCow==")
        let composed = try HTTPCredential.basic(user: "J\u{E4}", password: "a:b")
        try expect(HTTPCredential.basic(user: "Ja\u{308}", password: "a:b"), equals: composed)
        try expect(HTTPCredential.basic(user: "", password: "").authorization, equals: "Basic Og==")
    }

    @Test("SEC-1: a user name with a colon, and control characters, are refused by name")
    func refused() throws {
        let colon = #expect(throws: NetworkError.self) { try HTTPCredential.basic(user: "a:b", password: "") }
        expect(colon?.code, equals: .invalidRequest)
        expect(colon?.message?.contains("colon"), equals: true)
        for (user, password) in [("a\n", ""), ("", "\u{0}"), ("", "\r\n"), ("", "\u{85}")] {
            let error = #expect(throws: NetworkError.self) {
                try HTTPCredential.basic(user: user, password: password)
            }
            expect(error?.code, equals: .invalidRequest)
            expect(error?.message?.contains("control"), equals: true)
        }
    }

    @Test("SEC-1: a bearer token is one word of RFC 6750")
    func bearer() throws {
        try expect(HTTPCredential.bearer("mF_9.B5f-4.1JqM").authorization, equals: "Bearer mF_9.B5f-4.1JqM")
        try expect(HTTPCredential.bearer("a+/~==").authorization, equals: "Bearer a+/~==")
        for token in ["", "=", "a b", "a\r\nX: y", "a=b", "ä", "a,b"] {
            let error = #expect(throws: NetworkError.self, "\(token)") { try HTTPCredential.bearer(token) }
            expect(error?.code, equals: .invalidRequest)
        }
    }

    @Test("SEC-1: the description and the dump of a credential show no secret")
    func secrecy() throws {
        let credential = try HTTPCredential.bearer("verysecret")
        var dumped = ""
        dump(credential, to: &dumped)
        for text in ["\(credential)", credential.debugDescription, String(reflecting: [credential]), dumped] {
            expect(!text.contains("verysecret"))
        }
        expect("\(credential)", equals: "Bearer …")
    }
}
