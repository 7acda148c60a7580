import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork

@Suite("DownloadCourse")
struct DownloadCourseTests {
    private func head(_ status: Int, _ fields: HTTPHeaders) -> TransportHead {
        TransportHead(statusCode: status, headers: fields)
    }

    private func record(_ counts: [Int64], of total: Int64?, boot: String? = "b", safe: Int64 = 0) -> PartRecord {
        let length = (total ?? 0) / Int64(counts.count)
        let segments = counts.enumerated().map { index, count in
            PartRecord.Segment(
                lower: Int64(index) * length,
                upper: total == nil ? nil : Int64(index + 1) * length,
                count: count,
                safeCount: min(count, safe)
            )
        }
        return PartRecord(resource: "r", validator: .entityTag("\"a\""), total: total, segments: segments, boot: boot)
    }

    private func course(_ record: PartRecord? = nil, limit: Int = 1) -> DownloadCourse {
        DownloadCourse(record, resource: "r", boot: "b", segmentLimit: limit)
    }

    @Test("TRF-3: what is there is not asked for, and what is not is, once")
    func questions() {
        var course = course(record([10, 25, 0, 25], of: 100))
        #expect(course.begin() == [0, 2])
        #expect(course.question(for: 0)?.range == "bytes=10-24")
        #expect(course.question(for: 2)?.range == "bytes=50-74")
        var last = self.course(record([25, 3], of: 50))
        #expect(last.begin() == [1])
        #expect(last.question(for: 1)?.range == "bytes=28-")
    }

    @Test("TRF-3: bytes go behind those that are there, and not beyond their segment")
    func bytes() {
        var course = course(record([10, 0], of: 100))
        _ = course.begin()
        let first = course.receive(30, of: 0)
        #expect(first.offset == 10 && first.count == 30 && !first.isEnough)
        let second = course.receive(30, of: 0)
        #expect(second.offset == 40 && second.count == 10 && second.isEnough)
        let third = course.receive(5, of: 0)
        #expect(third.count == 0 && third.isEnough)
    }

    @Test("TRF-3: an answer that ends too early says where")
    func early() {
        var course = course()
        #expect(course.answer(head(200, ["Content-Length": "100"]), to: nil, of: 0, isAccepted: true) == .takeAnew)
        _ = course.receive(99, of: 0)
        #expect(course.end(of: 0)?.message?.contains("99 of 100") == true)
        _ = course.receive(1, of: 0)
        #expect(course.end(of: 0) == nil)
    }

    private static let rangeEnds: [(String?, Int64, DownloadCourse.Answer)] = [
        ("bytes */100", 100, .complete), ("bytes */101", 100, .startOver), (nil, 100, .startOver),
        ("bytes */100", 60, .startOver), ("bytes */9999999999999999999999", 100, .startOver),
    ]

