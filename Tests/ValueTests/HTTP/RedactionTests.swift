import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Redaction")
struct RedactionTests {
    private let redaction = Redaction.standard

    @Test(
        "RSP-6: names of secrets in any spelling, and names that only look like them",
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
            ("X-GitHub-OTP", true), ("npm-otp", true), ("X-Session", true), ("session_key", true), ("PHPSESSID", true),
            ("connect.sid", true), ("passcode", true), ("user_pwd", true), ("userPwd", true), ("basicAuth", true),
            ("X-Appwrite-Key", true), ("totp", true), ("cvv", true), ("max_tokens", false), ("maxTokens", false),
            ("max_completion_tokens", false), ("total_tokens", false), ("my_tokens", true), ("session_count", false),
            ("inside", false), ("bypass", false), ("spin", false), ("X-Idempotency-Key", false),
        ]
            + [
                "userpass", "userPass", "db_pass", "proxyAuth", "proxyauth", "X-Auth", "X-Auth-User", "X-Auth0-State",
                "X-New-Session", "access_code", "securityCode", "verification-code", "mfa_code", "one_time_code",
                "oneTimeCode", "onetimecode", "sms_code", "recovery_codes", "recoveryCode", "inviteCode", "2fa_code",
                "pincode", "PINCode", "newPIN", "hmac", "X-Shopify-Hmac-SHA256", "oauth_verifier", "oauth2Verifier",
                "webhook_key", "storageKey", "X-Key", "DPoP", "dpop", "APIKey", "OTPCode", "cvv2", "SAMLResponse",
                "api_keys", "token2", "password1", "JSESSIONID", "pass_word", "X_KEY", "key_of_access_token",
            ]
            .map { ($0, true) }
            + [
                "zip_code", "zipcode", "country_code", "countryCode", "error_code", "errorCode", "statusCode",
                "phone_code", "barcode", "qr_code", "decode", "passport", "passive", "compass", "tokenizer",
                "tokenizerName", "X-Author", "maxAuthors", "authority", "authenticated", "secretary", "app_keyboard",
                "appKeyboardType", "KeyboardType", "bypass_words", "security_codecs", "public_key", "cache_key",
                "keynote", "turnkey", "hotpink", "footprint", "oauth", "obsession", "possession", "shipping", "is_idle",
                "isSessIdle", "v2", "2", "-_-",
            ]
            .map { ($0, false) }
    )
    func names(_ name: String, _ secret: Bool) {
        expect(redaction.isSecret(name), equals: secret)
    }

    @Test("RSP-6: names can be added; they are compared by letters and digits")
    func moreNames() {
        let more = Redaction(names: ["X-Customer", "card_number"])
        expect(more.isSecret("x_customer"))
        expect(more.isSecret("cardNumber"))
        expect(!more.isSecret("customer"))
        expect(!redaction.isSecret("X-Customer"))
        expect(more.redactedText(of: Data(#"{"cardNumber":4111}"#.utf8)), equals: #"{"cardNumber":"REDACTED"}"#)
    }

    @Test("RSP-6: secret headers lose their values but the scheme of credentials, and URLs in others their secrets")
    func headers() {
        let headers: HTTPHeaders = [
            "Authorization": "Bearer s3cret", "Proxy-Authorization": "s3cret", "Set-Cookie": "a=s3cret; Path=/",
            "Set-Cookie": "b=s3cret", "X-API-Key": "s3cret", "Accept": "text/html;q=0.5",
            "Location": "https://u:s3cret@h/?token=s3cret&a=1#access_token=s3cret&b=2",
            "Link": "<https://h/?page=2&api_key=s3cret>; rel=\"next\"",
        ]
        let shown = redaction.redacted(headers)
        expect(shown.count, equals: headers.count)
        expect(!shown.description.contains("s3cret"))
        expect(shown["authorization"], equals: "Bearer REDACTED")
        expect(shown["Proxy-Authorization"], equals: "REDACTED")
        expect(shown.values(for: "Set-Cookie"), equals: ["REDACTED", "REDACTED"])
        expect(shown["Accept"], equals: "text/html;q=0.5")
        expect(shown["Location"], equals: "https://REDACTED@h/?token=REDACTED&a=1#access_token=REDACTED&b=2")
        expect(shown["Link"], equals: "<https://h/?page=2&api_key=REDACTED>; rel=\"next\"")
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
        expect(redaction.redacted(try #require(URL(string: text))), equals: shown)
    }

    @Test(
        "RSP-6: in JSON the values of secret keys are replaced, and secrets in its strings",
        arguments: [
            (#"{"token":"s3cret","a":1}"#, #"{"a":1,"token":"REDACTED"}"#),
            (#"{"a":{"Password" : "s3\"cret"}}"#, #"{"a":{"Password":"REDACTED"}}"#),
            (#"[{"secret":["s3cret",{"x":"}"}],"b":2}]"#, #"[{"b":2,"secret":"REDACTED"}]"#),
            (#"{"pin":1234,"token":null,"secret":true}"#, #"{"pin":"REDACTED","secret":"REDACTED","token":null}"#),
            (#"{"acc\u0065ss_token":"s3cret"}"#, #"{"access_token":"REDACTED"}"#),
            (#"{"next":"https:\/\/h/?token=s3cret&p=2"}"#, #"{"next":"https://h/?token=REDACTED&p=2"}"#),
            (#"{"a":"https:\/\/u:s3cret@h\/?b=1"}"#, #"{"a":"https://REDACTED@h/?b=1"}"#),
            (#"{"a":"?b=1\u0026code\u003ds3cret\u0026c=2"}"#, #"{"a":"?b=1&code=REDACTED&c=2"}"#),
            (#"{"kind":"token","code":7,"key":"x"}"#, #"{"code":7,"key":"x","kind":"token"}"#),
            (#"{"password":"é😀"}"#, #"{"password":"REDACTED"}"#), ("[]", "[]"),
            (#"{"https://u:s3@h":1}"#, #"{"https://REDACTED@h":1}"#),
            (#"{"a":"{\"password\":\"s3cret\",\"b\":1}"}"#, #"{"a":"{\"b\":1,\"password\":\"REDACTED\"}"}"#),
            (#"["{\"a\":\"{\\\"token\\\":7}\"}"]"#, #"["{\"a\":\"{\\\"token\\\":\\\"REDACTED\\\"}\"}"]"#),
            // The end of a secret is unknown in a string that is cut or of another format.
            (#"["{\"token\":\"s3cret","b"]"#, #"["REDACTED","b"]"#), (#"["<token>s3cret</token>"]"#, #"["REDACTED"]"#),
            (#"["Authorization: Bearer s3cret\r\nA: b"]"#, #"["Authorization: Bearer REDACTED\r\nA: b"]"#),
            (#"["x 'token' : s3cret","a: b"]"#, #"["x 'token' : REDACTED","a: b"]"#),
            (#"["a < b","{x}"]"#, #"["a < b","{x}"]"#),
            (#"[{"name":"password","value":"s3cret"}]"#, #"[{"name":"password","value":"REDACTED"}]"#),
            (#"{"max_tokens":100}"#, #"{"max_tokens":100}"#),
            // Names and values by turns.
            (#"["Authorization","Bearer s3cret"]"#, #"["Authorization","REDACTED"]"#),
            (#"{"a":[["X-Key",["s3"]],["b","token"]]}"#, #"{"a":[["X-Key","REDACTED"],["b","token"]]}"#),
            (#"["Accept","a/b","cookie","s3"]"#, #"["Accept","a/b","cookie","REDACTED"]"#),
            (#"["name","token","password"]"#, #"["name","token","password"]"#),
            (#"["token",null]"#, #"["token",null]"#), (#"["a token","b"]"#, #"["a token","b"]"#),
        ]
    )
    func json(_ text: String, _ shown: String) {
        expect(redaction.redactedText(of: Data(text.utf8)), equals: shown)
    }

    @Test("RSP-6: in a form the values of secret fields are replaced, also if it is cut")
    func forms() {
        func form(_ text: String) -> String? {
            redaction.redactedText(
                of: Data(text.utf8),
                contentType: "application/x-www-form-urlencoded; charset=utf-8"
            )
        }
        expect(form("access_token=s3cret&type=x"), equals: "access_token=REDACTED&type=x")
        expect(form("code=s3cret&grant_type=x"), equals: "code=REDACTED&grant_type=x")
        expect(form("grant_type=x&user%5Bpassword%5D=s3cr"), equals: "grant_type=x&user%5Bpassword%5D=REDACTED")
        expect(form("a=1&password=\"s3 <s3'\\ #s3\ns3&b=a+b%20c"), equals: "a=1&password=REDACTED&b=a+b%20c")
        let encoded = "%7B%22password%22%3A+%22s3+s3%22%2C%22a%22%3A1%7D"
        expect(
            form("payload=\(encoded)&b=1"),
            equals: "payload=%7B%22a%22%3A1%2C%22password%22%3A%22REDACTED%22%7D&b=1"
        )
        expect(form(#"payload={"password":"s3 s3"}"#), equals: "payload=%7B%22password%22%3A%22REDACTED%22%7D")
    }

    @Test(
        "BEY-21: encoded addresses, forms and JSON in a parameter or a path have no secrets, to several levels",
        arguments: [
            "https://h/?next=https%3A%2F%2Fh%2F~a%3Faccess_token%3Ds3cret%26b%3D1",
            "https://h/?next=https%3A%2F%2Fu~v%3As3cret~s3cret%40h%2F", "https://h/?next=a%3Ftoken%3Ds3%20s3%23s3=s3",
            "https://h/?next=https%253A%252F%252Fh%252F%253Ftoken%253Ds3cret", "/to/https%3A%2F%2Fu%3As3cret%40h%2F",
            "https://h/?payload=%7B%22password%22%3A%22s3cret%22%7D", "?a=%7B%22token%22%3A%22s3", "x=a%26pin%3Ds3",
            "https://h/?a=https%25253A%25252F%25252Fu%25253As3cret%252540h%25252F",
            "https://h/?a=" + "s3cret=".replacingOccurrences(of: "=", with: "%25252525252541"),
        ]
    )
    func nested(_ text: String) {
        let shown = redaction.redacted(text)
        expect(!shown.contains("s3") && shown.contains("REDACTED"), "\(shown)")
        expect(redaction.redacted(shown), equals: shown)
    }

    @Test(
        "RSP-6: any other body is not shown, since its secrets cannot be recognized",
        arguments: [
            "", "plain text", "s3cret", #""s3cret""#, "7", "null", #"{"token":"s3cr"#, #"{"a":"b"} "s3cret""#,
            "<a><password>s3cret</password></a>", "Authorization: Bearer s3cret", "token: s3cret", "token=s3cret",
        ]
    )
    func otherBodies(_ text: String) {
        expect(redaction.redactedText(of: Data(text.utf8)) == nil)
        expect(redaction.redactedText(of: Data(text.utf8), contentType: "text/plain") == nil)
        expect(redaction.redactedText(of: Data([0xFF] + text.utf8)) == nil)
    }

    @Test(
        "RSP-6: in any text the secrets of URLs and parameters are replaced, also if it is cut",
        arguments: [
            ("see https://u:s3cr", "see https://REDACTED"), ("see https://u:s3cret@h, b", "see https://REDACTED@h, b"),
            (#"a https:\/\/u:s3cret@h\/"#, #"a https:\/\/REDACTED@h\/"#),
            ("two https://u:s3@h/ ftp://u:s3@h", "two https://REDACTED@h/ ftp://REDACTED@h"),
            ("a token=s3cret b", "a token=REDACTED b"), ("a token='s3 cret' b", "a token=REDACTED b"),
            (#"a token="s3 cr"#, "a token=REDACTED"), ("exit code=1", "exit code=1"), ("a=b=c", "a=b=c"),
            ("é token=é", "é token=REDACTED"), ("unexpected token: }", "unexpected token: }"),
            ("bad header Authorization: Bearer s3cret", "bad header Authorization: Bearer REDACTED"),
            ("Cookie: a=s3; b=s3\r\nAccept: x", "Cookie: REDACTED\r\nAccept: x"),
            ("X-Api-Key:s3 s3", "X-Api-Key:REDACTED"), ("wrong API key: s3", "wrong API key: REDACTED"),
            (#"{"token" : "s3\"s3", "b": 1"#, #"{"token" : REDACTED, "b": 1"#),
            (#"{\"token\":\"s3\\\"s3\",\"b\":1"#, #"{\"token\":REDACTED,\"b\":1"#),
            ("password = s3 s3\na = b", "password = REDACTED\na = b"),
            ("<a password = 's3'/>", "<a password = REDACTED/>"),
            ("<a><s:token>s3</s:token> b", "<a><s:token>REDACTED</s:token> b"), ("<pin>s3 s3", "<pin>REDACTED"),
            ("password=s3<s3\"s3\\s3&a=1", "password=REDACTED&a=1"), ("use a <token> here", "use a <token> here"),
            ("name=password\r\n\r\ns3\r\n--x", "name=password REDACTED"),
            (#"<input name="csrf" value="s3">"#, #"<input name="csrf REDACTED"#),
            ("private_key: -----BEGIN KEY-----\ns3", "private_key: REDACTED"), ("secret: |\n  s3", "secret: REDACTED"),
            ("token:\n  s3\na", "token:\n  REDACTED\na"), ("token:\na: b", "token:\na: b"),
            (#"key "token": expected Int but found String"#, #"key "token": expected Int but found String"#),
            ("a Bearer s3cret, b", "a Bearer REDACTED, b"),
            ("Basic authentication is off", "Basic authentication is off"),
            ("Bearer realm=\"x1\"", "Bearer realm=\"x1\""), ("https://token:80/a:b", "https://token:80/a:b"),
            ("Authorization: Bearer REDACTED (a)", "Authorization: Bearer REDACTED (a)"), ("100% = 1", "100% = 1"),
            (#"["Authorization","s3 s3"],["a","b"]"#, #"["Authorization",REDACTED],["a","b"]"#),
            (#"[('token', 's3')]"#, "[('token', REDACTED)]"), (#"a ["name","x"]"#, #"a ["name","x"]"#),
            (#"{"\u0074oken":"s3"#, #"{"\u0074oken":REDACTED"#), (#"{"pi\u006e":1,"#, #"{"pi\u006e":REDACTED"#),
            (#"{\"pi\\u006E\":\"s3"#, #"{\"pi\\u006E\":REDACTED"#), (#"C:\users\pi: a"#, #"C:\users\pi: a"#),
            ("POST https://h/v1/token:revoke", "POST https://h/v1/token:revoke"), ("a: b, c: d", "a: b, c: d"),
            ("see \"https://h/?token=s3\", please", "see \"https://h/?token=REDACTED\", please"),
        ]
    )
    func texts(_ text: String, _ shown: String) {
        expect(redaction.redacted(text), equals: shown)
    }

    @Test(
        "BEY-21: the name of a secret is found in lines of JSON and in broken JSON, even with escapes",
        arguments: [
            (#"{"token":"s3"}"#, true), (#"{"\u0074oken":"s3"}"#, true), (#"{"pi\u006E" : 1}"#, true),
            (#"{"a":"{\"\\u0070in\":1"#, true), (#"["\u0074oken","s3"]"#, true), (#"{"to\u0020ken":1"#, true),
            (#"{"pi\u006":1,"\u":2,"\u00":3"#, false), (#"{"\u0061":"token""#, true), (#"{"\u0061":1"#, false),
        ]
    )
    func brokenJSON(_ text: String, _ secret: Bool) {
        for text in ["{}\n" + text, text + "\n{"] { expect(redaction.hasSecretName(text), equals: secret) }
    }

    @Test("BEY-21: a host's own names of secrets are known to every redaction once the host is made")
    func hostNames() throws {
        let headers: HTTPHeaders = ["X-Beyond-Twenty-One": "s3cret", "A": "b"]
        expect(headers.description.contains("s3cret"))
        let host = HostConfiguration(baseURL: URL(string: "https://api.example.com"), headers: headers) { host in
            host.secretNames = ["X-Beyond-Twenty-One"]
        }
        expect(headers.description, equals: "X-Beyond-Twenty-One: REDACTED\nA: b")
        expect(
            Redaction(names: ["other"]).redacted("beyond x_beyondTwentyOne=s3"),
            equals: "beyond x_beyondTwentyOne=REDACTED"
        )
        let elsewhere = try #require(URL(string: "https://other.example.com"))
        expect(host.headers(for: elsewhere, RequestOptions())["X-Beyond-Twenty-One"] == nil)
    }

    @Test("RSP-6: a secret is not shown wherever random JSON is cut")
    func cutAnywhere() throws {
        let seed = UInt64.random(in: 0 ... .max)
        print("RedactionTests.cutAnywhere: seed \(seed)")
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<TestLoad.count(10, part: 2) {
            var value: Any = ["list": (0..<2).map { _ in random(depth: 1, &generator) }]
            for _ in 0..<Int.random(in: 0...4, using: &generator) {
                let inner = try JSONSerialization.data(withJSONObject: value)
                value = ["inner": String(decoding: inner, as: UTF8.self)]
            }
            let bytes = try JSONSerialization.data(withJSONObject: value, options: .prettyPrinted)
            let shown = try #require(redaction.redactedText(of: bytes))
            expect(!shown.contains("s3"), "seed \(seed)")
            #expect(throws: Never.self, "seed \(seed)") { try JSONSerialization.jsonObject(with: Data(shown.utf8)) }
            for count in 0..<bytes.count {
                let cut = redaction.redactedText(of: bytes.prefix(count))
                expect(cut?.contains("s3") != true, "seed \(seed), cut at \(count)")
            }
        }
        let text = "a=https://u:s3@h/?b=1&token=s3 password='s3'"
        for count in 0...text.count {
            expect(!redaction.redacted(String(text.prefix(count))).contains("s3"), "cut at \(count)")
        }
        // Whatever comes, it ends, and a second time changes nothing.
        let pieces = [
            "token", ":", "=", " ", "\n", "%", "%3D", "%22", "\"", "'", "\\", "<", ">", "/", "&", "{", "s3", "é",
            "name",
        ]
        for _ in 0..<TestLoad.count(2_000) {
            let text = (0..<12).map { _ in pieces.randomElement(using: &generator) ?? "" }.joined()
            let shown = redaction.redacted(text)
            expect(redaction.redacted(shown).count <= max(shown.count, text.count) + 200, "seed \(seed)")
        }
    }

    @Test("BEY-25: many backslashes and names before them take no more time than other bytes")
    func manyBackslashes() {
        for text in ["\\", "\\u", "a\\", "\\a:"] {
            let text = String(repeating: text, count: 500_000)
            expect(!redaction.hasSecretName(text))
            expect(redaction.redacted(text), equals: text)
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
