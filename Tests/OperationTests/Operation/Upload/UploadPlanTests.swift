import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("The rules of resumable uploads")
struct UploadPlanTests {
    private typealias Message = UploadPlan.Message
    private typealias Verdict = UploadPlan.Verdict

    private static let url = URL(fileURLWithPath: "/").absoluteURL
    private let base = URL(string: "https://example.com/files") ?? url

    private func reply(_ status: Int?, _ headers: HTTPHeaders = [:]) -> UploadPlan.Reply {
        var headers = headers
        if headers["Tus-Resumable"] == nil { headers["Tus-Resumable"] = "1.0.0" }
        return UploadPlan.Reply(status: status, headers: headers, url: base)
    }

    private func created(
        _ kind: ResumableUpload.Kind,
        length: Int64 = 10,
        partSize: Int64 = 4,
        _ fields: HTTPHeaders = ["Upload-Complete": "?0"]
    ) -> UploadPlan {
        var plan = UploadPlan(kind, length: length, partSize: partSize)
        expect(plan.next, equals: .create)
        plan.willSend(.create)
        var headers = fields
        headers["Location"] = "files/7"
        expect(plan.receive(reply(201, headers), to: .create), equals: .proceed)
        return plan
    }

    /// Sends the next message.
    private func send(_ plan: inout UploadPlan, _ status: Int?, _ headers: HTTPHeaders = [:]) -> Verdict {
        let message = plan.next
        plan.willSend(message)
        return plan.receive(reply(status, headers), to: message)
    }

    @Test("TRF-7: in tus, the last part completes the upload")
    func tus() {
        var plan = created(.tus)
        expect(plan.address?.absoluteString, equals: "https://example.com/files/7")
        for (range, offset) in [(0..<4, 4), (4..<8, 8)] {
            let range = Int64(range.lowerBound)..<Int64(range.upperBound)
            expect(plan.next, equals: .append(range, completes: false))
            expect(send(&plan, 204, ["Upload-Offset": "\(offset)"]), equals: .proceed)
            expect(!plan.mayBeComplete)
        }
        expect(plan.next, equals: .append(8..<10, completes: true))
        expect(!plan.canStop(plan.next))
        expect(send(&plan, 204, ["Upload-Offset": "10"]), equals: .complete)
        expect(plan.mayBeComplete)
    }

    @Test("TRF-7: in the IETF's protocol, an empty message completes the upload, and its response is the last one")
    func http() {
        var plan = created(.http)
        for _ in 0..<3 { expect(send(&plan, 204, ["Upload-Complete": "?0"]), equals: .proceed) }
        expect(plan.next, equals: .append(10..<10, completes: true))
        expect(!plan.mayBeComplete)
        var failed = plan
        expect(send(&failed, 422, ["Upload-Complete": "?1"]), equals: .rejected)
        expect(send(&plan, 200, ["Upload-Complete": "?1"]), equals: .complete)
    }

    @Test("TRF-7: HEAD asks for the offset after any failure, and the upload resumes there")
    func asks() {
        for kind in [ResumableUpload.Kind.tus, .http] {
            for status in [nil, 500, 503, 423, 429] as [Int?] {
                var plan = created(kind)
                expect(send(&plan, status), equals: .failed)
                expect(plan.next, equals: .ask)
                expect(send(&plan, 200, ["Upload-Offset": "3", "Upload-Complete": "?0"]), equals: .proceed)
                expect(plan.next, equals: .append(3..<7, completes: false))
                expect(plan.takeProgress() && !plan.takeProgress())
            }
        }
    }

    @Test("TRF-7: a wrong offset is corrected, and not endlessly")
    func conflict() {
        for kind in [ResumableUpload.Kind.tus, .http] {
            var plan = created(kind)
            for _ in 0..<UploadPlan.conflictLimit {
                expect(send(&plan, 409), equals: .proceed)
                expect(plan.next, equals: .ask)
                expect(send(&plan, 200, ["Upload-Offset": "0"]), equals: .proceed)
            }
            expect(send(&plan, 409), equals: .failed)
            // Progress begins a new count.
            expect(send(&plan, 200, ["Upload-Offset": "6"]), equals: .proceed)
            expect(send(&plan, 409), equals: .proceed)
        }
    }

