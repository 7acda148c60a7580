import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import EasyNetworkDiagnostics
@testable import TestSupport

/// What a log shows of heads and bodies.
@Suite("Heads and bodies in a log", .timeLimit(.minutes(10)))
struct LogMessageTests {
    private struct Send: APIRequest {
        typealias Item = NetworkResponse
        var api = "a"
        var method = NetworkService.Method.post
        var headers: [String: String]?
        var body: RequestBody?
    }

    private func started(_ body: Data, _ type: String?, _ headers: HTTPHeaders = HTTPHeaders()) throws -> NetworkEvent {
        var headers = headers
        if let type { headers["Content-Type"] = type }
        let url = try #require(URL(string: "https://api.example.com/a"))
        let message = TransportRequest(method: .post, url: url, headers: headers, body: .data(body))
        let line = NetworkError.Request(method: "POST", url: url, headers: headers)
        return NetworkEvent(.attemptStarted(NetworkAttempt(request: line), message))
    }

    private func text(_ body: String, _ type: String?, bodyCount: Int = 4_096) throws -> String {
        try text(Data(body.utf8), type, bodyCount: bodyCount)
    }

    private func text(_ body: Data, _ type: String?, bodyCount: Int = 4_096) throws -> String {
        LogMessage(try started(body, type), .bodies, bodyCount: bodyCount)?.text ?? ""
    }

    @Test("DIA-2: heads have no credentials, cookies and tokens; the levels show what they say")
    func heads() throws {
        let event = try started(
            Data("{}".utf8),
            nil,
            [
                "Authorization": "Bearer secret1", "Cookie": "id=secret2", "X-Api-Key": "secret3",
                "Accept": "text/plain",
                "Referer": "https://u:secret4@example.com/?token=secret5",
            ]
        )
        let text = LogMessage(event, .heads, bodyCount: 100)?.text ?? ""
        expect(text.contains("\n  > Authorization: Bearer REDACTED\n") && text.contains("\n  > Accept: text/plain"))
        expect(!text.contains("secret") && !text.contains("{}"), "\(text)")
        expect(LogMessage(event, .debug, bodyCount: 100) == nil)
        expect(LogMessage(NetworkEvent(.started), .bodies, bodyCount: 100) == nil)
    }

