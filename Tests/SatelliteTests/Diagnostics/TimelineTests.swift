import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import EasyNetworkDiagnostics
@testable import TestSupport

@Suite("Timeline", .timeLimit(.minutes(10)))
struct TimelineTests {
    private struct Get: APIRequest {
        typealias Item = NetworkResponse
        var api = "item"
        var headers: [String: String]?
    }

    /// Returns when the queue has no jobs.
    private func isEmpty(_ queue: NetworkQueue) async {
        await withCheckedContinuation { continuation in queue.whenEmpty { continuation.resume() } }
    }

    private func data(of page: String) throws -> [String: Any] {
        let start = try #require(page.range(of: #"<script type="application/json" id="data">"#)).upperBound
        let end = try #require(page[start...].range(of: "</script>")).lowerBound
        let json = try JSONSerialization.jsonObject(with: Data(page[start..<end].utf8))
        return try #require(json as? [String: Any])
    }

    private func rows(of page: String) throws -> [[String: Any]] {
        try #require(try data(of: page)["rows"] as? [[String: Any]])
    }

    @Test("DIA-1: a page shows the jobs of a queue and the calls of a host, those that were there before too")
    func recording() async throws {
        let transport = InMemoryTransport()
        transport.route("GET", "/item") { _ in .text("a") }
        transport.route("GET", "/missing") { _ in .text("b", status: 404) }
        let host = HostConfiguration(baseURL: URL(string: "http://api.example.com"), transport: transport)
        let service = EasyNetworkService(host)
        let queue = NetworkQueue()
        queue.isSuspended = true
        let first = RequestOperation(Get(), service: service)
        let second = RequestOperation(Get(api: "missing"), service: service)
        second.name = "second"
        second.addDependency(first)
        queue.addOperation(first)
        let timeline = Timeline()
        for _ in 1...2 {
            timeline.record(queue)
            timeline.record(host)
        }
        queue.addOperation(second)
        queue.isSuspended = false
        _ = try? await second.value
        await isEmpty(queue)
        _ = try await service.send(Get())
        let rows = try rows(of: await timeline.html())
        expect(rows.map { $0["name"] as? String }, equals: ["Get", "second", "GET /item"])
        expect(rows.map { $0["outcome"] as? String }, equals: ["succeeded", "failed", "succeeded"])
        expect(rows.map { ($0["attempts"] as? [Any])?.count }, equals: [1, 1, 1])
        try #require(rows.count == 3)
        expect(rows[1]["dependencies"] as? [Int], equals: [0])
        let text = await timeline.text()
        expect(text.contains("404 unaccept") && text.contains("✕  second"), "\(text)")
    }

    private final class HostJob: NetworkOperation, @unchecked Sendable {
        // Sendable because nothing changes here.
        private let gate: Gate
        override var host: String? { "api.example.com" }

        init(_ name: String, until gate: Gate) {
            self.gate = gate
            super.init()
            self.name = name
        }

        override func execute() {
            gate.whenOpen { self.finish() }
        }
    }

