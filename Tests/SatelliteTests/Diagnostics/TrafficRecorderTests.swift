import Dispatch
import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import EasyNetworkDiagnostics
@testable import TestSupport

@Suite("Recordings of traffic", .timeLimit(.minutes(10)))
struct TrafficRecorderTests {
    private struct Send: APIRequest {
        typealias Item = NetworkResponse
        var api: String
        var method = NetworkService.Method.get
        var headers: [String: String]?
        var body: RequestBody?
        var cache: CachePolicy?
        var options: RequestOptions { RequestOptions(cache: cache, isAuthenticated: isAuthenticated) }
        var isAuthenticated = true
    }

    private struct GetUser: APIRequest {
        struct Item: Decodable, Equatable {
            let name: String
            let height: Double
        }
        var api: String { "user" }
    }

    /// The parts of a file that the tests read.
    private struct Recording {
        let log: [String: Any]
        let entries: [[String: Any]]

        init(_ data: Data) throws {
            let json = try JSONSerialization.jsonObject(with: data) as? [String: Any]
            log = try #require(json?["log"] as? [String: Any])
            entries = try #require(log["entries"] as? [[String: Any]])
        }

        func part(_ index: Int, _ path: String...) -> Any? {
            guard entries.indices.contains(index) else { return nil }
            return path.reduce(entries[index] as Any?) { ($0 as? [String: Any])?[$1] }
        }

        func header(_ index: Int, _ message: String, _ name: String) -> String? {
            let fields = part(index, message, "headers") as? [[String: String]]
            return fields?.first { $0["name"] == name }?["value"]
        }

        /// Path, status and reason of each entry.
        var lines: [String] {
            entries.indices.map { index in
                let url = (part(index, "request", "url") as? String).flatMap { URL(string: $0) }
                let reason = part(index, "_reason") as? String ?? "cache"
                return "\(url?.path ?? "?") \(part(index, "response", "status") ?? "?") \(reason)"
            }
        }
    }

    private let folder: TestFolder
    private let file: URL
    private let server: MockServer
    private let service: EasyNetworkService
    private let queue = NetworkQueue()

    init() throws {
        folder = TestFolder()
        file = folder.url.appendingPathComponent("traffic.har")
        server = try MockServer()
        let host = HostConfiguration(baseURL: server.baseURL) { host in
            host.retry.baseDelay = 0
            host.cache = NetworkCache(diskBytes: 0)
        }
        service = EasyNetworkService(host)
        server.route("GET", "/user") { _ in .json(["name": "Ada", "height": 1.7] as [String: Any]) }
        server.route("GET", "/moved") { _ in .status(302, headers: ["Location": "/user"]) }
        server.route("GET", "/bytes") { _ in .data(Data([0, 255, 1, 254]), headers: ["Content-Type": "image/png"]) }
        server.route("GET", "/large") { _ in .text(String(repeating: "äöü ", count: 20_000)) }
        server.route("POST", "/lost") { _ in .fault(.close) }
        server.route("POST", "/form") { _ in .status(204, headers: ["Set-Cookie": "id=7; Path=/; HttpOnly"]) }
        server.route("GET", "/fresh") { _ in .text("fresh", headers: ["Cache-Control": "max-age=60"]) }
        server.route("GET", "/checked") { request in
            request.headers["If-None-Match"] == nil
                ? .text("checked", headers: ["Cache-Control": "no-cache", "ETag": "\"1\""]) : .status(304)
        }
        let isFirst = Locked(true)
        server.route("GET", "/busy") { _ in isFirst.exchange(false) ? .status(503) : .text("free") }
    }

    private func recording() throws -> Recording { try Recording(Data(contentsOf: file)) }

