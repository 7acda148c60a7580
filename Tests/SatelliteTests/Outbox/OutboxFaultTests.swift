import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import EasyNetworkOutbox
@testable import TestSupport

@Suite("An outbox whose disk fails")
struct OutboxFaultTests {
    @Test("BEY-13: whichever step of writing fails, add says so, and there is no entry")
    func add() throws {
        let fixture = OutboxFixture()
        let outbox = try fixture.outbox()
        let first = try outbox.add(OutboxMessage(text: "first"))
        let photo = fixture.directory.appendingPathComponent("photo.png")
        try Data("pixels".utf8).write(to: photo)
        var step = 0
        while true {
            fixture.files.fail(step..<step + 1)
            do throws(NetworkError) {
                try outbox.add(OutboxPhoto(file: photo))
                break
            } catch {
                expect(error.code, equals: .cannotWriteFile)
                expect(error.localizedDescription.contains(fixture.directory.path))
                expect(fixture.count("entries") == 1 && fixture.count("tmp") == 0)
            }
            step += 1
        }
        // Link, sync, write, sync, sync, rename, sync.
        expect(step, equals: 7)
        try expect(outbox.entries.first?.id == first && outbox.entries.count == 2)
    }

    @Test("BEY-13: when removing or reviving fails, that call says so, and the entry is where it was")
    func changes() async throws {
        let fixture = OutboxFixture()
        fixture.answers(422)
        let outbox = try fixture.outbox()
        let dead = try outbox.add(OutboxMessage(text: "dead"))
        try await outbox.drain(deadline: 60)
        let waiting = try outbox.add(OutboxMessage(text: "waiting"))

        fixture.files.fail(0..<1)
        expect(#expect(throws: NetworkError.self) { try outbox.remove(waiting) }?.code, equals: .cannotWriteFile)
        try expect(outbox.entries.map(\.id), equals: [waiting])
        fixture.files.fail(0..<1)
        expect(#expect(throws: NetworkError.self) { try outbox.retry(dead) }?.code, equals: .cannotWriteFile)
        fixture.files.fail(0..<1)
        expect(#expect(throws: NetworkError.self) { try outbox.remove(dead) }?.code, equals: .cannotWriteFile)
        try expect(outbox.deadLetters.map(\.id) == [dead] && outbox.deadLetters[0].error?.statusCode == 422)

        try outbox.retry(dead)
        try outbox.remove(waiting)
        try expect(outbox.entries.map(\.id) == [dead] && outbox.deadLetters.isEmpty)
        expect(fixture.count("tmp") == 0 && fixture.count("errors") == 0)
    }

    @Test(
        "BEY-13: when an entry cannot be moved, that is told and repeated, and the request is not sent again",
        arguments: [(204, 0), (422, 0), (422, 1), (422, 2), (422, 3), (422, 4)]
    )
    func ends(status: Int, step: Int) async throws {
        let fixture = OutboxFixture()
        fixture.answers(status)
        let outbox = try fixture.outbox()
        let id = try outbox.add(OutboxMessage(text: "a"))
        var events = outbox.events.makeAsyncIterator()
        fixture.files.fail(step..<step + 1)
        try outbox.start()
        guard case .sending(id)? = await events.next(), case .failed(id, let error, _)? = await events.next() else {
            Issue.record("another order of events")
            return
        }
        expect(error.code, equals: .cannotWriteFile)
        expect(fixture.count("entries") == 1 && fixture.count("dead") == 0 && fixture.count("errors") == 0)
        await expect(
            eventually {
                fixture.clock.advance(by: 1)
                return fixture.count("entries") == 0
            }
        )
        try await outbox.drain(deadline: 0)
        expect(fixture.keys, equals: [id.uuidString])
        try expect(outbox.deadLetters.map(\.error?.statusCode), equals: (status == 204 ? [] : [422]))
        expect(fixture.count("tmp"), equals: 0)
    }

    @Test("BEY-13: a file that is cut at any byte, or of which a byte is another one, is found to be damaged")
    func cuts() throws {
        let fixture = OutboxFixture()
        let outbox = try fixture.outbox()
        let photo = fixture.directory.appendingPathComponent("photo.png")
        try Data("pixels".utf8).write(to: photo)
        try outbox.add(OutboxMessage(text: "a"))
        try outbox.add(OutboxPhoto(file: photo))
        for name in try outbox.folder.list(.entries) {
            var file = fixture.directory.appendingPathComponent("entries").appendingPathComponent(name.text)
            if name.type == "photo" { file.appendPathComponent("record") }
            let whole = try Data(contentsOf: file)
            _ = try outbox.folder.read(name)
            let step = TestLoad.isFull ? 1 : 9
            for index in stride(from: Int.random(in: 0..<step), to: whole.count, by: step) {
                var other = whole
                other[index] ^= 1
                for damaged in [whole.prefix(index), other] {
                    try damaged.write(to: file)
                    let error = #expect(throws: NetworkError.self) { try outbox.folder.read(name) }
                    expect(error?.code, equals: .cannotParseResponse, "byte \(index)")
                }
            }
            try FileManager.default.removeItem(at: file)
            let error = #expect(throws: NetworkError.self) { try outbox.folder.read(name) }
            expect(error?.code, equals: (name.type == "photo" ? .cannotParseResponse : .cancelled))
        }
    }

    @Test("BEY-13: of the answer to a dead letter its beginning is kept, without secrets")
    func reason() async throws {
        let fixture = OutboxFixture()
        let body =
            #"{"error":"no such chat","token":"s3cr3t-t0ken","rest":""# + String(repeating: "x", count: 5_000) + "\"}"
        fixture.transport.route("POST", "*") { _ in
            MockResponse(statusCode: 422, headers: ["Content-Type": "application/json"], body: .data(Data(body.utf8)))
        }
        let outbox = try fixture.outbox()
        try outbox.add(OutboxMessage(text: "a"))
        try await outbox.drain(deadline: 60)
        let error = try #require(try outbox.deadLetters.first?.error)
        let text = String(decoding: try #require(error.responseBody), as: UTF8.self)
        expect(text.contains("no such chat") && !text.contains("s3cr3t") && text.utf8.count <= 1_024)
        expect(error.statusCode == 422 && error.serverMessage == "no such chat")
        let file = try #require(
            FileManager.default.enumerator(atPath: fixture.directory.path + "/errors")?.allObjects.first as? String
        )
        let stored = try Data(contentsOf: fixture.directory.appendingPathComponent("errors/" + file))
        expect(!String(decoding: stored, as: UTF8.self).contains("s3cr3t"))
    }

    @Test("BEY-13, BEY-21: a dead letter keeps the response only if a log shows it")
    func secretColumn() async throws {
        let long = String(repeating: "x", count: NetworkError.responseBodyLimit)
        // The type and the text of each response, and what is kept.
        let responses: [(String, String, String?)] = [
            ("text/csv", "user,password\nada,s3cr3t\n", nil), ("text/xml", "<password>s3cr3t</password>", nil),
            ("application/json", #"{"password":"s3cr3t","rest":"\#(long)"}"#, nil),
            ("text/plain", "\(long) s3cr3t", nil), ("text/csv", "user,age\nada,36\n", "user,age\nada,36\n"),
            ("text/plain", "no such chat", "no such chat"),
            ("application/json", #"{"password":"s3cr3t"}"#, #"{"password":"\#(Redaction.mark)"}"#),
        ]
        for (type, text, kept) in responses {
            let fixture = OutboxFixture()
            fixture.transport.route("POST", "*") { _ in
                MockResponse(statusCode: 403, headers: ["Content-Type": type], body: .data(Data(text.utf8)))
            }
            let outbox = try fixture.outbox()
            try outbox.add(OutboxMessage(text: "a"))
            try await outbox.drain(deadline: 60)
            let error = try #require(try outbox.deadLetters.first?.error)
            expect(error.responseBody.map { String(decoding: $0, as: UTF8.self) }, equals: kept, "\(text.prefix(30))")
            let errors = fixture.directory.appendingPathComponent("errors")
            let files = try FileManager.default.contentsOfDirectory(at: errors, includingPropertiesForKeys: nil)
            for file in files { try expect(!String(contentsOf: file, encoding: .utf8).contains("s3cr3t")) }
        }
    }

    @Test("BEY-13: what is no file in the place of an entry is a dead letter, and a drain ends")
    func strangers() async throws {
        let fixture = OutboxFixture()
        let outbox = try fixture.outbox()
        let entries = fixture.directory.path + "/entries/"
        for sequence in 1...5 {
            let name = OutboxName(
                sequence: UInt64(sequence),
                id: UUID(),
                priority: .normal,
                hasDependencies: sequence == 5,
                type: "message",
                lane: ""
            )
            let path = entries + name.text
            switch sequence {
            case 1: try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: "/nowhere")
            case 2: try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: path)
            case 3: try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
            case 4: expect(mkfifo(path, 0o600), equals: 0)
            default: try Data().write(to: URL(fileURLWithPath: path))
            }
        }
        let id = try outbox.add(OutboxMessage(text: "a"))
        // A copy of it under another number, as an archive may bring one back.
        let name = try #require(try outbox.folder.list(.entries).last)
        let copy = OutboxName(
            sequence: name.sequence + 1,
            id: id,
            priority: name.priority,
            hasDependencies: false,
            type: name.type,
            lane: name.lane
        )
        try FileManager.default.copyItem(atPath: entries + name.text, toPath: entries + copy.text)
        try await expect(outbox.drain(deadline: 60).isEmpty)
        try expect(outbox.deadLetters.map(\.error?.code), equals: Array(repeating: .cannotParseResponse, count: 5))
        expect(Set(fixture.keys) == [id.uuidString] && fixture.texts == ["a", "a"])
        for entry in try outbox.deadLetters { try outbox.remove(entry.id) }
        expect(fixture.count("dead") == 0 && fixture.count("errors") == 0)
    }

    @Test(
        "BEY-13: the order of entries is kept when the file of their numbers is damaged, shorter, or gone",
        arguments: ["", "shorter", "damaged", "empty", "gone", "too great", "at the limit", "below it", "long", "pipe"]
    )
    func order(of fault: String) async throws {
        let fixture = OutboxFixture()
        let (one, other) = (try fixture.outbox(), try fixture.outbox())
        let file = fixture.directory.appendingPathComponent("sequence")
        var ids: [UUID] = []
        for number in 0..<6 {
            if number == 3 {
                switch fault {
                case "shorter": try Data(contentsOf: file).dropLast(2).write(to: file)
                case "damaged": try Data("none".utf8).write(to: file)
                case "empty": try Data().write(to: file)
                case "gone": try FileManager.default.removeItem(at: file)
                case "too great": try Data("7fffffffffffffff".utf8).write(to: file)
                case "at the limit": try Data("3fffffffffffffff".utf8).write(to: file)
                case "below it": try Data("3fffffffffffff00".utf8).write(to: file)
                case "long": expect(truncate(file.path, 1 << 41), equals: 0)
                case "pipe":
                    try FileManager.default.removeItem(at: file)
                    expect(mkfifo(file.path, 0o600), equals: 0)
                default: break
                }
            }
            // After a fault the next program is a new one.
            let outbox = number < 3 ? [one, other][number % 2] : try fixture.outbox()
            ids.append(try outbox.add(OutboxMessage(text: "\(number)"), lane: "a"))
        }
        try expect(one.entries.map(\.id), equals: ids)
        try await expect(one.drain(deadline: 60).isEmpty)
        expect(fixture.texts, equals: (0..<6).map { "\($0)" })
    }

    @Test("BEY-13, BEY-19: no entry gets the number of a dead letter, even if the file of numbers is damaged")
    func numberOfDeadLetter() async throws {
        let fixture = OutboxFixture()
        let options = OutboxOptions(unique: .keep("a"))
        fixture.answers(400)
        let outbox = try fixture.outbox()
        let dead = try outbox.add(OutboxMessage(text: "dead"), options: options)
        try await outbox.drain(deadline: 60)
        try expect(outbox.deadLetters.map(\.id), equals: [dead])
        try Data("none".utf8).write(to: fixture.directory.appendingPathComponent("sequence"))
        let periodic = OutboxOptions(unique: .keep("b"), period: 60)
        let id = try outbox.add(OutboxMessage(text: "periodic"), options: periodic)
        try outbox.retry(dead)
        try outbox.remove(dead)
        try expect(outbox.entries.map(\.id), equals: [id])
    }

    @Test("BEY-13: a retried dead letter is sent before a later entry of its lane that waits for a slot")
    func retriedBeforeWaiting() async throws {
        let (fixture, queue) = (OutboxFixture(), NetworkQueue())
        fixture.answers(400, 204)
        let outbox = try fixture.outbox(queue: queue)
        let dead = try outbox.add(OutboxMessage(text: "first"), lane: "a")
        try await outbox.drain(deadline: 60)
        queue.isSuspended = true
        try outbox.add(OutboxMessage(text: "second"), lane: "a")
        try outbox.start()
        await expect(eventually { queue.operationCount == 1 })
        try outbox.retry(dead)
        queue.isSuspended = false
        await expect(eventually { fixture.count("entries") == 0 })
        expect(fixture.texts, equals: ["first", "first", "second"])
        try await outbox.drain(deadline: 0)
    }

    @Test("BEY-13: an entry with a number that no outbox gives is a dead letter, to be retried, and loses no other")
    func numbers() async throws {
        let fixture = OutboxFixture()
        let outbox = try fixture.outbox()
        try outbox.add(OutboxMessage(text: "first"), lane: "a")
        let entries = fixture.directory.path + "/entries/"
        let name = try #require(try outbox.folder.list(.entries).first)
        for sequence in [OutboxSequence.limit - 1, OutboxSequence.limit, 1 << 63, .max] {
            let other = OutboxName(
                sequence: sequence,
                id: UUID(),
                priority: .normal,
                hasDependencies: false,
                type: "message",
                lane: "a"
            )
            try FileManager.default.copyItem(atPath: entries + name.text, toPath: entries + other.text)
        }
        // A program that has added some, and one that begins now.
        for number in 1...3 { try outbox.add(OutboxMessage(text: "\(number)"), lane: "a") }
        let later = try fixture.outbox()
        for number in 4...6 { try later.add(OutboxMessage(text: "\(number)"), lane: "a") }
        try await expect(outbox.drain(deadline: 60).isEmpty)
        expect(fixture.texts, equals: ["first", "1", "2", "3", "4", "5", "6", "first"])
        let dead = try outbox.deadLetters
        expect(dead.map(\.error?.code), equals: Array(repeating: .cannotParseResponse, count: 3))
        try outbox.retry(dead.map(\.id))
        try await expect(outbox.drain(deadline: 60).isEmpty)
        expect(fixture.texts.suffix(3) == ["first", "first", "first"] && fixture.count("dead") == 0)
    }

    @Test("BEY-13: whatever the file of numbers holds, the next one follows the last entry and is one that is read")
    func everyNumber() {
        let edges: [UInt64] = [
            0, 1, 1 << 20, 1 << 40, 1 << 61, OutboxSequence.baseLimit, OutboxSequence.limit, 1 << 63, .max,
        ]
        let numbers = edges.flatMap { [$0 &- 1, $0, $0 &+ 1] }
        var violations: [String] = []
        for base in numbers {
            for count in numbers where count > 0 {
                for minimum in numbers where minimum < OutboxSequence.baseLimit {
                    var file: (base: UInt64, count: UInt64) = (base, count)
                    var number: UInt64?
                    for _ in 0..<3 where number == nil {
                        switch OutboxSequence.step(base: file.base, count: file.count, after: minimum) {
                        case .take(let next): number = next
                        case .extend(let length): file.count += UInt64(length)
                        case .replace: file = (minimum, 1)
                        }
                    }
                    guard let number, number > minimum, number < OutboxSequence.limit else {
                        violations.append("\(base) + \(count) after \(minimum): \(String(describing: number))")
                        continue
                    }
                }
            }
        }
        expect(violations.isEmpty)
    }

    @Test("BEY-13: a pipe in the place of a file of the directory is not waited for, and does no harm")
    func pipes() async throws {
        for name in ["changes", "sequence", "unique/" + OutboxName.fileName("a")] {
            let fixture = OutboxFixture()
            // Makes the directory.
            _ = try fixture.outbox()
            let pipe = fixture.directory.path + "/" + name
            unlink(pipe)
            expect(mkfifo(pipe, 0o600), equals: 0)
            let directory = fixture.directory
            let isOpened = unlessItWaits(for: pipe) { (try? OutboxFolder(directory)) != nil }
            guard isOpened == true else {
                Issue.record("\(name): the outbox is not opened")
                continue
            }
            let outbox = try fixture.outbox()
            let isAdded = unlessItWaits(for: pipe) {
                outbox.folder.signalChange()
                return (try? outbox.add(OutboxMessage(text: "a"), options: OutboxOptions(unique: .keep("a")))) != nil
            }
            expect(isAdded, equals: true, "\(name)")
            try await expect(outbox.drain(deadline: 60).isEmpty)
            expect(fixture.texts, equals: ["a"])
        }
    }

    @Test("BEY-13: a drain ends when nothing is left, also of what another process adds to a directory that was read")
    func drainOfOthers() async throws {
        let fixture = OutboxFixture()
        let (outbox, other) = (try fixture.outbox(), try fixture.outbox())
        try outbox.start()
        try outbox.add(OutboxMessage(text: "own"))
        await expect(eventually { fixture.count("entries") == 0 })
        for number in 1...5 { try other.add(OutboxMessage(text: "\(number)"), lane: "a") }
        // The clock stands still: no look finds them.
        try await expect(outbox.drain(deadline: 20).isEmpty)
        expect(fixture.texts, equals: ["own", "1", "2", "3", "4", "5"])
    }

    @Test("BEY-13: a directory that cannot be made or locked is an error of that call")
    func noDirectory() throws {
        let fixture = OutboxFixture()
        _ = try fixture.outbox()
        let file = fixture.directory.appendingPathComponent("file")
        try Data().write(to: file)
        let error = #expect(throws: NetworkError.self) { try Outbox(directory: file.appendingPathComponent("outbox")) }
        expect(error?.code, equals: .cannotWriteFile)
        // It has gone.
        let outbox = try fixture.outbox()
        try FileManager.default.removeItem(at: fixture.directory)
        expect(#expect(throws: NetworkError.self) { try outbox.start() }?.code, equals: .cannotWriteFile)
        expect(
            #expect(throws: NetworkError.self) { try outbox.add(OutboxMessage(text: "a")) }?.code,
            equals: .cannotWriteFile
        )
    }
}
