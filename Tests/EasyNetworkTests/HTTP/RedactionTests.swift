import Foundation
import Testing

@testable import EasyNetwork

@Suite("Redaction")
struct RedactionTests {
    private let redaction = Redaction.standard

    @Test(
        "RSP-6: names of secrets, however they are written, and names that only look like them",
        arguments: [
            ("Authorization", true), ("proxy-authorization", true), ("Cookie", true), ("SET-COOKIE", true),
            ("X-Api-Key", true), ("apikey", true), ("api_key", true), ("X-Auth-Token", true), ("accessToken", true),
            ("access_token", true), ("Ocp-Apim-Subscription-Key", true), ("X-Amz-Signature", true), ("sig", true),
            ("client_secret", true), ("password", true), ("user[password]", true), ("passwd", true), ("id_token", true),
            ("X-Auth-Key", true), ("X-Functions-Key", true), ("X-Authentication", true), ("DD-APPLICATION-KEY", true),
            ("X-Master-Key", true), ("authKey", true), ("device_code", true), ("encryption_key", true), ("code", false),
            ("status_code", false), ("X-Country-Code", false), ("primary_key", false), ("sort-key", false),
            ("X-CSRF-Token", true), ("pin", true), ("refresh-token", true), ("X-Amz-Credential", true),
            ("Accept", false), ("ETag", false), ("author", false), ("key", false), ("monkey", false), ("id", false),
            ("passenger", false), ("WWW-Authenticate", false), ("", false), ("keyboard", false), ("design", false),
        ]
    )
    func names(_ name: String, _ secret: Bool) {
        #expect(redaction.isSecret(name) == secret)
    }

    @Test("RSP-6: more names can be added; they are compared by letters and digits")
    func moreNames() {
        let more = Redaction(names: ["X-Customer", "card_number"])
        #expect(more.isSecret("x_customer"))
        #expect(more.isSecret("cardNumber"))
        #expect(!more.isSecret("customer"))
        #expect(!redaction.isSecret("X-Customer"))
        #expect(more.redactedText(of: Data(#"{"cardNumber":4111}"#.utf8)) == #"{"cardNumber":"REDACTED"}"#)
    }

    @Test("RSP-6: secret headers lose their values, of credentials the scheme stays, URLs in others are cleaned")
    func headers() {
        let headers: HTTPHeaders = [
            "Authorization": "Bearer s3cret", "Proxy-Authorization": "s3cret", "Set-Cookie": "a=s3cret; Path=/",
            "Set-Cookie": "b=s3cret", "X-API-Key": "s3cret", "Accept": "text/html;q=0.5",
            "Location": "https://u:s3cret@h/?token=s3cret&a=1#access_token=s3cret&b=2",
            "Link": "<https://h/?page=2&api_key=s3cret>; rel=\"next\"",
        ]
        let shown = redaction.redacted(headers)
        #expect(shown.count == headers.count)
        #expect(!shown.description.contains("s3cret"))
        #expect(shown["authorization"] == "Bearer REDACTED")
        #expect(shown["Proxy-Authorization"] == "REDACTED")
        #expect(shown.values(for: "Set-Cookie") == ["REDACTED", "REDACTED"])
        #expect(shown["Accept"] == "text/html;q=0.5")
        #expect(shown["Location"] == "https://REDACTED@h/?token=REDACTED&a=1#access_token=REDACTED&b=2")
        #expect(shown["Link"] == "<https://h/?page=2&api_key=REDACTED>; rel=\"next\"")
    }

    @Test(
        "RSP-6: user and password, and the values of secret parameters, are taken out of URLs",
        arguments: [
            ("https://h/a?b=1", "https://h/a?b=1"), ("https://u:s3cret@h:1/a", "https://REDACTED@h:1/a"),
            ("https://u@h/", "https://REDACTED@h/"), ("https://h/a@b?c=d@e", "https://h/a@b?c=d@e"),
            ("https://h/?Token=s3cret&a=1", "https://h/?Token=REDACTED&a=1"),
            ("https://h/?access%5Ftoken=s3cret", "https://h/?access%5Ftoken=REDACTED"),
            ("https://h/?user%5Bpassword%5D=s3cret%26x", "https://h/?user%5Bpassword%5D=REDACTED"),
            ("https://h/?password=s3'c;r,e=t", "https://h/?password=REDACTED"),
            ("https://h/?token=", "https://h/?token="),
            ("https://h/?X-Amz-Signature=s3cret#top", "https://h/?X-Amz-Signature=REDACTED#top"),
            ("https://h:80", "https://h:80"),
            ("https://[::1]", "https://[::1]"),
            ("https://h/?key=s3cret&sort=key", "https://h/?key=REDACTED&sort=key"),
            ("https://h/?token", "https://h/?token"),
            ("https://h/cb?state=a&code=s3cret", "https://h/cb?state=a&code=REDACTED"),
            ("https://h/cb?code=s3cret#code=s3cret&a=1", "https://h/cb?code=REDACTED#code=REDACTED&a=1"),
            ("https://h/?zipcode=1&country_code=2", "https://h/?zipcode=1&country_code=2"),
        ]
    )
    func urls(_ text: String, _ shown: String) throws {
        #expect(redaction.redacted(try #require(URL(string: text))) == shown)
    }

