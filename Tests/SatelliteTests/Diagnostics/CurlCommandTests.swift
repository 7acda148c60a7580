import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import EasyNetworkDiagnostics
@testable import TestSupport

@Suite("cURL commands", .timeLimit(.minutes(10)))
struct CurlCommandTests {
    private struct Send: BaseAPIRequest {
        var api = "x"
        var method = NetworkService.Method.post
        var headers: [String: String]?
        var body: RequestBody?
    }

    @Test("DIA-1: a command has address, fields and body, each as one word of the shell")
    func words() throws {
        let url = try #require(URL(string: "https://ada:pw@api.example.com/a/../b?q='1'&r=[2]"))
        var message = TransportRequest(method: .put, url: url, headers: ["X-Name": "it's", "X-Empty": ""])
        message.body = .data(Data("a 'b'\n@c".utf8))
        expect(
            message.curlCommand(redaction: nil),
            equals: #"curl --globoff --path-as-is --compressed 'https://api.example.com/a/../b?q='\''1'\''&r=%5B2%5D' "#
                + #"--data-raw 'a '\''b'\''"# + "\n" + #"@c' -X 'PUT' -H 'X-Name: it'\''s' -H 'X-Empty;' "#
                + "-H 'User-Agent:' -H 'Content-Type:' -H 'Expect:'"
        )
        let tagged = TransportRequest(url: url, headers: ["If-None-Match": String(fieldBytes: [0x22, 0xE9, 0x22])])
        expect(tagged.curlCommand().contains(#" -H "$(printf -- 'If-None-Match: "\351"')" "#))
        message.body = .file(URL(fileURLWithPath: "/tmp/a b"))
        expect(message.curlCommand().contains("--data-binary '@/tmp/a b' "))
        message.body = .data(Data([0, 37, 92, 39, 255, 65]))
        expect(message.curlCommand(redaction: nil).hasPrefix(#"printf -- '\000%%\\'\''\377A' | curl "#))
    }

    @Test(
        "DIA-1: a quote ends no word, whatever accent, joiner or mark of a variant follows it",
        arguments: ["\u{301}", "\u{20E3}", "\u{200D}", "\u{FE0F}", "\u{1F3FB}", "\u{E0001}"]
    )
    func accents(mark: String) throws {
        let text = "a'\(mark); touch b; '\(mark)"
        let url = try #require(URL(string: "https://api.example.com/"))
        var message = TransportRequest(method: .post, url: url, headers: ["X-Name": text])
        message.body = .data(Data(text.utf8))
        let word = #"a'\''\#(mark); touch b; '\''\#(mark)'"#
        let command = Data(message.curlCommand(redaction: nil).utf8)
        expect(command.range(of: Data("--data-raw '\(word) ".utf8)) != nil)
        expect(command.range(of: Data("'X-Name: \(word) ".utf8)) != nil)
    }

    @Test("DIA-1: secrets are taken out of address, fields and body, unless all is asked for")
    func redaction() throws {
        let url = try #require(URL(string: "https://api.example.com/?token=s3cret"))
        var message = TransportRequest(method: .post, url: url, headers: ["Authorization": "Bearer s3cret"])
        for body in [#"{"password":"s3cret","name":"ada"}"#, "s3cret"] {
            message.body = .data(Data(body.utf8))
            let command = message.curlCommand()
            expect(!command.contains("s3cret") && command.contains("Bearer REDACTED"), "\(command)")
            expect(message.curlCommand(redaction: nil).components(separatedBy: "s3cret").count, equals: 4)
        }
        // What is left out is not replaced by another body.
        let comment = "# A body of 6 bytes is left out, as it may have secrets; to send one, add --data-binary @file\n"
        let command = message.curlCommand()
        expect(command.hasPrefix(comment + "curl ") && command.contains(" -X 'POST' ") && !command.contains("--data-r"))
        expect(!command.contains("Content-Length"))
        let line = NetworkError.Request(method: "GET", url: url, headers: message.headers)
        expect(NetworkError(code: .timedOut, request: line).curlCommand()?.contains("s3cret"), equals: false)
        expect(NetworkError(code: .timedOut).curlCommand() == nil)
        expect(NetworkAttempt(request: line).curlCommand(redaction: nil).contains("s3cret"))
    }

    @Test("DIA-1: the command of a request says that its multipart form, and what is added later, are missing")
    func missing() async throws {
        var form = MultipartForm()
        form.append("s3cret", name: "title")
        let request = Send(body: .multipart(form))
        let transport = ScriptedTransport { _, _ in .answer(200) }
        let plain = try await EasyNetworkService(transport.host()).curlCommand(for: request)
        expect(plain.hasPrefix("# A body of ") && !plain.contains("--data-raw"), "\(plain)")
        expect(!plain.contains("s3cret"))
        let whole = try await EasyNetworkService(transport.host()).curlCommand(for: request, redaction: nil)
        expect(!whole.hasPrefix("#") && whole.contains("s3cret"), "\(whole)")
        let comment = "# Interceptors, credentials and cookies are not applied\n"
        let adds: [(inout HostSettings) -> Void] = [
            { $0.interceptors = [Interceptor()] }, { $0.cookies = CookieJar() },
        ]
        for add in adds {
            let service = EasyNetworkService(transport.host(add))
            await expect(try service.curlCommand(for: Send()).hasPrefix(comment + "curl "))
        }
    }

    private struct Interceptor: RequestInterceptor {}

    @Test("DIA-1: a body that is not known is left to the reader; a field of blanks only is sent, as an empty one")
    func unknownBody() throws {
        let url = try #require(URL(string: "https://api.example.com/x"))
        func command(_ method: String, _ headers: HTTPHeaders = ["User-Agent": "a"]) -> String {
            NetworkAttempt(request: NetworkError.Request(method: method, url: url, headers: headers)).curlCommand()
        }
        let comment = "# A body is not kept; to send one, add --data-binary @file\n"
        let start = "curl --globoff --path-as-is --compressed 'https://api.example.com/x'"
        expect(command("GET"), equals: start + " -H 'User-Agent: a'")
        expect(command("DELETE"), equals: start + " -X 'DELETE' -H 'User-Agent: a'")
        for method in ["POST", "PUT", "PATCH"] {
            let end = " -X '\(method)' -H 'User-Agent: a' -H 'Content-Type:' -H 'Expect:'"
            expect(command(method), equals: comment + start + end)
        }
        let typed = command("GET", ["User-Agent": "a", "Content-Type": "text/plain"])
        expect(typed.hasPrefix(comment) && typed.contains(" -X 'GET' "))
        // What is known to have no body says so.
        expect(TransportRequest(method: .post, url: url).curlCommand().contains("'Content-Length: 0'"))
        expect(
            command("GET", ["User-Agent": "a", "X-Blank": " \t"]),
            equals: start + " -H 'User-Agent: a' -H 'X-Blank;'"
        )
    }

    // Foundation adds other fields than curl.
    #if os(Linux)
    @Test(
        "DIA-1: run by a shell, a command sends what the message sends",
        .enabled(if: Command.areInstalled("curl")),
        arguments: UInt64(1)...UInt64(TestLoad.count(4, part: 1))
    )
    func shell(seed: UInt64) async throws {
        var generator = SeededGenerator(seed: seed)
        let folder = TestFolder()
        let server = try MockServer()
        server.route("*", "/x") { _ in .status(200) }
        let service = EasyNetworkService(server.host(transport: TransportConfiguration.sharedTransport))
        for round in 0..<25 {
            let request = Self.request(&generator, round)
            let message = try await RequestBuilder.build(request, for: service.configuration).withBodyInMemory()
            let command = message.curlCommand(redaction: nil)
            let body = BodyStream()
            body.start(message, over: service.configuration.settings.transport)
            await expect(body.collect().head?.statusCode, equals: 200)
            try Command.runScript(command, [], in: folder.url)
            let received = server.requests.suffix(2)
            let (own, other) = try (#require(received.first), #require(received.last))
            expect(other.body == own.body && other.target == own.target && other.method == own.method, "\(command)")
            for name in ["Content-Type", "Content-Length", "User-Agent", "Accept", "X-A", "X-B"] {
                expect(other.headers.values(for: name), equals: own.headers.values(for: name), "\(name) of \(command)")
            }
        }
    }

    private static func request(_ generator: inout SeededGenerator, _ round: Int) -> Send {
        let marks = ["'", "\"", "\\", "$(id)", "`id`", "\n", "%s", "!", "ä", "漢", "a", " ", "&", "@", "'\u{301}"]
        func text(_ count: Int) -> String {
            (0..<count).map { _ in marks.randomElement(using: &generator) ?? "" }.joined()
        }
        let method: NetworkService.Method = [.post, .put, .patch, .delete].randomElement(using: &generator) ?? .post
        var request = Send(method: method)
        request.headers = [
            "X-A": text(5).replacingOccurrences(of: "\n", with: "").trimmingCharacters(in: .whitespaces), "X-B": "",
        ]
        request.api = "x?q=" + text(4)
        switch round % 4 {
        case 0: request.body = .text(text(40))
        case 1:
            let bytes = (0..<200).map { _ in UInt8.random(in: 0...255, using: &generator) }
            request.body = .data(Data(bytes), contentType: "application/octet-stream")
        case 2:
            var form = MultipartForm()
            form.append(text(10), name: "title")
            form.append(Data([0, 1, 2, 0xFF]), name: "file", filename: "a'b")
            request.body = .multipart(form)
        default: break
        }
        return request
    }

    #endif
}