    @Test("TRF-7: a server that takes no bytes, or claims more than was sent, does not hold the upload forever")
    func noProgress() {
        for offset in ["0", "9", "-1", "99999999999999999999", "4, 5", "x", ""] {
            var plan = created(.tus)
            var verdicts: [Verdict] = []
            for _ in 0..<20 {
                let verdict =
                    plan.next == .ask
                    ? send(&plan, 200, ["Upload-Offset": "0"]) : send(&plan, 204, ["Upload-Offset": offset])
                verdicts.append(verdict)
                guard verdict == .proceed else { break }
            }
            guard case .fail(.badServerResponse, _)? = verdicts.last else {
                Issue.record("offset \(offset): \(verdicts)")
                continue
            }
        }
    }

    @Test("TRF-7: an upload that is gone begins again, unless all bytes were sent")
    func gone() {
        for kind in [ResumableUpload.Kind.tus, .http] {
            for status in [404, 410] {
                var plan = created(kind)
                guard case .startOver = send(&plan, status) else { return expect(false, "\(status) continues") }
                expect(plan.next, equals: .create)
                var sent = created(kind, partSize: 10)
                if kind == .http { expect(send(&sent, 204), equals: .proceed) }
                expect(send(&sent, nil), equals: .failed)
                guard case .fail = send(&sent, status) else { return expect(false, "the upload would act twice") }
            }
            // The server confirms that bytes are missing, so it has not acted.
            var plan = created(kind, partSize: 10)
            if kind == .http { expect(send(&plan, 204), equals: .proceed) }
            expect(send(&plan, nil), equals: .failed)
            expect(send(&plan, 200, ["Upload-Offset": "5", "Upload-Complete": "?0"]), equals: .proceed)
            expect(!plan.mayBeComplete)
            guard case .startOver = send(&plan, 404) else { return expect(false, "it could begin again") }
        }
    }

    @Test("TRF-7: a response that is cut off counts only if it ends the upload")
    func cut() {
        var creation = UploadPlan(.http, length: 10, partSize: 4)
        let answer = UploadPlan.Reply(status: 201, headers: ["Location": "/files/7"], isCut: true)
        expect(creation.receive(answer, to: .create), equals: .failed)
        for kind in [ResumableUpload.Kind.tus, .http] {
            var plan = created(kind, partSize: 10)
            if kind == .http { expect(send(&plan, 204), equals: .proceed) }
            plan.willSend(plan.next)
            var last = reply(200, ["Upload-Offset": "10", "Upload-Complete": "?1"])
            last.isCut = true
            expect(plan.receive(last, to: plan.next), equals: kind == .tus ? .failed : .completeWithoutResponse)
            expect(plan.mayBeComplete)
        }
    }

    @Test("TRF-7: the upload may be complete until the server says that bytes are missing, or nothing has arrived")
    func maybeComplete() {
        func last() -> UploadPlan {
            var plan = created(.http, partSize: 10)
            expect(send(&plan, 204), equals: .proceed)
            return plan
        }
        // The server can still be busy with the message that completes the upload.
        var busy = last()
        expect(send(&busy, nil), equals: .failed)
        expect(send(&busy, 200, ["Upload-Offset": "10", "Upload-Complete": "?0"]), equals: .proceed)
        expect(busy.mayBeComplete)
        guard case .fail = send(&busy, 404) else { return expect(false, "the upload would act twice") }
        // The server may have taken an earlier message of the call.
        for isFirst in [true, false] {
            var plan = last()
            plan.willSend(plan.next)
            var gone = reply(404)
            gone.isFirst = isFirst
            let verdict = plan.receive(gone, to: plan.next)
            if case .startOver = verdict { expect(isFirst) } else { expect(!isFirst, "\(verdict)") }
        }
        for mayHaveArrived in [true, false] {
            var plan = last()
            plan.willSend(plan.next)
            expect(plan.receive(UploadPlan.Reply(mayHaveArrived: mayHaveArrived), to: plan.next), equals: .failed)
            expect(plan.mayBeComplete, equals: mayHaveArrived)
        }
    }