    /// Makes a call of every kind.
    private func makeTraffic() async throws {
        let first = RequestOperation(GetUser(), service: service)
        first.name = "user"
        let second = RequestOperation(Send(api: "moved"), service: service)
        second.name = "moved"
        second.tags = ["start"]
        second.addDependency(first)
        queue.addOperation(first)
        queue.addOperation(second)
        _ = try await second.value
        for path in ["busy", "bytes", "large"] { _ = try await queue.perform(Send(api: path), service: service) }
        let form = RequestBody.text("name=Ada+L&mail=a%40b.c", contentType: "application/x-www-form-urlencoded")
        _ = try await queue.perform(Send(api: "form", method: .post, body: form), service: service)
        for path in ["fresh", "fresh", "checked", "checked"] {
            _ = try await queue.perform(Send(api: path, cache: CachePolicy(.http)), service: service)
        }
        await #expect(throws: NetworkError.self) {
            _ = try await queue.perform(Send(api: "lost", method: .post, body: .text("x")), service: service)
        }
    }

    @Test("DIA-1: each attempt is an entry, with redirects, retries and failures; so is an answer of the cache")
    func entries() async throws {
        // .ci/formats asks for the file.
        let output = ProcessInfo.processInfo.environment["HAR_OUT"].map { URL(fileURLWithPath: $0) } ?? file
        let recorder = try TrafficRecorder(file: output)
        recorder.record(queue)
        try await makeTraffic()
        try await recorder.finish()

        let recording = try Recording(Data(contentsOf: output))
        expect(
            recording.lines,
            equals: [
                "/user 200 first", "/moved 302 first", "/user 200 redirect", "/busy 503 first", "/busy 200 retry",
                "/bytes 200 first", "/large 200 first", "/form 204 first", "/fresh 200 first", "/fresh 200 cache",
                "/checked 200 first", "/checked 304 first", "/lost 0 first",
            ]
        )
        expect(recording.log["version"] as? String == "1.2" && recording.log["_dropped"] == nil)
        expect(recording.part(0, "response", "content", "text") as? String, equals: #"{"height":1.7,"name":"Ada"}"#)
        expect(recording.part(1, "response", "redirectURL") as? String, equals: "/user")
        expect(recording.part(2, "_job", "name") as? String, equals: "moved")
        expect(recording.part(2, "_job", "tags") as? [String], equals: ["start"])
        expect(recording.part(2, "_job", "host") as? String, equals: service.configuration.host)
        expect((recording.part(2, "_dependsOn") as? [[String: Any]])?.map { $0["name"] as? String }, equals: ["user"])
        expect(recording.part(2, "_attempt") as? Int, equals: 2)
        expect(recording.part(1, "_call") as? Int, equals: recording.part(2, "_call") as? Int)
        expect(recording.part(5, "response", "content", "text") as? String, equals: "AP8B/g==")
        expect(recording.part(5, "response", "content", "encoding") as? String, equals: "base64")
        let large = recording.part(6, "response", "content")
        expect((large as? [String: Any])?["size"] as? Int, equals: 140_000)
        expect(((large as? [String: Any])?["text"] as? String)?.utf8.count, equals: 65_536)
        expect((large as? [String: Any])?["comment"] as? String, equals: "only the beginning")
        let items = recording.part(7, "request", "postData", "params") as? [[String: String]]
        expect(items, equals: [["name": "name", "value": "Ada L"], ["name": "mail", "value": "a@b.c"]])
        expect(recording.part(7, "request", "postData", "text") as? String, equals: "name=Ada+L&mail=a%40b.c")
        let cookie = (recording.part(7, "response", "cookies") as? [[String: Any]])?.first
        expect(cookie?["name"] as? String == "id" && cookie?["value"] as? String == Redaction.mark)
        expect(cookie?["httpOnly"] as? Bool == true && cookie?["path"] as? String == "/")
        expect(recording.part(9, "_fromCache") as? Bool == true && recording.part(9, "time") as? Double == 0)
        expect(recording.part(9, "response", "content", "text") as? String, equals: "fresh")
        expect(recording.part(10, "_cache") as? String, equals: "absent")
        expect(recording.part(11, "response", "content", "text") as? String, equals: "checked")
        expect(recording.part(12, "response", "_error") as? String, equals: "connectionLost")
        for index in recording.entries.indices {
            let timings = try #require(recording.part(index, "timings") as? [String: Double])
            let sum = timings.filter { $0.key != "ssl" && $0.value >= 0 }.values.reduce(0, +)
            let time = try #require(recording.part(index, "time") as? Double)
            expect(abs(sum - time) < 1, "\(recording.lines[index]): \(timings) and \(time)")
        }
        #if os(Linux)
        expect(recording.part(0, "serverIPAddress") as? String, equals: "127.0.0.1")
        expect(recording.part(0, "response", "httpVersion") as? String, equals: "HTTP/1.1")
        expect(recording.part(0, "request", "headersSize") as? Int ?? 0 > 20)
        #endif
        let mode = try FileManager.default.attributesOfItem(atPath: output.path)[.posixPermissions] as? Int
        expect(mode, equals: 0o600)
    }

    @Test("DIA-1: an entry has the fields of its own messages, in their order and spelling, whatever was before it")
    func fields() throws {
        let url = try #require(URL(string: "http://example.com/"))
        let lists: [HTTPHeaders] = [
            ["A": "1", "B": "2"], ["A": "1", "B": "3"], ["a": "1"], [:], ["B": "3", "A": "1", "X-Token": "4"],
            ["B": "3", "A": "1", "X-Taken": "4"], ["B": "3", "A": "1", "X-Token": "5", "x-token": "5"],
            // Equal for Swift.
            ["A": "e\u{301}"], ["A": "\u{E9}"],
        ]
        func line(_ sent: HTTPHeaders, _ received: HTTPHeaders, _ writer: HARWriter) -> String {
            let message = TransportRequest(method: .get, url: url, headers: sent)
            let error = NetworkError(code: .unacceptableStatus, statusCode: 400, headers: received)
            let date = Date(timeIntervalSince1970: 0)
            var bytes: [UInt8] = []
            writer.write(HAREntry(message, .failure(error), at: date, callNumber: 1, job: nil), to: &bytes)
            return String(decoding: bytes, as: UTF8.self)
        }
        for redaction in [Redaction.standard, nil] {
            func writer() -> HARWriter { HARWriter(redaction: redaction, maximumBodyCount: 0) }
            let used = writer()
            for (sent, received) in zip(lists, lists.reversed()) {
                let text = line(sent, received, used)
                expect(text.utf8.elementsEqual(line(sent, received, writer()).utf8))
                for field in sent {
                    let isSecret = redaction?.isSecret(field.name) == true
                    let value = isSecret ? Redaction.mark : field.value
                    expect(text.contains(#"{"name":"\#(field.name)","value":"\#(value)"}"#))
                }
            }
        }
    }

    @Test("DIA-1: the file is a whole HAR after each entry")
    func wholeAfterEachEntry() async throws {
        let recorder = try TrafficRecorder(file: file)
        try expect(recording().entries.isEmpty)
        recorder.record(queue)
        for count in 1...20 {
            _ = try await queue.perform(Send(api: count.isMultiple(of: 2) ? "user" : "large"), service: service)
            try await recorder.settled()
            try expect(recording().entries.count, equals: count)
        }
    }

    private struct Refreshing: Authenticator {
        func apply(_ credential: String, to request: inout TransportRequest) throws {
            request.headers["Authorization"] = try HTTPCredential.bearer(credential).authorization
        }

        func refresh(_ credential: String?, over service: EasyNetworkService) async throws -> String {
            try await service.send(Send(api: "token", isAuthenticated: false)).text()
        }
    }

    @Test(
        "BEY-12, CBK-7: a recording of a queue has the messages of a refresh that a job needed, once",
        arguments: [false, true]
    )
    func refresh(recordsHost: Bool) async throws {
        server.route("GET", "/mine") { request in
            request.headers["Authorization"] == "Bearer new" ? .status(200) : .status(401)
        }
        server.route("GET", "/token") { _ in .text("new") }
        let session = AuthenticationSession(Refreshing(), credential: "old")
        let host = HostConfiguration(baseURL: server.baseURL) { $0.authentication = session }
        let recorder = try TrafficRecorder(file: file)
        recorder.record(queue)
        if recordsHost { recorder.record(host) }
        _ = try await queue.perform(Send(api: "mine"), service: EasyNetworkService(host))
        try await recorder.finish()
        let lines = try recording().lines.map { $0.split(separator: " ").prefix(2).joined(separator: " ") }
        expect(lines.sorted(), equals: ["/mine 200", "/mine 401", "/token 200"])
    }

    @Test("DIA-1: an attempt that is under way when the recording ends is an entry, as cancelled")
    func underWay() async throws {
        server.route("GET", "/slow") { _ in .fault(.stall) }
        let recorder = try TrafficRecorder(file: file)
        recorder.record(queue)
        let operation = RequestOperation(Send(api: "slow"), service: EasyNetworkService(server.host()))
        queue.addOperation(operation)
        await server.waitForRequests(1)
        try await recorder.finish()
        operation.cancel()
        await operation.ended()
        try await recorder.finish()
        let recording = try recording()
        expect(recording.lines, equals: ["/slow 0 first"])
        expect(recording.part(0, "response", "_error") as? String, equals: "cancelled")
    }

    @Test("DIA-1: a write that a kill cuts costs its own entry, and no other one is lost when the file is replayed")
    func cut() async throws {
        let recorder = try TrafficRecorder(file: file)
        recorder.record(queue)
        var states = [try Data(contentsOf: file)]
        for path in ["user", "bytes"] {
            _ = try await queue.perform(Send(api: path), service: service)
            try await recorder.settled()
            states.append(try Data(contentsOf: file))
        }
        for (index, (before, after)) in zip(states, states.dropFirst()).enumerated() {
            let start = zip(before, after).prefix { $0 == $1 }.count
            for count in Array(start..<start + 10) + Array(stride(from: start + 10, to: after.count, by: 97)) {
                try (after.prefix(count) + before.dropFirst(count)).write(to: file)
                let transport = try InMemoryTransport(har: file)
                guard index > 0 else { continue }
                let host = HostConfiguration(baseURL: server.baseURL, transport: transport)
                let user = try await EasyNetworkService(host).perform(GetUser())
                expect(user.name, equals: "Ada", "cut after \(count) bytes")
            }
        }
    }

    @Test("DIA-1: a queue and its host recorded together have each attempt once, and a call without a job, too")
    func queueAndHost() async throws {
        let recorder = try TrafficRecorder(file: file)
        for _ in 1...2 {
            recorder.record(service.configuration)
            recorder.record(queue)
        }
        _ = try await service.send(Send(api: "busy"))
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 1...40 {
                group.addTask { _ = try await queue.perform(Send(api: "moved"), service: service) }
            }
            try await group.waitForAll()
        }
        try await recorder.finish()
        let lines = try recording().lines
        expect(lines.count == 82 && Set(lines).count == 4, "\(lines)")
        let all = try recording()
        expect(all.part(0, "_job") == nil && all.part(0, "_call") != nil)
        // Nothing is recorded any more.
        recorder.record(queue)
        _ = try await queue.perform(Send(api: "user"), service: service)
        try await recorder.settled()
        try expect(recording().entries.count, equals: 82)
    }

    @Test("DIA-1: a host alone is recorded whole while its queue has another listener")
    func hostAlone() async throws {
        let recorder = try TrafficRecorder(file: file)
        recorder.record(service.configuration)
        let events = queue.events
        _ = try await queue.perform(Send(api: "user"), service: service)
        try await recorder.finish()
        try expect(recording().lines, equals: ["/user 200 first"])
        withExtendedLifetime(events) {}
    }

    @Test("DIA-1: no secret is in the file: of addresses, fields, cookies, JSON, forms, XML and other texts")
    func secrets() async throws {
        let answers: [(String, MockResponse)] = [
            ("json", .json(["access_token": "s3cret01", "user": ["password": "s3cret02"]] as [String: Any])),
            ("nested", .json(["body": #"{"refreshToken":"s3cret03"}"#, "link": "https://x.example/?sig=s3cret04"])),
            ("xml", .text("<a><password>s3cret05</password></a>", headers: ["Content-Type": "application/xml"])),
            ("lines", .text("{\"token\":\"s3cret06\"}\n{\"token\":\"s3cret07\"}\n")),
            ("html", .text("<input name=\"csrf_token\" value=\"s3cret08\">", headers: ["Content-Type": "text/html"])),
            ("columns", .text("name,password\nada,s3cret09", headers: ["Content-Type": "text/csv"])),
            ("form", .text("a=b&oauth_token=s3cret10", headers: ["Content-Type": "application/x-www-form-urlencoded"])),
            (
                "fields",
                .status(
                    200,
                    headers: [
                        "Set-Cookie": "id=s3cret11; Path=/", "X-Auth-Token": "s3cret12",
                        "Location": "/x?token=s3cret13", "WWW-Authenticate": "Digest realm=a, signature=s3cret14",
                    ]
                )
            ),
            ("utf16", .data(try #require("{\"apiKey\":\"s3cret15\"}".data(using: .utf16LittleEndian)))),
            ("yaml", .text("client_secret: s3cret16")),
            ("log", .text("GET https://ada:s3cret17@host/?key=s3cret18 200")),
        ]
        server.route("*", "/*") { _ in .status(200) }
        for (path, answer) in answers { server.route("*", "/" + path) { _ in answer } }

        let recorder = try TrafficRecorder(file: file)
        recorder.record(queue)
        var requests = answers.map { Send(api: $0.0) }
        requests.append(
            Send(
                api: "a?token=s3cret19&code=s3cret20",
                headers: [
                    "Authorization": "Bearer s3cret21", "Cookie": "sid=s3cret22; b=s3cret23", "X-Api-Key": "s3cret24",
                    "Referer": "https://x.example/?access_token=s3cret25",
                ]
            )
        )
        let bodies: [RequestBody] = [
            .text(#"{"grant":{"client_secret":"s3cret26"}}"#, contentType: "application/json"),
            .text("user=ada&password=s3cret27", contentType: "application/x-www-form-urlencoded"),
            .text(#"{"token":"s3cret28"}"#),
            .text("--x\r\nContent-Disposition: form-data; name=\"pin\"\r\n\r\ns3cret29\r\n--x--\r\n"),
            .text(#"{"cut":[{"password":"s3cret30""#, contentType: "application/json"),
        ]
        for body in bodies { requests.append(Send(api: "b", method: .post, body: body)) }
        for request in requests { _ = try await queue.perform(request, service: service) }
        var parts = try #require(URLComponents(url: server.baseURL, resolvingAgainstBaseURL: true))
        (parts.user, parts.password) = ("ada", "s3cret31")
        let address = try #require(parts.string)
        server.route("GET", "/user") { _ in .status(302, headers: ["Location": address + "/a"]) }
        for service in [EasyNetworkService(HostConfiguration(baseURL: parts.url)), EasyNetworkService(server.host())] {
            recorder.record(service.configuration)
            _ = try? await service.send(Send(api: "user"))
        }
        try await recorder.finish()

        var text = try String(contentsOf: file, encoding: .utf8)
        let recording = try recording()
        // A user in the base URL is refused, one in a redirect is left out.
        expect(recording.entries.count, equals: requests.count + 2)
        for index in recording.entries.indices where recording.part(index, "response", "content", "encoding") != nil {
            let base64 = try #require(recording.part(index, "response", "content", "text") as? String)
            let bytes = try #require(Data(base64Encoded: base64))
            text += String(decoding: bytes.filter { $0 != 0 }, as: UTF8.self)
        }
        for number in 1...31 {
            let secret = "s3cret" + (number < 10 ? "0" : "") + String(number)
            expect(!text.contains(secret), "\(secret)")
        }
        expect(text.contains("Bearer REDACTED") && text.contains(#"\"access_token\":\"REDACTED\""#))
    }

    @Test("BEY-21: the file is taken away from all but its owner, and a symbolic link is not followed")
    func mode() async throws {
        try Data("old".utf8).write(to: file)
        try FileManager.default.setAttributes([.posixPermissions: 0o666], ofItemAtPath: file.path)
        let recorder = try TrafficRecorder(file: file)
        let mode = try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? Int
        expect(mode, equals: 0o600)
        try await recorder.finish()
        try expect(recording().entries.isEmpty)

        let link = folder.url.appendingPathComponent("link.har")
        let target = folder.url.appendingPathComponent("target")
        try Data("kept".utf8).write(to: target)
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: target)
        #expect { try TrafficRecorder(file: link) } throws: { ($0 as? NetworkError)?.code == .cannotWriteFile }
        try expect(Data(contentsOf: target), equals: Data("kept".utf8))
    }

    @Test("BEY-21: a cookie without a name has no value in the file")
    func namelessCookie() async throws {
        server.route("GET", "/nameless") { _ in .status(204, headers: ["Set-Cookie": "s3cret01; Path=/?token=s3cret02"])
        }
        let recorder = try TrafficRecorder(file: file)
        recorder.record(queue)
        _ = try await queue.perform(
            Send(api: "nameless", headers: ["Cookie": "s3cret03; a=s3cret04"]),
            service: service
        )
        try await recorder.finish()
        try expect(!String(contentsOf: file, encoding: .utf8).contains("s3cret"))
        let cookies = try recording().part(0, "request", "cookies") as? [[String: String]]
        expect(cookies?.map { $0["name"] }, equals: ["", "a"])
    }

    @Test("DIA-1: without redaction all is kept; a long body is cut between two characters")
    func unredacted() async throws {
        server.route("GET", "/long") { _ in .text(String(repeating: "ä", count: 3_000_000)) }
        let recorder = try TrafficRecorder(file: file, redaction: nil, maximumBodyCount: 7)
        recorder.record(queue)
        _ = try await queue.perform(Send(api: "user?token=abc", headers: ["X-Api-Key": "k3y"]), service: service)
        _ = try await queue.perform(Send(api: "long"), service: service)
        try await recorder.finish()
        let recording = try recording()
        expect((recording.part(0, "request", "url") as? String)?.hasSuffix("/user?token=abc"), equals: true)
        let items = recording.part(0, "request", "queryString") as? [[String: String]]
        expect(items, equals: [["name": "token", "value": "abc"]])
        expect(recording.header(0, "request", "X-Api-Key"), equals: "k3y")
        expect(recording.part(1, "response", "content", "text") as? String, equals: "äää")
        expect(recording.part(1, "response", "content", "size") as? Int, equals: 6_000_000)
    }

    @Test("DIA-1: with a recording, the same jobs have the same items without a network")
    func replay() async throws {
        let recorder = try TrafficRecorder(file: file, maximumBodyCount: 1_000_000)
        recorder.record(queue)
        func items(_ service: EasyNetworkService) async throws -> [String] {
            var items = ["\(try await queue.perform(GetUser(), service: service))"]
            for path in ["moved", "busy", "bytes", "large", "user?token=abc"] {
                let response = try await queue.perform(Send(api: path), service: service)
                items.append("\(response.statusCode) \(response.body.base64EncodedString())")
                items.append("\(response.history.map(\.statusCode))")
            }
            for body in ["ada", "bob"] {
                let body = RequestBody.text(#"{"name":"\#(body)","password":"x"}"#, contentType: "application/json")
                let response = try await queue.perform(Send(api: "echo", method: .post, body: body), service: service)
                items.append(try response.text())
            }
            return items
        }
        server.route("POST", "/echo") { .text("\(($0.json() as? [String: String])?["name"] ?? "")") }
        let live = try await items(service)
        try await recorder.finish()

        let transport = try InMemoryTransport(har: file)
        let host = HostConfiguration(baseURL: server.baseURL, transport: transport) { $0.retry.baseDelay = 0 }
        try await expect(items(EasyNetworkService(host)), equals: live)
        expect(live.last, equals: "bob")
    }

    @Test("DIA-1: the memory of an entry that waits for the disk counts its address, fields, body and dependencies")
    func size() throws {
        let text = String(repeating: "a", count: 100_000)
        let url = try #require(URL(string: "http://example.com/\(text)"))
        let message = TransportRequest(url: url, headers: ["A": text], body: .data(Data(text.utf8)))
        let response = NetworkResponse(statusCode: 200, headers: ["B": text, "C": text], body: Data(text.utf8))
        let job = NetworkOperation()
        for _ in 0..<2_000 { job.addDependency(NetworkOperation()) }
        let event = NetworkEvent(.started, operation: job, operationID: 1)
        let entry = HAREntry(message, .success(response), at: Date(), callNumber: 1, job: HAREntry.Job(event))
        expect((700_000..<900_000).contains(entry.size), "\(entry.size)")
    }

    @Test("DIA-1: a file that cannot be made or written is an error; more than memory may hold is dropped and counted")
    func limits() async throws {
        let folder = folder.url
        #expect(throws: NetworkError.self) { try TrafficRecorder(file: folder) }
        #if os(Linux)
        let full = #expect(throws: NetworkError.self) { try TrafficRecorder(file: URL(fileURLWithPath: "/dev/full")) }
        expect(full?.code, equals: .cannotWriteFile)
        #endif
        let file = try HARFile(file)
        let gate = DispatchSemaphore(value: 0)
        file.append(40_000_000) { text in
            gate.wait()
            text += "1".utf8
        }
        for _ in 1...3 { file.append(1) { $0 += "2".utf8 } }
        gate.signal()
        try await file.settled()
        file.append(1) { $0 += "3".utf8 }
        try await file.settled()
        let json = try JSONSerialization.jsonObject(with: Data(contentsOf: self.file)) as? [String: Any]
        let log = json?["log"] as? [String: Any]
        expect(log?["entries"] as? [Int] == [1, 3] && log?["_dropped"] as? Int == 3)
    }
}