    @Test(
        "RSP-6: bodies of JSON, XML, forms and text",
        arguments: [
            (#"{"token":"s3cret","a":1}"#, #"{"token":"REDACTED","a":1}"#),
            (#"{"a":{"Password" : "s3\"cret"}}"#, #"{"a":{"Password" : "REDACTED"}}"#),
            (#"[{"secret":["s3cret",{"x":"}"}],"b":2}]"#, #"[{"secret":"REDACTED","b":2}]"#),
            (#"{"pin":1234,"token":null,"secret":true}"#, #"{"pin":"REDACTED","token":null,"secret":true}"#),
            (#"{"acc\u0065ss_token":"s3cret"}"#, #"{"acc\u0065ss_token":"REDACTED"}"#),
            (#"{"next":"https://h/?token=s3cret&p=2"}"#, #"{"next":"https://h/?token=REDACTED&p=2"}"#),
            (#"{"a":"https:\/\/u:s3cret@h\/?b=1"}"#, #"{"a":"https:\/\/REDACTED@h\/?b=1"}"#),
            (#"{"a":"?b=1\u0026token\u003ds3cret\u0026c=2"}"#, #"{"a":"?b=1\u0026token\u003dREDACTED\u0026c=2"}"#),
            ("see https://u:s3cr", "see https://REDACTED"),
            (#"{"kind":"token","b":"x"}"#, #"{"kind":"token","b":"x"}"#), (#"{"token":"#, #"{"token":"#),
            (#"{"token":"s3cr"#, #"{"token":"REDACTED""#), (#"{"secret":{"a":"s3cr"#, #"{"secret":"REDACTED""#),
            (#"{"token":"s3cret\"#, #"{"token":"REDACTED""#),
            ("access_token=s3cret&type=x", "access_token=REDACTED&type=x"),
            ("code=s3cret&grant_type=x", "code=REDACTED&grant_type=x"),
            ("grant_type=x&code=s3cret", "grant_type=x&code=REDACTED"),
            (#"{"a":"/cb?a=1\u0026code=s3cret"}"#, #"{"a":"/cb?a=1\u0026code=REDACTED"}"#),
            (#"{"code":7,"error":"x"}"#, #"{"code":7,"error":"x"}"#), ("exit code=1", "exit code=1"),
            (#"<a href="/cb?a=1&amp;code=s3cret"/>"#, #"<a href="/cb?a=1&amp;code=REDACTED"/>"#),
            ("<a><Password>s3cret</Password><b>x</b></a>", "<a><Password>REDACTED</Password><b>x</b></a>"),
            ("<a><w:token k='1'>s3<x/>cret</w:token></a>", "<a><w:token k='1'>REDACTED</w:token></a>"),
            ("<a token='s3 cret' b=\"x\"/>", "<a token='REDACTED' b=\"x\"/>"), ("<a><token/>x</a>", "<a><token/>x</a>"),
            ("<a><token>s3cr", "<a><token>REDACTED"), ("plain text, nothing more", "plain text, nothing more"),
            (#"{"password":"é😀"}"#, #"{"password":"REDACTED"}"#), ("", ""),
            (
                "<a><token><token>x</token><token/>s3cret</token>y</a>", "<a><token>REDACTED</token>y</a>"
            ),
            (
                "<a><token><![CDATA[</token>s3cret]]><!--</token>-->s3cret</token >y</a>",
                "<a><token>REDACTED</token >y</a>"
            ),
            ("<a><token k='/>'>s3cret</token>y</a>", "<a><token k='/>REDACTED</token>y</a>"),
            ("<a><token><tokens></token>y</a>", "<a><token>REDACTED</token>y</a>"),
        ]
    )
    func bodies(_ text: String, _ shown: String) {
        #expect(redaction.redactedText(of: Data(text.utf8)) == shown)
    }

    @Test(
        "RSP-6: lines that begin with a name and a colon, with those that are indented below",
        arguments: [
            ("Authorization: Bearer s3cret\r\nX: y", "Authorization: Bearer REDACTED\r\nX: y"),
            ("a\nset-cookie:s3cret; Path=/\r\n\r\nb", "a\nset-cookie:REDACTED\r\n\r\nb"),
            ("Cookie: s3cret\r\n s3cret\r\nX: y", "Cookie: REDACTED\r\nX: y"),
            ("password : s3cr", "password : REDACTED"),
            ("a:\n  - token: s3cret\n    b: c", "a:\n  - token: REDACTED\n    b: c"),
            ("> X-Api-Key: s3cret\n> B: c", "> X-Api-Key: REDACTED\n> B: c"),
            ("private_key: |\n  s3\n  cret\nb: c", "private_key: REDACTED\nb: c"), ("token:\nb: c", "token:\nb: c"),
            ("token:\n  s3cret\nb: c", "token:\nREDACTED\nb: c"),
            ("<a>\nToken: s3cret\n</a>", "<a>\nToken: REDACTED\n</a>"),
            ("unexpected token: }", "unexpected token: }"), ("key: value", "key: value"),
        ]
    )
    func lines(_ text: String, _ shown: String) {
        #expect(redaction.redactedText(of: Data(text.utf8)) == shown)
    }

    @Test(
        "RSP-6: JSON in strings of JSON",
        arguments: [
            (#"{"a":"{\"password\":\"s3cret\",\"b\":1}"}"#, #"{"a":"{\"password\":\"REDACTED\",\"b\":1}"}"#),
            (#"{"a":"{\"pin\":1234}","b":2}"#, #"{"a":"{\"pin\":\"REDACTED\"}","b":2}"#),
            (#"["{\"token\":[\"s3\",{\"a\":\"s3\"}],\"b\":null}"]"#, #"["{\"token\":\"REDACTED\",\"b\":null}"]"#),
            (#"["{\"token\":\"s3\\\"cret\\\\\",\"b\":1}"]"#, #"["{\"token\":\"REDACTED\",\"b\":1}"]"#),
            (
                #"{"a":"{\"b\":\"{\\\"token\\\":\\\"s3cret\\\"}\"}"}"#,
                #"{"a":"{\"b\":\"{\\\"token\\\":\\\"REDACTED\\\"}\"}"}"#
            ),
            (#"["{\"p\\u0061ssword\":\"s3cret\"}"]"#, #"["{\"p\\u0061ssword\":\"REDACTED\"}"]"#),
            (#"["{\"token\":\"s3cret","b"]"#, #"["{\"token\":\"REDACTED\"","b"]"#),
            (#"["the \"token\" is","b\\","c"]"#, #"["the \"token\" is","b\\","c"]"#),
            (#"["{\"u\":\"https:\\\/\\\/u:s3cret@h\"}"]"#, #"["{\"u\":\"https:\\\/\\\/REDACTED@h\"}"]"#),
        ]
    )
    func nested(_ text: String, _ shown: String) {
        #expect(redaction.redactedText(of: Data(text.utf8)) == shown)
    }

    @Test("RSP-6: a body is text in its charset, also with its last character cut; anything else is none")
    func text() {
        #expect(redaction.redactedText(of: Data("é".utf8).dropLast()) == "")
        #expect(redaction.redactedText(of: Data("a😀".utf8).dropLast()) == "a")
        #expect(redaction.redactedText(of: Data([0xE9]), contentType: "text/plain; charset=latin1") == "é")
        #expect(redaction.redactedText(of: Data([0xFE, 0xFF, 0, 0x61, 0])) == "a")
        for bytes in [[0], [0x61, 0x1B, 0x5B], [0x89, 0x50, 0x4E, 0x47], [0xFF, 0xFF, 0xFF, 0xFF, 0x61]] as [[UInt8]] {
            #expect(redaction.redactedText(of: Data(bytes)) == nil)
        }
    }

    @Test("RSP-6: a secret is not shown wherever random JSON is cut")
    func cutAnywhere() throws {
        let seed = UInt64.random(in: 0 ... .max)
        print("RedactionTests.cutAnywhere: seed \(seed)")
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<TestLoad.count(10, part: 2) {
            var value: Any = ["list": (0..<2).map { _ in random(depth: 1, &generator) }]
            for _ in 0..<Int.random(in: 0...2, using: &generator) {
                let inner = try JSONSerialization.data(withJSONObject: value)
                value = ["inner": String(decoding: inner, as: UTF8.self)]
            }
            let whole = try JSONSerialization.data(withJSONObject: value, options: .prettyPrinted)
            let bytes = Bool.random(using: &generator) ? whole : try JSONSerialization.data(withJSONObject: value)
            for count in 0...bytes.count {
                let shown = try #require(redaction.redactedText(of: bytes.prefix(count)), "seed \(seed)")
                #expect(!shown.contains("s3"), "seed \(seed), cut at \(count)")
            }
            let shown = try #require(redaction.redactedText(of: bytes))
            #expect(throws: Never.self, "seed \(seed)") { try JSONSerialization.jsonObject(with: Data(shown.utf8)) }
        }
    }

    private func random(depth: Int, _ generator: inout SeededGenerator) -> Any {
        let secrets: [Any] = ["s3cret", #"s3"c\r,e}t"#, ["s3cret", ["x": "s3"]], ["a": ["s3]", "}"]], "s3é\n"]
        var object: [String: Any] = [
            ["token", "user_password", "apiKey", "client-secret"].randomElement(using: &generator) ?? "token":
                secrets[Int.random(in: 0..<secrets.count, using: &generator)],
            "url": "https://u:s3cret@h/?a=1&signature=s3cret", "plain": "a \"quoted\" {text}, [and] so: on",
        ]
        if depth > 0 {
            object["more"] = (0..<Int.random(in: 0...2, using: &generator)).map { _ in
                random(depth: depth - 1, &generator)
            }
        }
        return object
    }
}