    @Test(
        "TRF-3: a 416 means that all is there only when the file ends there (RFC 9110, section 15.5.17)",
        arguments: rangeEnds
    )
    func unsatisfied(field: String?, count: Int64, answer: DownloadCourse.Answer) throws {
        var course = course(record([count], of: 100))
        _ = course.begin()
        let asked = course.question(for: 0)
        let question = try #require(asked)
        var fields = HTTPHeaders()
        fields["Content-Range"] = field
        #expect(course.answer(head(416, fields), to: question, of: 0, isAccepted: false) == answer)
        if answer == .startOver { #expect(course.record == nil && course.question(for: 0) == nil) }
    }

    @Test("TRF-3: a part tells the length that nobody knew")
    func learned() throws {
        var course = course(record([40], of: nil))
        _ = course.begin()
        let asked = course.question(for: 0)
        let question = try #require(asked)
        #expect(question.range == "bytes=40-")
        let part = head(206, ["Content-Range": "bytes 40-99/100", "ETag": "\"a\""])
        #expect(course.answer(part, to: question, of: 0, isAccepted: true) == .take)
        #expect(course.total == 100)
        _ = course.receive(59, of: 0)
        #expect(course.end(of: 0) != nil)
    }

    @Test("TRF-3: a range that nobody asked for is no file, one of the user's own is")
    func uninvited() {
        var course = course()
        let part = head(206, ["Content-Range": "bytes 0-9/100"])
        guard case .fail = course.answer(part, to: nil, of: 0, isAccepted: true) else { return #expect(Bool(false)) }
        #expect(course.answer(part, to: nil, of: 0, isAccepted: true, mayContinue: false) == .takeAnew)
        #expect(course.record == nil)
    }

    @Test("TRF-3: what is compressed is not gone on with, and its length is not that of the file")
    func coded() {
        var course = course(limit: 4)
        let answer = head(
            200,
            ["Content-Length": "9000000", "ETag": "\"a\"", "Accept-Ranges": "bytes", "Content-Encoding": "gzip"]
        )
        #expect(course.answer(answer, to: nil, of: 0, isAccepted: true) == .takeAnew)
        #expect(course.total == nil && course.record == nil && course.segments.count == 1)
    }

    @Test("TRF-2: segments cover the file, each byte once, and none is short", arguments: UInt64(1)...4)
    func segments(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<200 {
            let total = Int64.random(in: 0..<50_000_000, using: &generator)
            let limit = Int.random(in: -1...40, using: &generator)
            var course = course(limit: limit)
            let fields: HTTPHeaders = ["Content-Length": "\(total)", "ETag": "\"a\"", "Accept-Ranges": "bytes"]
            _ = course.answer(head(200, fields), to: nil, of: 0, isAccepted: true)
            let segments = course.segments
            #expect(segments.first?.lower == 0 && segments.last?.upper == total, "seed \(seed)")
            #expect(zip(segments, segments.dropFirst()).allSatisfy { $0.upper == $1.lower }, "seed \(seed)")
            let shortest = segments.map { ($0.upper ?? 0) - $0.lower }.min() ?? 0
            #expect(segments.count == 1 || shortest >= DownloadCourse.segmentMinimum, "seed \(seed)")
            #expect(segments.count <= max(1, limit), "seed \(seed)")
        }
    }

    @Test("TRF-3: after a crash of the machine only what the disk was told to keep counts")
    func boot() {
        let record = record([90], of: 100, safe: 50)
        #expect(record.trusted(boot: "b", size: 90)?.segments[0].count == 90)
        #expect(record.trusted(boot: "c", size: 90)?.segments[0].count == 50)
        #expect(record.trusted(boot: nil, size: 90)?.segments[0].count == 50)
        #expect(record.trusted(boot: "b", size: 89) == nil)
    }

    @Test("TRF-3: a validator is none for another address, but a tag where a digest will show what it was")
    func addresses() {
        var record = record([90], of: 100)
        record.location = "l"
        func isGoneOn(resource: String, at location: String, hasDigest: Bool) -> Bool {
            let course = DownloadCourse(record, resource: resource, boot: "b", hasDigest: hasDigest)
            return course.question(for: 0, at: location) != nil
        }
        #expect(isGoneOn(resource: "r", at: "other", hasDigest: false))
        #expect(isGoneOn(resource: "other", at: "l", hasDigest: false))
        #expect(!isGoneOn(resource: "other", at: "other", hasDigest: false))
        #expect(isGoneOn(resource: "other", at: "other", hasDigest: true))
        record.validator = .date("Sat, 21 Nov 2026 08:00:00 GMT")
        #expect(isGoneOn(resource: "r", at: "other", hasDigest: true))
        #expect(!isGoneOn(resource: "other", at: "other", hasDigest: true))
        record.resource = nil
        #expect(!isGoneOn(resource: "r", at: "other", hasDigest: false))
    }

    @Test("TRF-3: a journal whose segments do not cover the file, each byte once, is none")
    func unsound() {
        let sound = record([10, 10], of: 100)
        #expect(sound.trusted(boot: "b", size: 100) != nil)
        let changes: [(inout PartRecord) -> Void] = [
            { $0.segments[1].lower = 49 }, { $0.segments[1].upper = 99 }, { $0.segments[0].count = 51 },
            { $0.segments[0].count = -1 }, { $0.segments[0].safeCount = 11 }, { $0.segments = [] },
            { $0.segments[1].upper = nil }, { $0.total = nil }, { $0.total = 101 }, { $0.version = 2 },
            { $0.segments[0].count = .max },
        ]
        for change in changes {
            var record = sound
            change(&record)
            #expect(record.trusted(boot: "b", size: 100) == nil, "\(record)")
        }
    }
}
