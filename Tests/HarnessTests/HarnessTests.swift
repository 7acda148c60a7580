import EasyNetwork
import EasyNetworkTesting
import Foundation
import Testing

@testable import Harness

@Suite("Harness", .timeLimit(.minutes(10)))
struct HarnessTests {
    /// Collects the output.
    private final class Paper: @unchecked Sendable {
        // Sendable because the lock guards `content`.
        private let lock = NSLock()
        private var content = ""

        var text: String { lock.withLock { content } }

        func console(isTerminal: Bool = false) -> Console {
            Console(isTerminal: isTerminal) { text in self.lock.withLock { self.content += text } }
        }
    }

    private let server: MockServer
    private let folder: URL
    private let output = Paper()
    private let errors = Paper()

    init() throws {
        server = try DemoServer.start()
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("Harness-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    private func clean() {
        server.stop()
        try? FileManager.default.removeItem(at: folder)
    }

    /// - Returns: the exit status.
    private func run(_ words: [String], cancelsWhen condition: (@Sendable () async -> Void)? = nil) async -> Int32 {
        await Harness.run(
            words + ["--base", server.baseURL.absoluteString],
            output: output.console(),
            errors: errors.console(),
            onStart: { cancel in
                if let condition {
                    Task {
                        await condition()
                        cancel()
                    }
                }
                return nil
            }
        )
    }

    private func file(_ name: String, _ text: String = "") throws -> String {
        let file = folder.appendingPathComponent(name)
        if !text.isEmpty { try Data(text.utf8).write(to: file) }
        return file.path
    }

    private struct Result: Decodable {
        var name: String
        var id: String
        var outcome: String
        var status: Int?
        var seconds: Double
        var attempts: Int
        var error: String?
    }

    private func results() throws -> [Result] {
        try JSONDecoder().decode([Result].self, from: Data(output.text.utf8))
    }

    @Test("BEY-24: with --conditions the demo server is behind that network, also for an outbox")
    func conditions() async throws {
        defer { clean() }
        func run(_ words: [String]) async -> Int32 {
            await Harness.run(words, output: output.console(), errors: errors.console())
        }
        #expect(await run(["run", "user", "id=1", "--conditions", "3g", "--json"]) == 0)
        // A slow machine only takes longer: 0.1 seconds each way, and a margin for rounding.
        #expect(try results().map { $0.seconds >= 0.19 } == [true])
        #expect(await run(["outbox", "add", folder.path]) == 0)
        let begin = SystemClock().now
        #expect(await run(["outbox", "drain", folder.path, "--conditions", "3g"]) == 0)
        #expect(SystemClock().now - begin >= 0.19)
    }

    // MARK: - APIs

    @Test("TOL-1: the list has each API once, with its arguments and their types")
    func list() async {
        defer { clean() }
        #expect(await run(["list"]) == 0)
        let lines = output.text.split(separator: "\n")
        #expect(lines.count == Registry.bench.apis.count)
        #expect(lines.count == Set(Registry.bench.apis.map(\.name)).count)
        #expect(lines.contains { $0.hasPrefix("user id=<whole number> ") && $0.hasSuffix(" one user by id") })
        #expect(lines.contains { $0.hasPrefix("articles [page=<whole number>] ") })
        #expect(server.requests.isEmpty)
    }

    @Test("IMG-1: pictures that many ask for at once are sent once each")
    func resources() async throws {
        defer { clean() }
        #expect(await run(["run", "resources", "count=3", "askers=4", "--json"]) == 0)
        #expect(Set(server.requests.map(\.path)) == ["/pictures/0", "/pictures/1", "/pictures/2"])
        #expect(server.requests.count == 3)
    }

    @Test("TOL-1: an API runs by its name, with its arguments in their place, and the result is JSON")
    func runOne() async throws {
        defer { clean() }
        #expect(await run(["run", "user", "id=2", "--json"]) == 0)
        let result = try #require(try results().first)
        #expect(result.name == "user" && result.id == "user" && result.outcome == "succeeded" && result.status == 200)
        #expect(result.attempts == 1 && result.seconds > 0 && result.error == nil)
        #expect(server.requests.map(\.target) == ["/users/2"])
        #expect(errors.text.hasPrefix("succeeded  user  200  "))
    }

    @Test("TOL-1: each API of the demo succeeds, and a retry counts as an attempt")
    func demo() async throws {
        defer { clean() }
        let words: [String: [String]] = [
            "user": ["id=1"], "sign-in": ["name=ada"], "slow": ["seconds=0"], "contact": ["name=ada", "urgent=true"],
            "report": ["to=\(try file("report"))", "size=1000"], "upload": ["from=\(try file("film"))"],
        ]
        try Data(repeating: 7, count: 1_000).write(to: folder.appendingPathComponent("film"))
        for api in Registry.bench.apis.map(\.name) where api != "me" {
            #expect(await run(["run", api] + (words[api] ?? [])) == 0, "\(api): \(output.text)")
        }
        #expect(output.text.contains("succeeded  flaky  204  ") && output.text.contains("  2 attempts\n"))
        let forms = server.requests(to: "/contact").map { String(decoding: $0.body, as: UTF8.self) }
        #expect(forms == ["name=ada&urgent=true"])
        #expect(try Data(contentsOf: folder.appendingPathComponent("report")).count == 1_000)
    }

    @Test(
        "TOL-1: a missing, unknown or ill-typed argument is one line that names it, and nothing is sent",
        arguments: [
            ("user", "user: the argument id=<whole number> is missing"),
            ("user id=", "user: id=: needs <whole number>"),
            ("user id=1.5", "user: id=1.5: needs <whole number>"),
            ("user id=1 idd=2", "user: has no argument idd; it takes id"),
            ("me a=b", "me: has no argument a; it takes no arguments"),
            ("slow seconds=nan", "slow: seconds=nan: needs <number>"),
            ("contact name=a urgent=1", "contact: urgent=1: needs <true or false>"),
            ("usr id=1", "there is no API \"usr\"; there are user, sign-in"),
        ]
    )
    func badArguments(line: String, message: String) async {
        defer { clean() }
        #expect(await run(["run"] + line.split(separator: " ").map(String.init)) == 2)
        #expect(errors.text.hasPrefix("Harness: \(message)"))
        #expect(errors.text.filter { $0 == "\n" }.count == 1 && output.text.isEmpty && server.requests.isEmpty)
    }

    // MARK: - Outbox

    @Test("BEY-13: what a command adds, later ones list, deliver in the order of each lane, retry and remove")
    func outbox() async throws {
        defer { clean() }
        let directory = try file("mail")
        #expect(await run(["outbox", "add", directory, "count=5", "lanes=2", "refused=1"]) == 0)
        let ids = output.text.split(separator: "\n").map { String($0.dropFirst("added  ".count)) }
        #expect(ids.count == 5 && server.requests.isEmpty)
        #expect(await run(["outbox", "drain", directory, "seconds=0"]) == 1)
        #expect(ids.allSatisfy { output.text.contains("\n\($0)  lane ") } && server.requests.isEmpty)

        #expect(await run(["outbox", "drain", directory]) == 1)
        #expect(ids.prefix(4).allSatisfy { output.text.contains("delivered  \($0)\n") })
        #expect(output.text.contains("failed  \(ids[3])  The server responded with 503"))
        #expect(output.text.contains("died  \(ids[4])  The server responded with 422"))
        #expect(output.text.hasSuffix("\n0 entries are left, 1 dead letters\n"))
        let keys = server.requests(to: "/messages").compactMap { $0.headers["Idempotency-Key"] }
        #expect(keys.filter { [ids[0], ids[2], ids[4]].contains($0) } == [ids[0], ids[2], ids[4]])
        #expect(keys.filter { [ids[1], ids[3]].contains($0) } == [ids[1], ids[3], ids[3]])

        #expect(await run(["outbox", "retry", directory, "id=\(ids[4])"]) == 0)
        #expect(await run(["outbox", "drain", directory]) == 1)
        #expect(server.requests(to: "/messages").count == 7)
        #expect(await run(["outbox", "remove", directory, "id=\(ids[4])"]) == 0)
        #expect(await run(["outbox", "drain", directory]) == 0)
        #expect(output.text.hasSuffix("\n0 entries are left, 0 dead letters\n"))
    }

    @Test("BEY-19: one of a name is added once, and what has a delay or another period waits")
    func deferredOutbox() async throws {
        defer { clean() }
        let directory = try file("mail")
        for _ in 1...2 { #expect(await run(["outbox", "add", directory, "only=sync", "every=3600"]) == 0) }
        #expect(await run(["outbox", "add", directory, "delay=1000", "tag=later"]) == 0)
        let ids = output.text.split(separator: "\n").map { String($0.dropFirst("added  ".count)) }
        #expect(ids.count == 3 && ids[0] == ids[1] && ids[1] != ids[2])
        #expect(await run(["outbox", "drain", directory]) == 1)
        #expect(server.requests(to: "/messages").map { $0.headers["Idempotency-Key"] } == [ids[0]])
        #expect(
            output.text.contains("\n\(ids[2])  lane 1  message 1  #later  in ")
                && !output.text.contains("\n\(ids[0])  ")
        )
        #expect(output.text.hasSuffix("\n2 entries are left, 0 dead letters\n"))
        #expect(await run(["outbox", "add", directory, "only=sync", "as=last"]) == 2)
        #expect(errors.text.contains("as=last: must be keep, replace or append"))
    }

    @Test("BEY-13: a cancel stops a drain with status 1, and the entry stays")
    func cancelOutbox() async throws {
        defer { clean() }
        server.route("POST", "/messages") { _ in .fault(.stall) }
        let (directory, server) = (try file("mail"), server)
        #expect(await run(["outbox", "add", directory]) == 0)
        #expect(await run(["outbox", "drain", directory]) { await server.waitForRequests(1) } == 1)
        #expect(output.text.hasSuffix("\n1 entries are left, 0 dead letters\n"))
    }

    @Test(
        "BEY-13: a mistake in a command on an outbox is one line, and no directory is made",
        arguments: [
            ("drain DIR", "DIR: does not exist"), ("add DIR count=x", "count=x: needs <whole number>"),
            ("add DIR x=1", "outbox add: has no argument x; it takes count"), ("add DIR --json", "outbox has neither"),
        ]
    )
    func badOutbox(line: String, message: String) async throws {
        defer { clean() }
        let directory = try file("mail")
        let words = line.split(separator: " ").map { $0 == "DIR" ? directory : String($0) }
        #expect(await run(["outbox"] + words) == 2)
        let wanted = "Harness: " + message.replacingOccurrences(of: "DIR", with: directory)
        #expect(errors.text.hasPrefix(wanted) && errors.text.filter { $0 == "\n" }.count == 1, "\(errors.text)")
        #expect(!FileManager.default.fileExists(atPath: directory) && server.requests.isEmpty)
    }

    // MARK: - Plans

    @Test("TOL-1: a plan keeps its order, its batches and what a job told the others by cookies")
    func plan() async throws {
        defer { clean() }
        let plan = """
            {"jobs": [
                {"id": "last", "api": "articles", "with": {"page": 3}, "after": ["users", "me"]},
                {"id": "me", "api": "me", "after": ["login"], "priority": "high", "tags": ["x"]},
                {"id": "login", "api": "sign-in", "with": {"name": "grace"}},
                {"id": "u1", "api": "user", "with": {"id": 1}, "after": ["u2"]},
                {"id": "u2", "api": "user", "with": {"id": "2"}, "after": ["me"]}
            ], "batches": [{"id": "users", "jobs": ["u1", "u2"], "limit": 1}]}
            """
        #expect(await run(["plan", try file("plan.json", plan), "--json"]) == 0)
        #expect(try results().map(\.id) == ["last", "me", "login", "u1", "u2"])
        #expect(
            server.requests.map(\.target) == ["/sign-in", "/me", "/users/2", "/users/1", "/articles?page=3"]
        )
    }

