#if os(Linux)
import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import EasyNetworkDiagnostics
@testable import TestSupport

/// Plants secrets in all parts of real calls, with everything on that shows calls.
@Suite("Secrets in what is shown", .timeLimit(.minutes(10)))
struct SecretsTests {
    private struct Send: APIRequest {
        typealias Item = NetworkResponse
        var api: String
        var method = NetworkService.Method.post
        var query = NetworkService.QueryType.automatic
        var params: [String: Any]? { fields }
        var fields: [String: String]?
        var headers: [String: String]?
        var body: RequestBody?
        var credential: HTTPCredential?
        var options: RequestOptions { RequestOptions(credential: credential) }
    }

    /// Numbered, so that a failure tells which one was shown.
    private static func secret(_ number: Int) -> String { "s3cret" + (number < 10 ? "0" : "") + String(number) }
    private static let count = 40

    /// A server that is its own proxy, and puts secrets into its answers.
    private func server() throws -> MockServer {
        let server = try MockServer()
        server.route("*", "/*") { _ in
            .json(
                ["access_token": "s3cret01", "user": ["password": "s3cret02"]] as [String: Any],
                headers: [
                    "Set-Cookie": "id=s3cret03; Path=/", "X-Auth-Token": "s3cret04", "X-Session-Id": "s3cret05",
                    "Authentication-Info": "token=s3cret06",
                ]
            )
        }
        server.route("*", "/moved") { _ in
            .status(307, headers: ["Location": "http://eve:s3cret07@api.invalid/there?sig=s3cret08#id_token=s3cret09"])
        }
        server.route("*", "/fails") { _ in
            .json(["message": "access_token=s3cret10 of https://bob:s3cret11@host has expired"], status: 500)
        }
        server.route("*", "/refuses") { _ in
            .json(["error_description": "no client_secret=s3cret12"], status: 401)
        }
        server.route("*", "/page") { _ in
            .text("<input name=\"csrf_token\" value=\"s3cret13\">", headers: ["Content-Type": "text/html"])
        }
        server.route("*", "/lost") { _ in .fault(.close) }
        return server
    }

