import Foundation
import Programs
import Testing

@testable import EasyNetwork
@testable import EasyNetworkTesting
@testable import TestSupport

/// Prints what the platform and its default transport do where that is not documented. No difference is a failure: the
/// lines of a first run on another platform answer the questions in the article Transports.
@Suite("FirstRun", .serialized, .timeLimit(.minutes(10)))
struct FirstRunTests {
    /// An answer, or what came of it within some seconds.
    private struct Outcome: CustomStringConvertible {
        var contents: Recording.Contents

        var description: String {
            let head = contents.head.map { "\($0.statusCode)" } ?? "no head"
            let end = contents.end.map { $0.error.map { "\($0.code)" } ?? "complete" } ?? "no end"
            return "\(head), \(contents.body.count) bytes, \(end)"
        }
    }

    private let server: MockServer
    private let transport = TransportConfiguration().makeTransport()

    init() throws {
        server = try MockServer()
    }

    private func tell(_ question: String, _ answer: Any) {
        print("FirstRun: \(question): \(answer)")
    }

    private func start(
        _ path: String,
        _ method: NetworkService.Method = .get,
        _ headers: HTTPHeaders = [:],
        body: TransportBody = .none,
        total: TimeInterval = 10
    ) throws -> RecordedExchange {
        let url = try #require(URL(string: server.baseURL.absoluteString + path))
        var request = TransportRequest(method: method, url: url, headers: headers, body: body)
        request.deadlines = TransportDeadlines(total: total)
        let recording = Recording {}
        return RecordedExchange(exchange: transport.start(request) { recording.note($0) }, recording: recording)
    }

    private func ask(_ path: String, _ method: NetworkService.Method = .get) async throws -> Outcome {
        Outcome(contents: try await start(path, method).end())
    }

    @Test("what a plain GET sends, and whether the cache policy adds a field")
    func sentFields() async throws {
        server.route("GET", "/") { _ in .text("ok") }
        _ = try await ask("/")
        for field in server.requests.first?.headers ?? [:] where !field.name.isEqualIgnoringASCIICase(to: "Host") {
            tell("a GET sends", "\(field.name): \(field.value)")
        }
    }

    @Test("how repeated fields come, and fields in ISO 8859-1")
    func fields() async throws {
        server.route("GET", "/repeated") { _ in
            var headers: HTTPHeaders = ["X-A": "1", "Set-Cookie": "a=1; Path=/"]
            headers.add("2", for: "X-A")
            headers.add("b=2", for: "Set-Cookie")
            return MockResponse(headers: headers)
        }
        let head = try await ask("/repeated").contents.head
        tell("X-A twice", head?.headers.values(for: "X-A") ?? [])
        tell("Set-Cookie twice", head?.headers.values(for: "Set-Cookie") ?? [])
        server.route("GET", "/latin1") { _ in MockResponse(headers: ["X-Name": "vélo"], fault: .latin1Headers) }
        let latin1 = try await ask("/latin1")
        tell("vélo in ISO 8859-1", latin1.contents.head?.headers["X-Name"] ?? "\(latin1)")
        server.route("GET", "/many") { _ in MockResponse(fault: .manyHeaders(10_000)) }
        tell("10,000 fields", try await ask("/many"))
    }

    @Test("what happens to a body with GET and HEAD, and to one without a type")
    func sentBodies() async throws {
        server.route("*", "/body") { _ in .text("ok") }
        let folder = TestFolder()
        defer { withExtendedLifetime(folder) {} }
        let file = folder.write("a=b", to: "body")
        for method in [NetworkService.Method.get, .head, .post, .put] {
            for body in [TransportBody.data(Data("a=b".utf8)), .file(file)] {
                let before = server.requests.count
                let outcome = Outcome(contents: try await start("/body", method, body: body).end())
                let sent = server.requests.dropFirst(before).map {
                    "\($0.body.count) bytes, \($0.headers["Content-Type"] ?? "no type")"
                }
                let form = body == .file(file) ? "a file" : "data"
                tell("\(method.rawValue) with 3 bytes of \(form)", "\(outcome), received \(sent)")
            }
        }
    }

    @Test("whether a request for an uncompressed body asks for a compressed one too")
    func identity() async throws {
        server.route("GET", "/identity") { _ in .text("ok") }
        _ = try await start("/identity", .get, ["Accept-Encoding": "identity"]).end()
        tell("Accept-Encoding: identity", server.requests.map { $0.headers.values(for: "Accept-Encoding") })
    }

    @Test("whether a connection that was silent until a deadline is used again")
    func silentConnection() async throws {
        server.route("GET", "/silent", fault: .stall)
        server.route("GET", "/next") { _ in .text("ok") }
        tell("a silent server", Outcome(contents: try await start("/silent", total: 1).end()))
        let isClosed = await server.waitForConnections(0, timeout: 2)
        tell("its connection", isClosed ? "closed" : "open after two seconds")
        tell("the next request", try await ask("/next"))
    }