    @Test(
        "DIA-2: a body is shown as text without its secrets, or left out",
        arguments: [
            (#"{"password":"secret","name":"Ada"}"#, "application/json", #"{"name":"Ada","password":"REDACTED"}"#),
            ("user=Ada&password=secret", "application/x-www-form-urlencoded", "user=Ada&password=REDACTED"),
            ("see https://a.b/?token=secret", "text/plain", "see https://a.b/?token=REDACTED"),
            ("<password>secret</password>", "text/xml", "bytes, left out: it has secrets"),
            (
                "--b\r\nContent-Disposition: form-data; name=\"password\"\r\n\r\nsecret\r\n--b--\r\n",
                "multipart/form-data; boundary=b", "bytes, left out: it has secrets"
            ),
            (
                "--b\r\nContent-Disposition: form-data; name=\"city\"\r\n\r\nParis\r\n--b--\r\n",
                "multipart/form-data; boundary=b", "\n  > Paris\n  > --b--"
            ),
        ]
    )
    func bodies(body: String, type: String, shown: String) throws {
        let text = try text(body, type)
        expect(text.contains("\n  >\n  > ") && text.contains(shown), "\(text)")
        expect(!text.contains("secret\n") && !text.hasSuffix("secret") && !text.contains(">secret"), "\(text)")
    }

    @Test("DIA-2: bytes are counted, and no body looks like a line of the log or steers a terminal")
    func otherBodies() throws {
        try expect(text(Data([0, 255, 1, 254]), "image/png").hasSuffix("\n  > (4 bytes that are not text)"))
        try expect(text(Data([255, 254]), "text/plain").hasSuffix("left out: its secrets cannot be found)"))
        let forged = try text("a\r\n2026-01-01 error b\u{1B}[2Jc\u{2028}d\u{85}e\rf", "text/plain")
        expect(forged.hasSuffix("\n  > a\n  > 2026-01-01 error b\u{FFFD}[2Jc\u{FFFD}d\u{FFFD}ef"), "\(forged)")
        try expect(text("", "text/plain").hasSuffix("text/plain"))
    }

    @Test("DIA-2: the beginning of a body is bounded, after its secrets were taken out of the whole")
    func bounds() throws {
        let json = #"{"list":[\#(Array(repeating: "1", count: 5_000).joined(separator: ","))],"zz_token":"secret"}"#
        for (count, isCut) in [(10, true), (100_000, false)] {
            let text = try text(json, "application/json", bodyCount: count)
            expect(text.contains("the beginning of \(json.utf8.count) bytes"), equals: isCut)
            expect(!text.contains("secret") && text.contains(#""zz_token":"REDACTED""#) != isCut)
            expect(text.utf8.count < count + 200)
        }
        // Each line takes room for its mark.
        try expect(text(String(repeating: "\n", count: 10_000), "text/plain", bodyCount: 1_000).utf8.count < 1_200)
        try expect(text("äöü", "text/plain", bodyCount: 3).contains("  > ä\n"))
        // More than is looked at: its secrets cannot be found.
        let long = Data(repeating: 0x61, count: LogMessage.maximumBody + 1)
        let message = try #require(LogMessage(try started(long, "text/plain"), .bodies, bodyCount: 100))
        expect(message.size < 10_000)
        expect(
            message.text.hasSuffix("(\(long.count) bytes, left out: secrets cannot be found in its beginning alone)")
        )
        expect(LogSetting(level: .bodies, bodyCount: .max).bodyCount, equals: LogMessage.maximumBody)
        expect(LogSetting(level: .heads, bodyCount: -1).bodyCount, equals: 0)
    }

    @Test("DIA-2: messages and answers of real calls are shown in the order of their events, failures too")
    func calls() async throws {
        let lines = Locked<[String]>([])
        let transport = InMemoryTransport()
        transport.route("POST", "/a") { _ in
            .json(["name": "Ada", "access_token": "secret"], headers: ["Set-Cookie": "id=secret"])
        }
        transport.route("GET", "/b") { _ in MockResponse(statusCode: 404, body: .data(Data("none".utf8))) }
        let host = HostConfiguration(baseURL: URL(string: "https://api.example.com"), transport: transport)
        let logger = NetworkLogger(level: .bodies) { level, line in lines.withLock { $0.append("\(level) \(line)") } }
        logger.log(host)
        let service = EasyNetworkService(host)
        _ = try await service.send(
            Send(headers: ["Authorization": "Basic secret"], body: .text("p=1", contentType: "text/plain"))
        )
        _ = try? await service.send(Get(api: "b"))
        await logger.settled()
        let all = lines.withLock { $0 }
        let text = all.joined(separator: "\n")
        expect(!text.contains("secret"), "\(text)")
        let started = try #require(all.first { $0.contains("first: POST") })
        expect(started.contains("\n  > Authorization: Basic REDACTED") && started.hasSuffix("\n  >\n  > p=1"))
        let ended = try #require(all.first { $0.contains("→ 200") })
        expect(ended.contains("\n  <\n  < {\"access_token\":\"REDACTED\",\"name\":\"Ada\"}"), "\(ended)")
        try expect(#require(all.first { $0.contains("→ 404") }).hasSuffix("\n  <\n  < none"))
    }

    @Test("DIA-2: of streams and downloads only the beginning is kept, and only for a log with bodies")
    func streams() async throws {
        let lines = Locked<[String]>([])
        let (transport, folder) = (InMemoryTransport(), TestFolder())
        transport.route("GET", "/short") { _ in .text(#"{"token":"secret","a":1}"#) }
        transport.route("GET", "/long") { _ in .text(String(repeating: "long ", count: 100_000)) }
        transport.route("PUT", "/*") { _ in .status(204) }
        let host = HostConfiguration(baseURL: URL(string: "https://api.example.com"), transport: transport)
        let events = Locked<[NetworkEvent]>([])
        let service = EasyNetworkService(host)
        func run() async throws {
            for path in ["short", "long"] {
                for try await _ in try await service.stream(Get(api: path)) {}
                let operation = DownloadOperation(Get(api: path), to: folder.file("d"), service: service)
                NetworkQueue().addOperation(operation)
                _ = try await operation.value
            }
            _ = try await service.send(Send(method: .put, body: .file(folder.write("secret", to: "u"))))
            await host.broadcast.settled()
        }
        let subscription = host.subscribe { event in events.withLock { $0.append(event) } }
        try await run()
        let kept = events.withLock {
            $0.compactMap { event -> Int? in
                guard case .attemptEnded(let attempt, _) = event.kind else { return nil }
                return attempt.beginning?.bytes.count ?? 0
            }
        }
        // Nobody wanted it.
        expect(kept.count == 5 && kept.allSatisfy { $0 == 0 })
        events.exchange([])
        let logger = NetworkLogger(level: .bodies, maximumBodyCount: 1_000) { _, line in
            lines.withLock { $0.append(line) }
        }
        logger.log(host)
        try await run()
        await logger.settled()
        withExtendedLifetime(subscription) {}
        let counts = events.withLock {
            $0.compactMap { event -> [Int]? in
                guard case .attemptEnded(let attempt, _) = event.kind, let beginning = attempt.beginning else {
                    return nil
                }
                return [beginning.bytes.count, beginning.count]
            }
        }
        expect(counts, equals: [[24, 24], [24, 24], [1_000, 500_000], [1_000, 500_000]])
        let text = lines.withLock { $0 }.joined(separator: "\n")
        expect(text.components(separatedBy: #"  < {"a":1,"token":"REDACTED"}"#).count, equals: 3, "\(text)")
        expect(text.components(separatedBy: "(500000 bytes, left out: secrets cannot").count, equals: 3)
        expect(text.contains("  > (left out: the body is read or made while it is sent)"))
        expect(!text.contains("secret\"") && !text.contains("long long"))
    }
}