    @Test(
        "BEY-20: a queue tells what each job waited for: a job, a slot, a rate, a condition, and what it waits for now"
    )
    func reasons() async throws {
        let clock = ManualClock()
        let queue = NetworkQueue(clock: clock)
        queue.setMaxConcurrentOperationCount(1, forHost: "api.example.com")
        let timeline = Timeline()
        timeline.record(queue)
        let (gate, holds, never) = (Gate(), Gate(), Gate())
        let first = HostJob("first", until: gate)
        let second = HostJob("second", until: gate)
        let third = TestJob()
        third.name = "third"
        third.queuePriority = .high
        third.addDependency(first)
        let fourth = TestJob()
        fourth.name = "fourth"
        fourth.addCondition(
            OperationCondition("unlocked") { _ in
                await holds.opened()
                return true
            }
        )
        let cancelled = HostJob("cancelled", until: never)
        // The only slot of the host is its.
        queue.addOperation(first)
        queue.addOperations([second, third, fourth, cancelled], waitUntilFinished: false)
        func waits(_ page: String) throws -> [String: [String]] {
            try rows(of: page).reduce(into: [:]) { names, row in
                guard let name = row["name"] as? String else { return }
                names[name] = (row["waits"] as? [[String: Any]] ?? []).compactMap { $0["why"] as? String }
            }
        }
        await expect(eventually { queue.explain(fourth) == [.condition("unlocked")] })
        // Before anything has ended.
        let before = try waits(await timeline.html())
        expect(before["second"] == ["the only slot for its host"] && before["third"] == ["'first'"], "\(before)")
        expect(before["fourth"]?.last, equals: "the condition unlocked", "\(before)")
        clock.advance(by: 0.001)
        cancelled.cancel()
        await cancelled.ended()
        gate.open()
        holds.open()
        for job in [second, third, fourth] { await job.ended() }
        await isEmpty(queue)
        let page = await timeline.html()
        let after = try waits(page)
        expect(after["second"]?.last == "the only slot for its host" && after["third"]?.first == "first", "\(after)")
        expect(after["cancelled"], equals: ["the only slot for its host"], "\(after)")
        expect(after["fourth"]?.contains("the condition unlocked"), equals: true, "\(after)")
        try expect(rows(of: page).map { $0["priority"] as? String }, equals: [nil, nil, "high", nil, nil])
    }

    @Test("BEY-20: a job that is made from another's item has waited for that one")
    func madeFromItem() async throws {
        let transport = InMemoryTransport()
        transport.route("GET", "/item") { _ in .text("a") }
        let host = HostConfiguration(baseURL: URL(string: "http://api.example.com"), transport: transport)
        let queue = NetworkQueue()
        let timeline = Timeline()
        timeline.record(queue)
        let first = RequestOperation(Get(), service: EasyNetworkService(host))
        first.name = "first"
        let second = first.then { _ in Get() }
        queue.addOperations([first, second], waitUntilFinished: false)
        _ = try await second.value
        await isEmpty(queue)
        let waits = try rows(of: await timeline.html()).last?["waits"] as? [[String: Any]]
        expect(waits?.first?["why"] as? String, equals: "first", "\(waits ?? [])")
    }

