import Foundation
import Testing

@testable import EasyNetwork

@Suite("HTTPCredential")
struct HTTPCredentialTests {
    @Test("SEC-1: basic credentials are those of RFC 7617, in UTF-8 and normalized")
    func basic() throws {
        #expect(
            try HTTPCredential.basic(user: "Aladdin", password: "open sesame").authorization
                == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="
        )
        #expect(try HTTPCredential.basic(user: "test", password: "123£").authorization == "Basic dGVzdDoxMjPCow==")
        let composed = try HTTPCredential.basic(user: "J\u{E4}", password: "a:b")
        #expect(try HTTPCredential.basic(user: "Ja\u{308}", password: "a:b") == composed)
        #expect(try HTTPCredential.basic(user: "", password: "").authorization == "Basic Og==")
    }

    @Test("SEC-1: a user name with a colon, and control characters, are refused by name")
    func refused() throws {
        let colon = #expect(throws: NetworkError.self) { try HTTPCredential.basic(user: "a:b", password: "") }
        #expect(colon?.code == .invalidRequest)
        #expect(colon?.message?.contains("colon") == true)
        for (user, password) in [("a\n", ""), ("", "\u{0}"), ("", "\r\n"), ("", "\u{85}")] {
            let error = #expect(throws: NetworkError.self) {
                try HTTPCredential.basic(user: user, password: password)
            }
            #expect(error?.code == .invalidRequest)
            #expect(error?.message?.contains("control") == true)
        }
    }

    @Test("SEC-1: a bearer token is one word of RFC 6750")
    func bearer() throws {
        #expect(try HTTPCredential.bearer("mF_9.B5f-4.1JqM").authorization == "Bearer mF_9.B5f-4.1JqM")
        #expect(try HTTPCredential.bearer("a+/~==").authorization == "Bearer a+/~==")
        for token in ["", "=", "a b", "a\r\nX: y", "a=b", "ä", "a,b"] {
            let error = #expect(throws: NetworkError.self, "\(token)") { try HTTPCredential.bearer(token) }
            #expect(error?.code == .invalidRequest)
        }
    }

    @Test("SEC-1: the description and the dump of a credential show no secret")
    func secrecy() throws {
        let credential = try HTTPCredential.bearer("verysecret")
        var dumped = ""
        dump(credential, to: &dumped)
        for text in ["\(credential)", credential.debugDescription, String(reflecting: [credential]), dumped] {
            #expect(!text.contains("verysecret"))
        }
        #expect("\(credential)" == "Bearer …")
    }
}