    private func requests() throws -> [Send] {
        var form = MultipartForm()
        form.append("s3cret14", name: "password")
        return [
            Send(api: "a?access_token=s3cret15&code=s3cret16&X-Amz-Signature=s3cret17#token=s3cret18"),
            Send(api: "http://ada:s3cret19@api.invalid/b"),
            Send(
                api: "c",
                headers: [
                    "Authorization": "Bearer s3cret20", "Cookie": "sid=s3cret21; theme=s3cret22",
                    "X-Api-Key": "s3cret23", "X-Auth-Token": "s3cret24", "X-CSRF-Token": "s3cret25",
                    "X-Access-Token": "s3cret26", "Ocp-Apim-Subscription-Key": "s3cret27",
                    "X-Amz-Security-Token": "s3cret28", "Referer": "https://x.example/?apikey=s3cret29",
                ]
            ),
            Send(api: "d", credential: try .basic(user: "ada", password: "s3cret30")),
            Send(api: "e", query: .json, fields: ["password": "s3cret31", "nested": #"{"client_secret":"s3cret32"}"#]),
            Send(api: "f", query: .form, fields: ["user[password]": "s3cret33", "code": "s3cret34"]),
            Send(api: "g", method: .get, fields: ["session": "s3cret35"]),
            Send(api: "h", body: .multipart(form)),
            Send(api: "moved?jwt=s3cret36"), Send(api: "fails?passphrase=s3cret37"), Send(api: "refuses"),
            Send(api: "page"), Send(api: "lost?refresh_token=s3cret38"),
        ]
    }

    @Test("DIA-1, BEY-12: no planted secret is in a log, HAR, timeline, graph, cURL line or error of real calls")
    func planted() async throws {
        let folder = TestFolder()
        let file = folder.url.appendingPathComponent("traffic.har")
        let server = try server()
        let port = try #require(server.baseURL.port)
        func host(port: Int) throws -> HostConfiguration {
            let proxy = try #require(URL(string: "http://proxy:s3cret39@127.0.0.1:\(port)"))
            let transport = CurlTransport(TransportConfiguration(proxy: .url(proxy)))
            return HostConfiguration(baseURL: URL(string: "http://api.invalid"), transport: transport) { host in
                host.retry.baseDelay = 0
            }
        }
        // Nothing listens at the second one.
        let services = try [host(port: port), host(port: 1)].map { EasyNetworkService($0) }
        let queue = NetworkQueue(name: "secrets")
        queue.isSuspended = true

        let shown = Locked<[String]>([])
        func show(_ texts: String?...) { shown.withLock { $0 += texts.compactMap { $0 } } }
        let logger = NetworkLogger(level: .bodies) { _, line in shown.withLock { $0.append(line) } }
        let recorder = try TrafficRecorder(file: file)
        let timeline = Timeline()
        var listeners: [EventSubscription] = []
        let listen: @Sendable (NetworkEvent) -> Void = { event in
            shown.withLock { $0 += [event.logLine, "\(event)", String(reflecting: event)] }
        }
        for host in services.map(\.configuration) {
            logger.log(host)
            recorder.record(host)
            timeline.record(host)
            listeners.append(host.subscribe(listen))
        }
        logger.log(queue)
        recorder.record(queue)
        timeline.record(queue)
        listeners.append(queue.subscribe(listen))

        var jobs: [RequestOperation<Send>] = []
        for (service, requests) in zip(services, [try requests(), [Send(api: "x?token=s3cret38")]]) {
            for request in requests {
                let job = RequestOperation(request, service: service)
                // As a program that names jobs by their addresses.
                job.name = "POST http://bob:s3cret40@api.invalid/\(request.api)"
                job.tags = ["token=s3cret40"]
                if let last = jobs.last { job.addDependency(last, policy: .allowFailure) }
                jobs.append(job)
                // One has a user in its address, which is refused.
                show(try? await service.curlCommand(for: request))
            }
        }
        let dependent = RequestOperation(Send(api: "y"), service: services[0])
        dependent.addDependency(try #require(jobs.last))
        queue.addOperations(jobs + [dependent], waitUntilFinished: false)
        for graph in [queue.graph(), queue.mermaidGraph(), queue.dotGraph()] { show(graph) }
        for job in jobs { show(queue.explain(job).map(\.description).joined()) }
        queue.isSuspended = false
        await dependent.ended()

        for error in (jobs + [dependent]).compactMap(\.error) {
            show("\(error)", String(reflecting: error), error.localizedDescription, error.curlCommand())
            show("\((error as NSError).userInfo)", "\(error.bridged)", "\(error.bridged.userInfo)")
        }
        for response in jobs.compactMap({ try? $0.result?.get() }) {
            show("\(response)", String(reflecting: response))
            for attempt in response.history { show("\(attempt)", attempt.curlCommand()) }
        }
        try await recorder.finish()
        await logger.settled()
        show(await timeline.html(), await timeline.text(width: 400), try String(contentsOf: file, encoding: .utf8))

        expect(jobs.filter { $0.error == nil }.count, equals: 9, "\(jobs.map { $0.error?.code })")
        expect(dependent.error?.code, equals: .dependencyFailed)
        let sent = server.requests.map { "\($0.target) \($0.headers) \(String(decoding: $0.body, as: UTF8.self))" }
        expect(sent.contains { $0.contains("s3cret15") } && sent.contains { $0.contains("s3cret33") })
        let all = shown.withLock { $0 }
        expect(all.count > 200 && all.contains { $0.contains("REDACTED") })
        let basics = ["ada:s3cret30", "ada:s3cret19", "proxy:s3cret39"].map { Data($0.utf8).base64EncodedString() }
        for secret in (1...Self.count).map(Self.secret) + basics {
            let place = all.first { $0.contains(secret) }
            expect(place == nil, "\(secret) in \(Self.excerpt(place ?? "", secret))")
        }
    }

    /// Texts with a secret, of which each has a telling name or place.
    private static func texts(_ name: String, _ secret: () -> String) -> [String] {
        [
            "bad \(name)=\(secret())", "bad \(name): \(secret())", "bad header \(name): Bearer \(secret())",
            "\(name) = a \(secret())", "\(name)='a \(secret())'", "\(name)=<\"'\\\(secret())&b=1",
            "{\"\(name)\":\"a\\\"\(secret())\"}", "{\"a\":[{\"\(name)\":[1,{\"b\":\"\(secret())\"}]}]}",
            "{\"a\":\"{\\\"\(name)\\\":\\\"\(secret())\\\"}\"}", "{\"b\":1,\"\(name)\": \"\(secret())",
            "<\(name)>\(secret())</\(name)>", "<user \(name) = 'a \(secret())'/>",
            "https://h/a?b=1&\(name)=\(secret())#top", "https://h/?a=https%3A%2F%2Fu%3A\(secret())%40h%2F",
            "https://h/?next=https%3A%2F%2Fh%2F~a%3Fb%3D1%26\(name)%3D\(secret())",
            "https://h/?next=https%253A%252F%252Fh%252F%253F\(name)%253D\(secret())",
            "https://h/?payload=%7B%22\(name)%22%3A%22\(secret())%22%7D", "payload={\"\(name)\":\"\(secret())\"}",
            "Content-Disposition: form-data; name=\(name); a \(secret())",
            "<input name=\"\(name)\" value=\"\(secret())\">",
            "https://ada:\(secret())@h/a", "Proxy-Authorization: Basic \(secret())",
            "the header is 'Bearer \(secret())'",
            "Set-Cookie: \(secret()); \(name)",
        ]
    }

    private static let names = [
        "Authorization", "X-Api-Key", "access_token", "refreshToken", "client_secret", "password", "user_pwd",
        "passcode",
        "X-GitHub-OTP", "npm-otp", "X-Session", "session_key", "PHPSESSID", "connect.sid", "basicAuth",
        "X-Appwrite-Key",
        "totp", "cvv", "X-CSRF-Token", "X-Amz-Signature", "sessionid", "jwt", "passphrase", "private_key",
        "X-Own-Beyond",
    ]

    @Test("BEY-21: none of 600 secrets in messages, answers, redirects and errors is in any text that can be printed")
    func everywhere() async throws {
        var count = 0
        let texts = Self.names.flatMap { name in
            Self.texts(name) {
                count += 1
                return "s3cret" + String(1_000 + count)
            }
        }
        expect(count == 600 && texts.count == 600)
        // Each part with a part of them, which the whole would take long for.
        let step = TestLoad.isFull ? 1 : 20
        let all = stride(from: Int.random(in: 0..<step), to: texts.count, by: step).map { texts[$0] }
        let folder = TestFolder()
        let file = folder.url.appendingPathComponent("traffic.har")
        let transport = InMemoryTransport()
        @Sendable func field(_ headers: HTTPHeaders) -> Int { headers["X-Number"].flatMap { Int($0) } ?? 0 }
        transport.route("POST", "/text/*") { request in
            let text = all[field(request.headers)]
            return .text(text, headers: ["X-Note": text, "Set-Cookie": "s3cret0001", "Content-Type": "text/plain"])
        }
        transport.route("POST", "/fails/*") { request in
            .json(
                ["message": all[field(request.headers)], "a": ["b": all[field(request.headers)]]] as [String: Any],
                status: 400
            )
        }
        transport.route("POST", "/moved/*") { request in
            let text = all[field(request.headers)].addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
            return .status(307, headers: ["Location": "/fails/a?text=\(text)"])
        }
        let host = HostConfiguration(baseURL: URL(string: "http://api.example.com"), transport: transport) { host in
            host.secretNames = ["X-Own-Beyond"]
            host.retry = .never
            host.cookies = CookieJar()
        }
        let service = EasyNetworkService(host)
        let queue = NetworkQueue(name: "secrets")
        queue.isSuspended = true

        let shown = Locked<[String]>([])
        func show(_ texts: String?...) { shown.withLock { $0 += texts.compactMap { $0 } } }
        let loggers = [NetworkEvent.Level.bodies, .debug, .info, .error].map { level in
            NetworkLogger(level: level) { _, line in shown.withLock { $0.append(line) } }
        }
        let recorder = try TrafficRecorder(file: file, maximumBodyCount: .max)
        let timeline = Timeline()
        for logger in loggers {
            logger.log(host)
            logger.log(queue)
        }
        recorder.record(host)
        recorder.record(queue)
        timeline.record(host)
        timeline.record(queue)
        let listener = queue.subscribe { event in
            shown.withLock { $0 += [event.logLine, "\(event)", String(reflecting: event)] }
        }

        var jobs: [RequestOperation<Send>] = []
        for (number, text) in all.enumerated() {
            let encoded = text.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
            let path = ["text", "fails", "moved"][number % 3]
            let bodies: [RequestBody] = [
                .text(text), .text("a=1&text=\(encoded)", contentType: "application/x-www-form-urlencoded"),
                .jsonObject(["text": text]),
            ]
            let request = Send(
                api: "\(path)/a?text=\(encoded)",
                headers: ["X-Number": "\(number)", "X-Note": text],
                body: bodies[number / 3 % 3]
            )
            let job = RequestOperation(request, service: service)
            job.name = text
            job.tags = [text]
            jobs.append(job)
            show(try await service.curlCommand(for: request))
            let error = NSError(domain: "a", code: 1, userInfo: [NSLocalizedDescriptionKey: text, "b": text])
            let failure = NetworkError(
                code: .refused,
                message: text,
                headers: ["X-Note": text],
                serverMessage: text,
                underlying: error,
                dependencyPath: [text, "b"]
            )
            let other = NetworkOperation()
            other.name = text
            other.finish(failure)
            let dependent = NetworkOperation()
            dependent.addDependency(other)
            dependent.addDependency(job, policy: .allowFailure)
            queue.addOperations([job, other, dependent], waitUntilFinished: false)
            Self.describe(failure, show)
        }
        for graph in [queue.graph(), queue.mermaidGraph(), queue.dotGraph()] { show(graph) }
        for job in jobs.prefix(50) { show(queue.explain(job).map(\.description).joined()) }
        queue.isSuspended = false
        for job in jobs { await job.ended() }
        for job in jobs {
            switch job.result {
            case .success(let response):
                show("\(response)", String(reflecting: response), "\(response.headers)")
                for attempt in response.history {
                    show("\(attempt)", String(reflecting: attempt), attempt.curlCommand())
                }
            case .failure(let error): Self.describe(error, show)
            case nil: Issue.record("not finished")
            }
        }
        try await recorder.finish()
        for logger in loggers { await logger.settled() }
        show(await timeline.html(), await timeline.text(width: 2_000), try String(contentsOf: file, encoding: .utf8))

        let third = all.count / 3
        expect(jobs.count { $0.error == nil }, equals: third)
        expect(jobs.count { $0.error?.code == .unacceptableStatus }, equals: 2 * third)
        expect(transport.requests.count, equals: 4 * third)
        let leaks = shown.withLock { $0 }.filter { $0.contains("s3cret") }
        for text in leaks.prefix(30) { Issue.record("\(Self.excerpt(text, "s3cret"))") }
        expect(leaks.isEmpty, "\(leaks.count)")
        withExtendedLifetime(listener) {}
    }

    private static func describe(_ error: NetworkError, _ show: (String?...) -> Void) {
        show("\(error)", String(reflecting: error), error.localizedDescription, error.curlCommand())
        show("\((error as NSError).userInfo)", "\(error.bridged)", "\(error.bridged.userInfo)")
        for attempt in error.history { show("\(attempt)", String(reflecting: attempt), attempt.curlCommand()) }
        var text = ""
        dump(error, to: &text)
        show(text)
    }

    private static func excerpt(_ text: String, _ secret: String) -> String {
        guard let range = text.range(of: secret) else { return "" }
        return String(text[..<range.upperBound].suffix(300)) + text[range.upperBound...].prefix(40)
    }
}
#endif