    @Test("whether lengths that differ, a body that is cut and a cut coding are noticed")
    func framing() async throws {
        for lengths in ["3\r\nContent-Length: 5", "3x"] {
            let answer = Data("HTTP/1.1 200 OK\r\nContent-Length: \(lengths)\r\n\r\nabcde".utf8)
            server.route("GET", "/framing") { _ in .fault(.raw(answer)) }
            tell("Content-Length: \(lengths.debugDescription)", try await ask("/framing"))
        }
        let answer = Data("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc".utf8)
        server.route("GET", "/cut") { _ in .fault(.raw(answer)) }
        tell("3 of 5 bytes", try await ask("/cut"))
        server.route("GET", "/gzip") { _ in .gzip(Data(count: 10_000), missing: 100) }
        tell("gzip of 10,000 bytes that lacks its end", try await ask("/gzip"))
    }

    @Test("whether a message that was lost on a kept connection is sent again, by its method")
    func sendOnce() async throws {
        server.route("GET", "/ok") { _ in .text("ok") }
        server.route("*", "/lost") { _ in .fault(.close) }
        for method in [NetworkService.Method.get, .put, .post] {
            _ = try await ask("/ok")
            let before = server.requests.count
            let outcome = try await ask("/lost", method)
            let count = server.requests.count - before
            tell("\(method.rawValue) lost on a kept connection", "sent \(count) times, \(outcome)")
        }
    }

    @Test("whether a pause holds the sender back, and whether the answer begins anew afterwards")
    func backPressure() async throws {
        let count = 64_000_000
        server.route("GET", "/large") { _ in
            var response = MockResponse(headers: MockResponse.exactType, body: .repeating(7, count: count))
            response.fault = .close(at: .responseEnd)
            return response
        }
        let started = try start("/large")
        _ = await eventually(within: 5) { started.recording.contents.head != nil }
        started.exchange.pause()
        // It closes when all has been handed to the system.
        let isSent = await server.waitForClose(timeout: 1)
        tell("64 MB during a pause of a second", isSent ? "all sent" : "held back")
        tell("received during it", "\(started.recording.contents.body.count) bytes")
        started.exchange.resume()
        let contents = await started.end()
        tell("after it", "\(Outcome(contents: contents)), \(server.requests.count) requests, \(contents.faults)")
    }

    @Test("how many bytes a head waits for, by its type")
    func heldBackHead() async throws {
        for type in ["", "text/plain", "application/octet-stream", "application/json", "text/event-stream"] {
            server.route("GET", "/begins") { _ in
                let headers: HTTPHeaders = type.isEmpty ? [:] : ["Content-Type": type]
                let fault = MockResponse.Fault.stall(at: .responseBody(after: 100))
                return MockResponse(headers: headers, body: .data(Data(count: 1_000)), fault: fault)
            }
            let started = try start("/begins")
            let hasHead = await eventually(within: 1) { started.recording.contents.head != nil }
            tell("a head of type '\(type)' with 100 bytes", hasHead ? "comes at once" : "is held back")
            started.exchange.cancel()
            _ = await started.end()
        }
    }

    @Test("what the system says of itself")
    func system() async {
        tell("system", ProcessInfo.processInfo.operatingSystemVersionString)
        tell("descriptors", sysconf(Int32(_SC_OPEN_MAX)))
        tell("run of the machine", ResumeJournal.currentBoot ?? "nil")
        let network = NetworkReachability.system
        _ = await eventually(within: 2) { network.status != .unknown }
        tell("network", network.status)
    }

    @Test("whether an operation queue without limit runs all at once")
    func unlimited() async {
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = .max
        let running = Locked((now: 0, most: 0))
        let jobs = (0..<100).map { _ in
            TestJob { _ in running.withLock { $0 = ($0.now + 1, max($0.most, $0.now + 1)) } }
        }
        for job in jobs { queue.addOperation(job) }
        _ = await eventually(within: 5) { running.withLock { $0.now == jobs.count } }
        for job in jobs { job.finish() }
        for job in jobs { await job.ended() }
        tell("running at once of 100 asynchronous operations, with a limit of Int.max", running.withLock { $0.most })
    }

    #if os(Linux) || os(macOS)
    @Test("how long a chain of plain operations may be on the stack of a thread of Dispatch")
    func chains() async throws {
        // On Linux the time of an OperationQueue grows with the square.
        for (kind, count) in [("NetworkQueue", 10_000), ("OperationQueue", 1_000), ("OperationQueue", 3_000)] {
            let writer = try ChildProcess(BuiltProgram.url("Writer"), ["chain", kind, "\(count)"])
            let status = await withCheckedContinuation { continuation in
                // Not on the threads of tasks, which must not block.
                Thread { continuation.resume(returning: writer.wait()) }.start()
            }
            tell("a chain of \(count) on \(kind)", status.map { "ends with \($0)" } ?? "ends by a signal")
        }
    }
    #endif

    /// Whether something happens within a time, after which the question has its answer too.
    private func eventually(within seconds: TimeInterval, _ condition: () -> Bool) async -> Bool {
        let end = SystemClock().now + seconds
        while !condition() {
            if SystemClock().now > end { return false }
            try? await Task.sleep(nanoseconds: 5_000_000)
        }
        return true
    }
}