    @Test("TRF-7: a server that takes only a few bytes of each part ends the upload")
    func crumbs() {
        for count in [1, 60, 64] as [Int64] {
            for isLost in [true, false] {
                var plan = created(.tus, length: 100_000, partSize: 1_024)
                var (offset, sent) = (Int64(0), 0)
                while offset < 100_000, sent < 10_000 {
                    sent += 1
                    offset = min(offset + count, 100_000)
                    var verdict = send(&plan, isLost ? 409 : 204, ["Upload-Offset": "\(offset)"])
                    if verdict == .proceed, isLost { verdict = send(&plan, 200, ["Upload-Offset": "\(offset)"]) }
                    if verdict != .proceed { break }
                }
                expect(offset == 100_000, equals: count == 64, "\(count) bytes of each part, \(sent) parts")
                expect(count == 64 || sent < 10)
            }
        }
    }

    @Test("TRF-7: an upload that is gone each time ends")
    func goneAlways() {
        var plan = created(.tus)
        for _ in 0..<UploadPlan.startOverLimit {
            guard case .startOver = send(&plan, 404) else { return expect(false, "it did not begin again") }
            expect(send(&plan, 201, ["Location": "/files/8"]), equals: .proceed)
        }
        guard case .fail = send(&plan, 404) else { return expect(false, "it begins again endlessly") }
    }

    @Test("TRF-7: the server's limits lower the parts; 413 halves them")
    func limits() {
        let fields: HTTPHeaders = ["Upload-Complete": "?0", "Upload-Limit": "max-append-size=3;a=1, max-age=5, x"]
        expect(created(.http, fields).next, equals: .append(0..<3, completes: false))
        var plan = UploadPlan(.http, length: 10, partSize: 4)
        guard case .fail = send(&plan, 201, ["Location": "/a", "Upload-Limit": "max-size=9"]) else {
            return expect(false, "the upload is too long")
        }
        for impossible in ["max-append-size=0", "max-append-size=3, min-append-size=4"] {
            var plan = UploadPlan(.http, length: 10, partSize: 4)
            guard case .fail = send(&plan, 201, ["Location": "/a", "Upload-Limit": impossible]) else {
                return expect(false, "\(impossible): no part is possible")
            }
        }
        // The last part is too short for the server unless it completes the upload.
        let least: HTTPHeaders = ["Upload-Complete": "?0", "Upload-Limit": "min-append-size=6"]
        var short = created(.http, least)
        expect(short.next, equals: .append(0..<6, completes: false))
        expect(send(&short, 204), equals: .proceed)
        expect(short.next, equals: .append(6..<10, completes: true))
        var large = created(.tus, length: 1_000_000, partSize: 300_000)
        var sizes: [Int] = []
        while case .append(let range, _) = large.next {
            sizes.append(range.count)
            guard send(&large, 413) == .proceed else { break }
            expect(send(&large, 200, ["Upload-Offset": "0"]), equals: .proceed)
        }
        expect(sizes, equals: [300_000, 150_000, 75_000, 65_536])
    }

    @Test("TRF-7: parts of any size, and lengths of any size")
    func extremes() {
        let plan = created(.tus, length: .max, partSize: .max)
        expect(plan.next, equals: .append(0..<Int64.max, completes: true))
        expect(created(.tus, length: 2, partSize: -5).next, equals: .append(0..<1, completes: false))
        expect(created(.http, length: 0).next, equals: .append(0..<0, completes: true))
        var empty = UploadPlan(.tus, length: 0, partSize: 1)
        expect(send(&empty, 201, ["Location": "/a"]), equals: .complete)
        // The server may have it, and it must not be sent twice.
        var lost = UploadPlan(.tus, length: 0, partSize: 1)
        expect(send(&lost, nil), equals: .rejected)
    }