    @Test("TOL-1, OPQ-10: a job of a plan ends at its deadline, also while it waits for another one")
    func deadlines() async throws {
        defer { clean() }
        server.route("GET", "/slow") { _ in .fault(.stall) }
        let plan = """
            {"jobs": [
                {"id": "slow", "api": "slow", "deadline": 0.1},
                {"id": "next", "api": "me", "after": ["slow"], "deadline": 0.05}
            ]}
            """
        #expect(await run(["plan", try file("plan.json", plan), "--json"]) == 1)
        let errors = try results().compactMap(\.error)
        #expect(errors.count == 2 && errors.allSatisfy { $0.contains("deadline") }, "\(errors)")
    }

    @Test(
        "TOL-1: limits of all jobs, of a host, of a tag and of a batch are kept, and -j replaces the plan's",
        arguments: [
            (#""limit": 2"#, "", [], 2), (#""hostLimit": 3"#, "", [], 3), (#""tagLimits": {"t": 1}"#, "", [], 1),
            (#""limit": 8"#, #", "batches": [{"id": "b", "jobs": ["0", "1", "2", "3", "4"], "limit": 2}]"#, [], 2),
            (#""limit": 1"#, "", ["-j4"], 4),
        ]
    )
    func limits(limit: String, batches: String, words: [String], count: Int) async throws {
        defer { clean() }
        server.route("GET", "/slow") { _ in .fault(.stall) }
        let jobs = (0..<5).map { #"{"id": "\#($0)", "api": "slow", "tags": ["t"]}"# }.joined(separator: ",")
        let plan = try file("plan.json", "{\(limit), \"jobs\": [\(jobs)]\(batches)}")
        let server = server
        let status = await run(["plan", plan] + words) {
            await server.waitForRequests(count)
            // One job too many would be sent with the others, and so before this one.
            _ = try? await EasyNetworkService(HostConfiguration(baseURL: server.baseURL)).send(GetUser(id: 1))
            #expect(server.requests(to: "/slow").count == count)
        }
        #expect(status == 1)
    }

    @Test("TOL-1: the exit status is 1 when a job failed, and the jobs that waited for it were not sent")
    func failure() async throws {
        defer { clean() }
        let plan = """
            {"jobs": [{"id": "a", "api": "user", "with": {"id": 9}}, {"id": "b", "api": "user", "with": {"id": 1},
            "after": ["a"]}, {"id": "c", "api": "user", "with": {"id": 2}}]}
            """
        #expect(await run(["plan", try file("plan.json", plan), "--json"]) == 1)
        let results = try results()
        #expect(results.map(\.outcome) == ["failed", "dependencyFailed", "succeeded"])
        #expect(results.map(\.status) == [404, nil, 200] && results.map(\.attempts) == [1, 0, 1])
        #expect(results[0].error?.contains("there is no user 9") == true)
        #expect(Set(server.requests.map(\.target)) == ["/users/9", "/users/2"])
    }

    @Test(
        "TOL-1: of a bad plan nothing runs, and the message names the place",
        arguments: [
            ("{", "the plan is not valid JSON: "), ("[]", "Expected"),
            (#"{"jobs": [{"api": "me"}]}"#, "jobs[0].id: is missing"),
            (#"{"jobs": [{"id": 1, "api": "me"}]}"#, "jobs[0].id: "),
            (#"{"jobs": [], "limit": "2"}"#, "limit: "), (#"{"jobs": [], "limit": 0}"#, "limit: 0 must be at least 1"),
            (#"{"jobs": [], "tagLimits": {"x": 0}}"#, "tagLimits.x: 0"),
            (#"{"jobs": [], "job": 1}"#, "job: is unknown"),
            (#"{"jobs": [{"id": "a", "api": "me", "afer": []}]}"#, "jobs[0].afer: is unknown"),
            (#"{"jobs": [{"id": "a", "api": "me", "with": {"x": []}}]}"#, "jobs[0].with.x: must be a string"),
            (#"{"jobs": [{"id": "a", "api": "me", "with": {"x": 1}}]}"#, "jobs[0]: me: has no argument x"),
            (#"{"jobs": [{"id": "b", "api": "flaky"}, {"id": "a", "api": "mi"}]}"#, "jobs[1]: there is no API \"mi\""),
            (#"{"jobs": [{"id": "a", "api": "me", "priority": "top"}]}"#, "jobs[0].priority: there is no priority"),
            (#"{"jobs": [{"id": "a", "api": "me", "deadline": 0}]}"#, "jobs[0].deadline: 0.0 must be a number above 0"),
            (#"{"jobs": [{"id": "a", "api": "me", "after": ["b"]}]}"#, "jobs[0].after[0]: there is no job or"),
            (#"{"jobs": [{"id": "a", "api": "me"}, {"id": "a", "api": "me"}]}"#, "jobs[1].id: \"a\" is the id of"),
            (#"{"jobs": [{"id": "a", "api": "me", "after": ["a"]}]}"#, "jobs[0]: waits for itself: a → a"),
            (
                #"""
                {"jobs": [{"id": "z", "api": "me", "after": ["b"]}, {"id": "b", "api": "me", "after": ["c"]},
                {"id": "c", "api": "me", "after": ["b"]}]}
                """#, "jobs[1]: waits for itself: b → c → b"
            ),
            (
                #"""
                {"jobs": [{"id": "a", "api": "me", "after": ["z"]}], "batches": [{"id": "z", "jobs": ["a"]}]}
                """#, "jobs[0]: waits for itself: a → z → a"
            ),
            (#"{"jobs": [], "batches": [{"id": "z", "jobs": ["a"]}]}"#, "batches[0].jobs[0]: there is no job \"a\""),
            (
                #"{"jobs": [{"id": "a", "api": "me"}], "batches": [{"id": "z", "jobs": ["a", "a"]}]}"#,
                "batches[0].jobs[1]: \"a\" is already in a batch"
            ),
            (#"{"jobs": [], "batches": [{"id": "z", "jobs": [], "policy": "x"}]}"#, "batches[0].policy: "),
        ]
    )
    func badPlan(plan: String, message: String) async throws {
        defer { clean() }
        #expect(await run(["plan", try file("plan.json", plan)]) == 2)
        #expect(errors.text.hasPrefix("Harness: \(message)"), "\(errors.text)")
        #expect(server.requests.isEmpty && output.text.isEmpty)
    }

    @Test("TOL-1: a job is repeated under different ids")
    func repeats() async throws {
        defer { clean() }
        #expect(await run(["run", "user", "id=1", "--repeat=3", "--json"]) == 0)
        #expect(try results().map(\.id) == ["user#1", "user#2", "user#3"] && server.requests.count == 3)
    }

    @Test("TOL-1: a cancel ends all jobs with status 1, and the recordings are written")
    func cancel() async throws {
        defer { clean() }
        let (timeline, har) = (try file("timeline.html"), try file("traffic.har"))
        let server = server
        let words = ["run", "slow", "seconds=600", "--repeat=3", "-j2", "--json", "--timeline", timeline, "--har", har]
        #expect(await run(words) { await server.waitForRequests(2) } == 1)
        #expect(try results().map(\.outcome) == ["cancelled", "cancelled", "cancelled"])
        #expect(try String(contentsOfFile: timeline, encoding: .utf8).contains("slow#3"))
        let json = try JSONSerialization.jsonObject(with: Data(contentsOf: URL(fileURLWithPath: har)))
        let entries = ((json as? [String: Any])?["log"] as? [String: Any])?["entries"] as? [[String: Any]]
        let errors = entries?.map { ($0["response"] as? [String: Any])?["_error"] as? String }
        #expect(errors == ["cancelled", "cancelled"])
    }

    @Test(
        "TOL-1: a file that cannot be written is told before anything runs",
        arguments: ["--timeline", "--trace", "--har"]
    )
    func badFile(option: String) async throws {
        defer { clean() }
        let path = try file("none/x")
        #expect(await run(["run", "user", "id=1", option, path]) == 2)
        #expect(errors.text.contains(path) && server.requests.isEmpty)
    }

    @Test("TOL-1: the log has the events of the jobs on standard error")
    func log() async {
        defer { clean() }
        #expect(await run(["run", "user", "id=1", "--log"]) == 0)
        #expect(errors.text.contains("'user' #") && errors.text.contains("/users/1"))
        #expect(output.text.hasPrefix("succeeded  user"))
    }

    @Test("TOL-1: on a terminal the numbers are redrawn in one line, which the result of a job replaces")
    func terminal() async {
        defer { clean() }
        let operation = NetworkOperation()
        let progress = Progress([("job", "user", operation)], output.console(isTerminal: true))
        await progress.draw()
        #expect(output.text.hasPrefix("\r\u{1B}[Krunning 0  waiting 1  done 0  0."))
        #expect(await progress.finish().results.count == 1)
        #expect(output.text.contains("s\r\u{1B}[K1 of 1 jobs") && output.text.hasSuffix("\n"))
    }
}