    @Test("DIA-1: a page loads nothing, and no text from outside ends its script or its title")
    func page() async throws {
        let queue = NetworkQueue()
        let timeline = Timeline()
        timeline.record(queue)
        let job = NetworkOperation()
        job.name = "</script><script>alert(1)</script><!-- \u{2028}\u{2029} & \"quotes\" \\ 終"
        job.finish()
        queue.addOperation(job)
        await isEmpty(queue)
        let page = await timeline.html(title: "</title><b>A & B</b><\u{338}")
        expect(page.components(separatedBy: "</script>").count == 3 && !page.contains("<!-- "))
        expect(!page.contains("\u{2028}") && !page.contains("\u{2029}"))
        expect(page.contains("<title>&lt;/title&gt;&lt;b&gt;A &amp; B&lt;/b&gt;&lt;\u{338}</title>"))
        let name = try #require(try rows(of: page).first?["name"] as? String)
        expect(name.hasPrefix("</script><script>alert(1)</script><!-- ") && name.hasSuffix(" & \"quotes\" \\ 終"))
        expect(page.contains("default-src 'none'"))
        let script = try #require(
            page.components(separatedBy: "<script>").last?.components(separatedBy: "</script>").first
        )
        expect(page.contains("script-src 'sha256-\(Data(SHA256.digest(of: Data(script.utf8))).base64EncodedString())'"))
        for word in ["src=", "@import", "url(", "fetch(", "innerHTML", "https://"] { expect(!page.contains(word)) }
        expect(page.replacingOccurrences(of: "http://www.w3.org/2000/svg", with: "").contains("http://"), equals: false)
    }

    @Test("DIA-1: a page and a text of nothing")
    func nothing() async throws {
        let timeline = Timeline()
        try expect(rows(of: await timeline.html()).isEmpty)
        await expect(timeline.text().hasPrefix("0 rows in 0 ms\n"))
    }

    @Test("DIA-1: a timeline keeps neither queue, host nor jobs")
    func release() async {
        let timeline = Timeline()
        weak var queue: NetworkQueue?
        weak var host: HostConfiguration?
        weak var job: NetworkOperation?
        do {
            let (held, settings, operation) = (NetworkQueue(), HostConfiguration(baseURL: nil), NetworkOperation())
            (queue, host, job) = (held, settings, operation)
            timeline.record(held)
            timeline.record(settings)
            operation.finish()
            held.addOperation(operation)
            await isEmpty(held)
        }
        await expect(timeline.text().contains("NetworkOperation"))
        await expect(eventually { queue == nil && host == nil && job == nil })
    }

    @Test("DIA-1: secrets in names, addresses, header fields, cookies, proxies and errors are not shown")
    func secrets() async throws {
        let texts = [
            "https://ada:s3cret01@api.example.com/a", "https://s3cret02@api.example.com/", "GET /a?token=s3cret03&b=1",
            "/a?access_token=s3cret04", "/a?api_key=s3cret05#id_token=s3cret06", "Authorization: Bearer s3cret07",
            "Authorization: Basic s3cret08", "Proxy-Authorization: s3cret09", "Cookie: session=s3cret10; sid=s3cret11",
            "Set-Cookie: a=s3cret12; Path=/", "proxy http://user:s3cret13@proxy.example.com:8080 refused it",
            "password=s3cret14", "password: s3cret15", "X-Api-Key:s3cret16", "the header is 'Bearer s3cret17'",
            #"{"Authorization":"Bearer s3cret26","a":1}"#, #"Authorization: Digest a="b", response="s3cret27""#,
            #"{"password":"s3cret18"}"#, "client_secret=\"s3 s3cret19\"",
        ]
        expect(texts.joined().components(separatedBy: "s3cret").count, equals: 22)
        let transport = InMemoryTransport()
        transport.route("GET", "/item") { _ in
            let error = "no: " + texts.joined(separator: " | ")
            return .json(["error": error], status: 400, headers: ["Set-Cookie": "a=s3cret20"])
        }
        let host = HostConfiguration(
            baseURL: URL(string: "http://api.example.com"),
            headers: ["Authorization": "Bearer s3cret21", "X-Plain": "s3cret22"],
            transport: transport
        )
        let timeline = Timeline()
        let queue = NetworkQueue()
        timeline.record(queue)
        timeline.record(host)
        let service = EasyNetworkService(host)
        for text in texts {
            let request = Get(api: "item?token=s3cret23", headers: ["Cookie": "c=s3cret24"])
            let job = RequestOperation(request, service: service)
            job.name = text
            job.tags = [text]
            let other = NetworkOperation()
            other.finish(NetworkError(code: .refused, message: text))
            let last = NetworkOperation()
            last.addDependency(other)
            queue.addOperations([job, other, last], waitUntilFinished: false)
        }
        await isEmpty(queue)
        _ = try? await service.send(Get(api: "item?token=s3cret25"))
        let title = texts.joined(separator: " ")
        for text in [await timeline.html(title: title), await timeline.text(width: 2_000)] {
            expect(text.contains("REDACTED") && text.contains("400"))
            let found = text.components(separatedBy: "s3cret").dropFirst().map { $0.prefix(2) }
            expect(found.isEmpty, "shown: \(found)")
        }
    }

    // MARK: - Text

    private func picture(_ names: [String]) -> TimelinePicture {
        var record = TimelineRecord()
        let origin = Date(timeIntervalSinceReferenceDate: 0)
        for (index, name) in names.enumerated() {
            let job = NetworkOperation()
            job.name = name
            let (start, end) = (index * 10, index * 10 + 10)
            let events: [(NetworkEvent.Kind, Int)] = [
                (.added(waitingFor: []), 0), (.started, start), (.finished(nil), end),
            ]
            for (kind, time) in events {
                let date = origin.addingTimeInterval(Double(time) / 1_000)
                record.note(NetworkEvent(kind, at: date, operation: job), fromQueue: true)
            }
        }
        return TimelinePicture(record, at: origin)
    }

    @Test("DIA-1: the lines of a text have aligned columns")
    func lines() {
        let lines = picture(["one", "three"]).lines(width: 44)
        expect(
            Array(lines.prefix(4)),
            equals: [
                "2 rows in 20 ms",
                "   name  0 ms       10 ms 20 ms  time result",
                "✓  one   ▒▒▒▒▒▒▒▒▒▒▒            10 ms done",
                "✓* three ░░░░░░░░░░░▒▒▒▒▒▒▒▒▒▒▒ 20 ms done",
            ],
            "\(lines.joined(separator: "\n"))"
        )
    }

    @Test("BEY-20: a wide text says what each row waited for, and its priority")
    func linesWithReasons() {
        var record = TimelineRecord()
        let origin = Date(timeIntervalSinceReferenceDate: 0)
        let job = NetworkOperation()
        job.name = "profile"
        let note = WaitNote(since: 0, seconds: 0.01, reason: .limit(3), before: nil)
        let events: [(NetworkEvent.Kind, Double)] = [
            (.added(waitingFor: []), 0), (.started, 0.01), (.finished(nil), 0.02),
        ]
        for (kind, time) in events {
            let date = origin.addingTimeInterval(time)
            var event = NetworkEvent(kind, at: date, operation: job)
            (event.priority, event.wait) = (.high, note)
            record.note(event, fromQueue: true)
        }
        let picture = TimelinePicture(record, at: origin)
        expect(picture.lines(width: 120)[1].hasSuffix(" time result waited for"))
        expect(picture.lines(width: 120)[2].hasPrefix("✓* profile, high ░"))
        expect(picture.lines(width: 120)[2].hasSuffix("▒ 20 ms done   a slot of 3"), "\(picture.lines(width: 120))")
        expect(!picture.lines(width: 100)[1].contains("waited for"))
    }

    @Test(
        "DIA-1: no line is wider than asked for, and wide characters are cut whole",
        arguments: [0, 40, 61, 80, 100, 233]
    )
    func width(_ width: Int) {
        let families = "📦👩‍👩‍👧‍👦🇩🇪 flags and families 📦📦📦📦📦📦📦📦📦📦"
        let long = String(repeating: "long ", count: 60)
        let names = ["名前がとても長いジョブの名前がとても長いジョブ", families, "e\u{301}te\u{301}", "", long]
        let lines = picture(names).lines(width: width)
        expect(lines.allSatisfy { TimelinePicture.columns($0) <= max(40, width) }, "\(lines.joined(separator: "\n"))")
        let ends = Set(lines.dropFirst(2).prefix(5).map { TimelinePicture.columns($0) })
        expect(ends.count, equals: 1)
    }

    @Test("DIA-1: columns of characters in a terminal")
    func columns() {
        let texts = ["a", "名", "📦", "👩‍👩‍👧‍👦", "🇩🇪", "e\u{301}", "❤️", "ｱ"]
        expect(texts.map { TimelinePicture.columns($0) }, equals: [1, 2, 2, 2, 2, 1, 2, 1])
        expect(TimelinePicture.fitted("名前", 3) == "名…" && TimelinePicture.fitted("名前", 4) == "名前")
        expect(TimelinePicture.fitted("名前", 2) == "… " && TimelinePicture.fitted("a", 3, isRight: true) == "  a")
    }
}