    @Test("TRF-7: a server without the protocol is recognized, and asked first if the upload is optional")
    func support() {
        for kind in [ResumableUpload.Kind.tus, .http] {
            var plan = UploadPlan(kind, length: 10, partSize: 4, isOptional: true)
            expect(plan.next, equals: .discover)
            expect(send(&plan, 503), equals: .failed)
            var other = plan
            expect(send(&other, 404), equals: .unsupported)
            expect(send(&other, 204), equals: .unsupported)
            let fields: HTTPHeaders = [
                "Tus-Version": "0.2.2,1.0.0", "Tus-Extension": "creation", "Upload-Limit": "min-size=0",
            ]
            expect(send(&plan, 204, fields), equals: .proceed)
            expect(plan.next, equals: .create)
            guard case .fail(.badServerResponse, _) = send(&plan, 200) else { return expect(false, "no Location") }
        }
        var plan = UploadPlan(.tus, length: 10, partSize: 4)
        let answer = UploadPlan.Reply(status: 201, headers: ["Location": "/photos/7"], url: base)
        guard case .fail(.badServerResponse, _) = plan.receive(answer, to: .create) else {
            return expect(false, "an ordinary resource is taken for an upload")
        }
        // The IETF's protocol does not require a field of its own there, so the new resource is asked.
        var http = UploadPlan(.http, length: 10, partSize: 4)
        expect(http.receive(answer, to: .create), equals: .proceed)
        expect(http.next, equals: .ask)
        var missing = http
        guard case .fail(.badServerResponse, _) = send(&http, 200) else { return expect(false, "no Upload-Offset") }
        guard case .fail(.badServerResponse, _) = send(&missing, 404) else { return expect(false, "404 fails") }
    }

    @Test("TRF-7: the server's address of the upload is resolved, and never leaves https")
    func location() {
        let places = [
            "files/7": "https://example.com/files/7", "/a?b#c": "https://example.com/a?b#c",
            "https://eve@other.example/x": "https://other.example/x", "//other.example/y": "https://other.example/y",
        ]
        for (text, place) in places {
            var plan = UploadPlan(.tus, length: 10, partSize: 4)
            expect(send(&plan, 201, ["Location": text]), equals: .proceed)
            expect(plan.address?.absoluteString, equals: place)
        }
        for text in ["http://example.com/files/7", "file:///etc/passwd", "https:///x"] {
            var plan = UploadPlan(.tus, length: 10, partSize: 4)
            guard case .fail(.badServerResponse, _) = send(&plan, 201, ["Location": text]) else {
                Issue.record("\(text) is taken")
                continue
            }
        }
    }

    @Test("TRF-7: an upload that the server ended too early is not complete")
    func endedEarly() {
        var plan = created(.http)
        guard case .fail = send(&plan, 200, ["Upload-Complete": "?1"]) else {
            return expect(false, "bytes are missing")
        }
        var asked = created(.http)
        expect(send(&asked, nil), equals: .failed)
        guard case .fail = send(&asked, 204, ["Upload-Offset": "4", "Upload-Complete": "?1"]) else {
            return expect(false, "bytes are missing")
        }
        var other = created(.tus)
        expect(send(&other, nil), equals: .failed)
        guard case .startOver = send(&other, 200, ["Upload-Offset": "4", "Upload-Length": "11"]) else {
            return expect(false, "that is another upload")
        }
    }

    /// A server that loses responses and requests at random, and counts how often it acts.
    private struct Server {
        var generator: SeededGenerator
        let kind: ResumableUpload.Kind
        let length: Int64
        var uploads: [Int64?] = []
        var isComplete = false
        var actCount = 0

