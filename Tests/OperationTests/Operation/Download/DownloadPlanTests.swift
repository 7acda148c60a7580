import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("DownloadPlan")
struct DownloadPlanTests {
    private func head(_ status: Int, _ fields: HTTPHeaders) -> TransportHead {
        TransportHead(statusCode: status, headers: fields)
    }

    private func journal(_ counts: [Int64], of total: Int64?, boot: String? = "b", safe: Int64 = 0) -> ResumeJournal {
        let length = (total ?? 0) / Int64(counts.count)
        let segments = counts.enumerated().map { index, count in
            ResumeJournal.Segment(
                lower: Int64(index) * length,
                upper: total == nil ? nil : Int64(index + 1) * length,
                count: count,
                safeCount: min(count, safe)
            )
        }
        return ResumeJournal(
            resource: "r",
            validator: .entityTag("\"a\""),
            total: total,
            segments: segments,
            boot: boot
        )
    }

    private func plan(_ journal: ResumeJournal? = nil, limit: Int = 1) -> DownloadPlan {
        DownloadPlan(journal, resource: "r", boot: "b", segmentLimit: limit)
    }

    @Test("TRF-3: a journal is written in place where no file can be created, as in a locked device's directory")
    func lockedDirectory() throws {
        let folder = TestFolder()
        let path = folder.file("a.journal").path
        journal([10, 25], of: 50).write(to: path)
        // No file can be created at its path.
        try FileManager.default.createDirectory(atPath: path + ".new", withIntermediateDirectories: false)
        let next = journal([5], of: 50)
        next.write(to: path)
        expect(ResumeJournal(at: path), equals: next)
        // A link is not followed.
        try FileManager.default.removeItem(atPath: path)
        let other = folder.write("other", to: "other")
        try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: other.path)
        next.write(to: path)
        expect(folder.data("other"), equals: Data("other".utf8))
    }

    @Test("TRF-3: missing bytes are asked for once, present bytes never")
    func questions() {
        let plan = plan(journal([10, 25, 0, 25], of: 100))
        expect(plan.missing, equals: [0, 2])
        expect(plan.question(for: 0)?.range, equals: "bytes=10-24")
        expect(plan.question(for: 2)?.range, equals: "bytes=50-74")
        let last = self.plan(journal([25, 3], of: 50))
        expect(last.missing, equals: [1])
        expect(last.question(for: 1)?.range, equals: "bytes=28-")
    }

    @Test("TRF-3: bytes go behind those that are there, and not beyond their segment")
    func bytes() {
        var plan = plan(journal([10, 0], of: 100))
        let first = plan.place(30, of: 0, upTo: nil)
        expect(first.offset == 10 && first.count == 30 && !first.isEnough)
        plan.wrote(30, of: 0)
        let second = plan.place(30, of: 0, upTo: nil)
        expect(second.offset == 40 && second.count == 10 && second.isEnough)
        let short = plan.place(30, of: 0, upTo: 45)
        expect(short.count == 5 && short.isEnough)
        plan.wrote(10, of: 0)
        let third = plan.place(5, of: 0, upTo: nil)
        expect(third.count == 0 && third.isEnough)
    }

    @Test("TRF-8: it can be resumed with a validator, and ranges that the server has promised or sent")
    func canResume() {
        let ranges: HTTPHeaders = ["Content-Length": "100", "ETag": "\"a\"", "Accept-Ranges": "bytes"]
        func canResume(after headers: HTTPHeaders, mayContinue: Bool = true) -> Bool {
            var plan = plan()
            _ = plan.answer(head(200, headers), to: nil, of: 0, isAccepted: true, mayContinue: mayContinue)
            return plan.canResume
        }
        var (without, weak, none, coded) = (ranges, ranges, ranges, ranges)
        without["Accept-Ranges"] = nil
        weak["ETag"] = "W/\"a\""
        none["Accept-Ranges"] = "none"
        coded["Content-Encoding"] = "gzip"
        expect(canResume(after: ranges))
        expect([without, weak, none, coded].map { canResume(after: $0) }, equals: [false, false, false, false])
        expect(!canResume(after: ranges, mayContinue: false))
        // A part of an earlier operation, whose rest the server sends or not.
        var resumed = plan(journal([10], of: 100))
        expect(!resumed.canResume)
        let range: HTTPHeaders = ["Content-Range": "bytes 10-99/100", "ETag": "\"a\""]
        expect(resumed.answer(head(206, range), to: resumed.question(for: 0), of: 0, isAccepted: true) != .startOver)
        expect(resumed.canResume)
        var changed = ranges
        changed["ETag"] = "\"b\""
        expect(
            resumed.answer(head(200, changed), to: resumed.question(for: 0), of: 0, isAccepted: true),
            equals: .whole
        )
        expect(!resumed.canResume, "the next tag may be another one again")
        var split = plan(journal([10, 10], of: 100))
        _ = split.answer(head(206, range), to: split.question(for: 0), of: 0, isAccepted: true)
        expect(split.answer(head(200, ranges), to: split.question(for: 1), of: 1, isAccepted: true), equals: .startOver)
        expect(!split.canResume)
    }

    @Test("TRF-3: an answer that ends too early says where")
    func early() {
        var plan = plan()
        expect(plan.answer(head(200, ["Content-Length": "100"]), to: nil, of: 0, isAccepted: true), equals: .whole)
        plan.wrote(99, of: 0)
        let error = #expect(throws: NetworkError.self) { try plan.end(of: 0) }
        expect(error?.message?.contains("99 of 100"), equals: true)
        plan.wrote(1, of: 0)
        #expect(throws: Never.self) { try plan.end(of: 0) }
    }

    private static let rangeEnds: [(String?, Int64, DownloadPlan.Answer)] = [
        ("bytes */100", 100, .complete), ("bytes */101", 100, .startOver), (nil, 100, .startOver),
        ("bytes */100", 60, .startOver), ("bytes */9999999999999999999999", 100, .startOver),
    ]

    @Test(
        "TRF-3: a 416 means that all is there only when the file ends there (RFC 9110, section 15.5.17)",
        arguments: rangeEnds
    )
    func unsatisfied(field: String?, count: Int64, answer: DownloadPlan.Answer) throws {
        var plan = plan(journal([count], of: 100))
        let asked = plan.question(for: 0)
        let question = try #require(asked)
        var fields = HTTPHeaders()
        fields["Content-Range"] = field
        expect(plan.answer(head(416, fields), to: question, of: 0, isAccepted: false), equals: answer)
        if answer == .startOver { expect(plan.journal == nil && plan.question(for: 0) == nil) }
    }

    private static let date = "Sat, 21 Nov 2026 08:00:00 GMT"
    /// The validator, the fields of the response, and whether it is of the same state.
    private static let states: [(RangeValidator, HTTPHeaders, Bool)] = [
        (.date(date), [:], true), (.date(date), ["Last-Modified": date], true),
        (.date(date), ["ETag": "\"a\""], false), (.date(date), ["ETag": "W/\"a\""], false),
        (.date(date), ["Last-Modified": "Sat, 21 Nov 2026 08:00:01 GMT"], false),
        (.date(date), ["Last-Modified": date, "ETag": "\"a\""], true),
        (.entityTag("\"a\""), ["ETag": "\"a\""], true), (.entityTag("\"a\""), ["Last-Modified": date], false),
        (.entityTag("\"a\""), ["ETag": "\"b\"", "Last-Modified": date], false),
    ]

    @Test("TRF-3: a validator of another kind means another state of the file", arguments: states.indices)
    func otherKind(index: Int) {
        let (validator, fields, isSame) = Self.states[index]
        for status in [206, 416] {
            var journal = journal([status == 206 ? 40 : 100], of: 100)
            journal.validator = validator
            var plan = plan(journal)
            let range: HTTPHeaders = ["Content-Range": status == 206 ? "bytes 40-99/100" : "bytes */100"]
            let asked = plan.question(for: 0)
            let answer = plan.answer(
                head(status, range.merging(fields)),
                to: asked,
                of: 0,
                isAccepted: status == 206
            )
            let expected: DownloadPlan.Answer = status == 206 ? .range(upTo: 100) : .complete
            expect(answer, equals: isSame ? expected : .startOver)
        }
    }

    @Test("TRF-3: a range tells the length that was not known before")
    func learned() throws {
        var plan = plan(journal([40], of: nil))
        let asked = plan.question(for: 0)
        let question = try #require(asked)
        expect(question.range, equals: "bytes=40-")
        // Some proxies send fields twice.
        let fields: HTTPHeaders = ["Content-Range": "bytes 40-99/100", "ETag": "\"a\"", "Content-Length": "60"]
        let part = head(206, HTTPHeaders(Array(fields) + Array(fields)))
        expect(plan.answer(part, to: question, of: 0, isAccepted: true), equals: .range(upTo: 100))
        expect(plan.total, equals: 100)
        plan.wrote(59, of: 0)
        #expect(throws: NetworkError.self) { try plan.end(of: 0) }
    }

    @Test("TRF-3: a range is a file only if the user asked for it")
    func uninvited() {
        var plan = plan()
        let part = head(206, ["Content-Range": "bytes 0-9/100"])
        guard case .fail = plan.answer(part, to: nil, of: 0, isAccepted: true) else { return expect(Bool(false)) }
        expect(plan.answer(part, to: nil, of: 0, isAccepted: true, mayContinue: false), equals: .whole)
        expect(plan.journal == nil)
    }

    @Test("TRF-3: a compressed answer cannot be resumed, and its length is not that of the file")
    func coded() {
        var plan = plan(limit: 4)
        let answer = head(
            200,
            ["Content-Length": "9000000", "ETag": "\"a\"", "Accept-Ranges": "bytes", "Content-Encoding": "gzip"]
        )
        expect(plan.answer(answer, to: nil, of: 0, isAccepted: true), equals: .whole)
        expect(plan.total == nil && plan.journal == nil && plan.segments.count == 1)
    }

    @Test("TRF-2: segments cover the file, each byte once, and none is short", arguments: UInt64(1)...4)
    func segments(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<200 {
            let total = Int64.random(in: 0..<50_000_000, using: &generator)
            let limit = Int.random(in: -1...40, using: &generator)
            var plan = plan(limit: limit)
            let fields: HTTPHeaders = ["Content-Length": "\(total)", "ETag": "\"a\"", "Accept-Ranges": "bytes"]
            _ = plan.answer(head(200, fields), to: nil, of: 0, isAccepted: true)
            let segments = plan.segments
            expect(segments.first?.lower == 0 && segments.last?.upper == total, "seed \(seed)")
            expect(zip(segments, segments.dropFirst()).allSatisfy { $0.upper == $1.lower }, "seed \(seed)")
            let shortest = segments.map { ($0.upper ?? 0) - $0.lower }.min() ?? 0
            expect(segments.count == 1 || shortest >= DownloadPlan.segmentMinimum, "seed \(seed)")
            expect(segments.count <= max(1, limit), "seed \(seed)")
        }
    }

    @Test("TRF-3: after a crash of the machine only synced bytes count")
    func boot() {
        let journal = journal([90], of: 100, safe: 50)
        expect(journal.trusted(boot: "b", size: 90)?.segments[0].count, equals: 90)
        expect(journal.trusted(boot: "c", size: 90)?.segments[0].count, equals: 50)
        expect(journal.trusted(boot: nil, size: 90)?.segments[0].count, equals: 50)
        expect(journal.trusted(boot: "b", size: 89) == nil)
    }

    @Test("TRF-3: a validator does not count for another address, except a tag with a digest")
    func addresses() {
        var journal = journal([90], of: 100)
        journal.location = "l"
        func isGoneOn(resource: String, at location: String, hasDigest: Bool) -> Bool {
            let plan = DownloadPlan(journal, resource: resource, boot: "b", hasDigest: hasDigest)
            return plan.question(for: 0, at: location) != nil
        }
        expect(isGoneOn(resource: "r", at: "other", hasDigest: false))
        expect(isGoneOn(resource: "other", at: "l", hasDigest: false))
        expect(!isGoneOn(resource: "other", at: "other", hasDigest: false))
        expect(isGoneOn(resource: "other", at: "other", hasDigest: true))
        journal.validator = .date("Sat, 21 Nov 2026 08:00:00 GMT")
        expect(isGoneOn(resource: "r", at: "other", hasDigest: true))
        expect(!isGoneOn(resource: "other", at: "other", hasDigest: true))
        journal.resource = nil
        expect(!isGoneOn(resource: "r", at: "other", hasDigest: false))
    }

    @Test("TRF-3: a journal whose segments do not cover each byte of the file once is ignored")
    func unsound() {
        let sound = journal([10, 10], of: 100)
        expect(sound.trusted(boot: "b", size: 100) != nil)
        let changes: [(inout ResumeJournal) -> Void] = [
            { $0.segments[1].lower = 49 }, { $0.segments[1].upper = 99 }, { $0.segments[0].count = 51 },
            { $0.segments[0].count = -1 }, { $0.segments[0].safeCount = 11 }, { $0.segments = [] },
            { $0.segments[1].upper = nil }, { $0.total = nil }, { $0.total = 101 }, { $0.version = 2 },
            { $0.segments[0].count = .max },
        ]
        for change in changes {
            var journal = sound
            change(&journal)
            expect(journal.trusted(boot: "b", size: 100) == nil, "\(journal)")
        }
    }
}