        mutating func receive(_ message: UploadPlan.Message) -> UploadPlan.Reply {
            if Int.random(in: 0..<8, using: &generator) == 0 {
                return UploadPlan.Reply(status: nil, mayHaveArrived: Bool.random(using: &generator))
            }
            var headers: HTTPHeaders = ["Tus-Resumable": "1.0.0"]
            var status = 204
            let offset = uploads.last ?? nil
            if Int.random(in: 0..<40, using: &generator) == 0, !uploads.isEmpty { uploads[uploads.count - 1] = nil }
            switch (message, offset) {
            case (.discover, _): break
            case (.create, _):
                uploads.append(0)
                (status, isComplete) = (201, false)
                headers["Location"] = "https://example.com/\(uploads.count)"
                headers["Upload-Complete"] = "?0"
            case (_, nil): status = 404
            case (.ask, let offset?):
                headers["Upload-Offset"] = "\(offset)"
                headers["Upload-Complete"] = isComplete ? "?1" : "?0"
            case (.append(let range, let completes), let offset?):
                guard range.lowerBound == offset, !isComplete else {
                    status = 409
                    break
                }
                // A connection can break in the middle of a part.
                let isCut = Int.random(in: 0..<6, using: &generator) == 0
                let count = isCut ? Int64.random(in: 0...Int64(range.count), using: &generator) : Int64(range.count)
                let end = offset + count
                if uploads.last ?? nil != nil { uploads[uploads.count - 1] = end }
                let isWhole = count == Int64(range.count)
                isComplete = isWhole && (kind == .tus ? end == length : completes)
                if isComplete { actCount += 1 }
                if !isWhole { return UploadPlan.Reply(status: nil) }
                headers["Upload-Offset"] = "\(end)"
                headers["Upload-Complete"] = isComplete ? "?1" : "?0"
            }
            if Int.random(in: 0..<8, using: &generator) == 0 { return UploadPlan.Reply(status: nil) }
            let url = URL(string: "https://example.com/files")
            var reply = UploadPlan.Reply(status: status, headers: headers, url: url)
            reply.isCut = 200..<300 ~= status && Int.random(in: 0..<8, using: &generator) == 0
            return reply
        }
    }

    @Test("TRF-7: over random histories, the server never acts twice, and what is complete has all bytes")
    func histories() {
        var ends: [String: Int] = [:]
        let count = TestLoad.count(20_000, part: 1_000, huge: 200_000)
        for seed in 0..<UInt64(count) {
            var generator = SeededGenerator(seed: seed)
            let kind = seed % 2 == 0 ? ResumableUpload.Kind.tus : .http
            let length = Int64.random(in: 1...40, using: &generator)
            let partSize = Int64.random(in: 1...12, using: &generator)
            var server = Server(generator: generator, kind: kind, length: length)
            var plan = UploadPlan(kind, length: length, partSize: partSize)
            var end: String?
            for _ in 0..<3_000 where end == nil {
                // A new process knows what the journal has.
                if Int.random(in: 0..<20, using: &generator) == 0 {
                    plan = UploadPlan(
                        kind,
                        length: length,
                        partSize: partSize,
                        address: plan.address,
                        mayBeComplete: plan.mayBeComplete
                    )
                }
                let message = plan.next
                plan.willSend(message)
                if case .append(let range, _) = message {
                    expect(range.lowerBound >= 0 && range.upperBound <= length, "seed \(seed)")
                }
                switch plan.receive(server.receive(message), to: message) {
                case .proceed, .failed, .startOver: continue
                case .complete, .completeWithoutResponse:
                    expect(server.actCount, equals: 1, "seed \(seed)")
                    end = "complete"
                case .fail, .rejected: end = "failed"
                case .unsupported: end = "unsupported"
                }
            }
            expect(server.actCount <= 1, "seed \(seed) acted \(server.actCount) times")
            ends[end ?? "endless", default: 0] += 1
        }
        expect(ends["endless"] == nil && ends["unsupported"] == nil && ends["complete"] ?? 0 > count / 2, "\(ends)")
    }
}
