import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import EasyNetworkOutbox
@testable import TestSupport

@Suite
struct OutboxTests {
    // MARK: - Delivery

    @Test("BEY-13: what was added is delivered in its order under its own key, and the directory is empty then")
    func delivery() async throws {
        let fixture = OutboxFixture()
        let outbox = try fixture.outbox()
        let ids = try ["a", "b", "c"].map { try outbox.add(OutboxMessage(text: $0), lane: "a") }
        try expect(outbox.entries.map(\.id), equals: ids)
        try outbox.start()
        await expect(eventually { fixture.transport.requests.count == 3 && fixture.count("entries") == 0 })
        expect(fixture.texts, equals: ["a", "b", "c"])
        expect(fixture.keys, equals: ids.map(\.uuidString))
        try await expect(outbox.drain(deadline: 0).isEmpty)
        expect(fixture.count("tmp") == 0 && fixture.count("errors") == 0)
    }

    @Test("BEY-13: entries that were there before are delivered by the next outbox, with the same key")
    func restart() async throws {
        let fixture = OutboxFixture()
        let id = try fixture.outbox().add(OutboxMessage(text: "a"))
        let outbox = try fixture.outbox()
        try outbox.start()
        await expect(eventually { fixture.count("entries") == 0 })
        expect(fixture.keys, equals: [id.uuidString])
        try await outbox.drain(deadline: 0)
    }

    @Test(
        "BEY-13: a temporary failure is tried again after a delay that grows, with the same key, and holds up its lane alone"
    )
    func patience() async throws {
        let fixture = OutboxFixture()
        let clock = fixture.clock
        let sent = Locked<[(text: String, key: String?, time: TimeInterval)]>([])
        fixture.transport.route("POST", "*") { message in
            let text = (message.json() as? [String: Any])?["text"] as? String ?? ""
            return sent.withLock { sent in
                sent.append((text, message.headers["Idempotency-Key"], clock.now))
                return .status(text == "a1" && sent.count { $0.text == "a1" } <= 3 ? 503 : 204)
            }
        }
        let outbox = try fixture.outbox()
        let events = outbox.events
        let first = try outbox.add(OutboxMessage(text: "a1"), lane: "a")
        let second = try outbox.add(OutboxMessage(text: "a2"), lane: "a")
        let other = try outbox.add(OutboxMessage(text: "b1"), lane: "b")
        try outbox.start()
        // The other lane does not wait for a clock that stands still.
        await expect(eventually { sent.withLock { $0.contains { $0.text == "b1" } } })
        let time = Task {
            // Also after a wait without end: the outbox looks on a thread that it may get late.
            while !Task.isCancelled {
                if await clock.waitForTimers(1) { clock.advance(by: 0.25) }
                // Paces the time, which would outrun the outbox's disk; nothing waits for it.
                try? await Task.sleep(nanoseconds: 1_000_000)
            }
        }
        var (delays, delivered): ([TimeInterval], [UUID]) = ([], [])
        for await event in events {
            if case .failed(first, _, let delay) = event { delays.append(delay) }
            if case .delivered(let id) = event { delivered.append(id) }
            if delivered.count == 3 { break }
        }
        time.cancel()
        // The jitter is 1, the greatest.
        expect(delays, equals: [2, 4, 8])
        expect(delivered, equals: [other, first, second])
        let lane = sent.withLock { $0.filter { $0.text != "b1" } }
        expect(lane.map(\.text), equals: ["a1", "a1", "a1", "a1", "a2"])
        expect(lane.map(\.key), equals: Array(repeating: first.uuidString, count: 4) + [second.uuidString])
        for (index, delay) in delays.enumerated() { expect(lane[index + 1].time - lane[index].time >= delay) }
        try await outbox.drain(deadline: 0)
    }

    // MARK: - Dead letters

    @Test("BEY-13: a refusal for good is a dead letter with its error, which can be sent again or removed")
    func deadLetters() async throws {
        let fixture = OutboxFixture()
        fixture.answers(422)
        let outbox = try fixture.outbox()
        let ids = try ["a", "b"].map { try outbox.add(OutboxMessage(text: $0), lane: $0) }
        try outbox.start()
        await expect(eventually { fixture.count("dead") == 2 })
        try expect(outbox.deadLetters.map(\.id), equals: ids)
        try expect(
            outbox.deadLetters.allSatisfy { $0.error?.statusCode == 422 && $0.error?.code == .unacceptableStatus }
        )
        try expect(outbox.entries.isEmpty)
        fixture.answers(204)
        try outbox.remove(ids[1])
        try outbox.retry(ids[0])
        await expect(eventually { fixture.count("dead") == 0 && fixture.count("entries") == 0 })
        await expect(eventually { fixture.texts.count == 3 })
        expect(fixture.texts.last, equals: "a")
        try await outbox.drain(deadline: 0)
        expect(fixture.count("errors"), equals: 0)
    }

    @Test("BEY-13: unknown types and damaged files are dead letters, and the rest goes on")
    func damage() async throws {
        let fixture = OutboxFixture()
        let old = try fixture.outbox()
        struct Unknown: APIRequest, Codable {
            typealias Item = Void
            var api: String { "x" }
        }
        old.register(Unknown.self, name: "unknown")
        try old.add(Unknown())
        let cut = try old.add(OutboxMessage(text: "cut"), lane: "a")
        try old.add(OutboxMessage(text: "whole"), lane: "a")
        let folder = fixture.directory.appendingPathComponent("entries")
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) where name.contains(cut.uuidString)
        {
            let file = folder.appendingPathComponent(name)
            try Data(contentsOf: file).dropLast(1).write(to: file)
        }
        let outbox = try fixture.outbox()
        try outbox.start()
        await expect(eventually { fixture.count("dead") == 2 && fixture.count("entries") == 0 })
        expect(fixture.texts, equals: ["whole"])
        expect(Set(try outbox.deadLetters.compactMap(\.error?.code)), equals: [.invalidRequest, .cannotParseResponse])
        try await outbox.drain(deadline: 0)
    }

    @Test("BEY-13: what depends on a dead letter is one, and comes back with it")
    func dependencies() async throws {
        let fixture = OutboxFixture()
        fixture.answers(404)
        let outbox = try fixture.outbox()
        let root = try outbox.add(OutboxMessage(text: "root"), lane: "a")
        let next = try outbox.add(OutboxMessage(text: "next"), lane: "b", after: [root])
        let last = try outbox.add(OutboxMessage(text: "last"), lane: "c", after: [next])
        try outbox.start()
        await expect(eventually { fixture.count("dead") == 3 })
        expect(fixture.texts, equals: ["root"])
        try expect(
            outbox.deadLetters.map { $0.error?.code },
            equals: [
                .unacceptableStatus, .dependencyFailed, .dependencyFailed,
            ]
        )
        let error = #expect(throws: NetworkError.self) { try outbox.add(OutboxMessage(text: "x"), after: [last]) }
        expect(error?.code, equals: .refused)
        fixture.answers(204)
        try outbox.retry(root)
        await expect(eventually { fixture.count("dead") == 0 && fixture.count("entries") == 0 })
        expect(fixture.texts, equals: ["root", "root", "next", "last"])
        try await outbox.drain(deadline: 0)
    }

    @Test("BEY-13: an older version is migrated, an entry that is too old is a dead letter, and a full outbox says so")
    func limits() async throws {
        let fixture = OutboxFixture()
        try fixture.outbox().add(OutboxMessage(text: "a"))
        let outbox = try fixture.outbox(maximumCount: 1, maximumAge: 60)
        outbox.register(OutboxMessage.self, name: "message", version: 2) { data, version in
            var message = try JSONDecoder().decode(OutboxMessage.self, from: data)
            message.text += " of version \(version)"
            return message
        }
        let error = #expect(throws: NetworkError.self) { try outbox.add(OutboxMessage(text: "b")) }
        expect(error?.code, equals: .refused)
        try outbox.start()
        await expect(eventually { fixture.texts == ["a of version 1"] && fixture.count("entries") == 0 })
        try await outbox.drain(deadline: 0)
        try outbox.add(OutboxMessage(text: "old"))
        fixture.clock.advance(by: 61)
        try outbox.start()
        await expect(eventually { fixture.count("dead") == 1 })
        try expect(outbox.deadLetters.first?.error?.code, equals: .timedOut)
        try await outbox.drain(deadline: 0)
    }

    // MARK: - Files

    @Test("BEY-13: files of a body and of a form are the outbox's own, and may be removed", arguments: [false, true])
    func bodies(isForm: Bool) async throws {
        let fixture = OutboxFixture()
        let outbox = try fixture.outbox()
        let photo = fixture.directory.appendingPathComponent("photo.png")
        try Data("pixels".utf8).write(to: photo)
        try outbox.add(OutboxPhoto(file: photo, isForm: isForm))
        try FileManager.default.removeItem(at: photo)
        try outbox.start()
        await expect(eventually { fixture.transport.requests.count == 1 && fixture.count("entries") == 0 })
        let body = fixture.transport.requests.first?.body ?? Data()
        expect(String(decoding: body, as: UTF8.self).contains("pixels"))
        let missing = #expect(throws: NetworkError.self) { try outbox.add(OutboxPhoto(file: photo)) }
        expect(missing?.code, equals: .invalidRequest)
        try await outbox.drain(deadline: 0)
        expect(fixture.count("tmp"), equals: 0)
    }

    @Test("BEY-13: the directory can be read by the user of the process alone, whatever lies in it")
    func modes() async throws {
        let fixture = OutboxFixture()
        let directory = fixture.directory
        func mode(_ path: String) throws -> Int {
            let attributes = try FileManager.default.attributesOfItem(atPath: directory.path + "/" + path)
            return try #require(attributes[.posixPermissions] as? NSNumber).intValue & 0o777
        }
        func names(_ folder: String) throws -> [String] {
            try FileManager.default.contentsOfDirectory(atPath: directory.path + "/" + folder)
        }
        fixture.answers(422)
        let outbox = try fixture.outbox()
        try outbox.add(OutboxMessage(text: "dead"))
        try await outbox.drain(deadline: 60)
        let photo = directory.appendingPathComponent("photo.png")
        try Data("pixels".utf8).write(to: photo)
        try outbox.add(OutboxMessage(text: "a"))
        try outbox.add(OutboxPhoto(file: photo))

        for folder in ["", "entries", "dead", "errors", "tmp"] { try expect(mode(folder), equals: 0o700, "\(folder)") }
        try expect(mode("sequence"), equals: 0o600)
        for folder in ["dead", "errors"] {
            let name = try #require(names(folder).first)
            try expect(mode(folder + "/" + name), equals: 0o600, "\(folder)")
        }
        let entries = try names("entries").sorted()
        expect(entries.count, equals: 2)
        try expect(mode("entries/" + entries[0]), equals: 0o600)
        try expect(mode("entries/" + entries[1]) == 0o700 && mode("entries/" + entries[1] + "/record") == 0o600)
    }

    // MARK: - Processes

    @Test("BEY-13: what an outbox left that has ended is removed; what another one is writing stays")
    func leftovers() throws {
        let fixture = OutboxFixture()
        let (folder, other) = (try OutboxFolder(fixture.directory), try OutboxFolder(fixture.directory))
        let tmp = fixture.directory.appendingPathComponent("tmp")
        let used = try FileManager.default.contentsOfDirectory(atPath: tmp.path)
        expect(used.count, equals: 2)
        for name in ["left", used[0], used[1]] {
            try CacheFiles().makeDirectory(tmp.path + "/" + name)
            try CacheFiles().create(tmp.path + "/\(name)/a", [Data()], usedAt: Date())
        }
        // Of an earlier version.
        for age in [0, 2 * 86_400.0] { try CacheFiles().create(tmp.path + "/\(age)", [Data()], usedAt: Date() - age) }
        folder.sweep()
        expect(Set(try FileManager.default.contentsOfDirectory(atPath: tmp.path)), equals: Set(used + ["0.0"]))
        expect(fixture.count("tmp"), equals: 3)
        withExtendedLifetime(other) {}
    }

    @Test("BEY-13: of two outboxes of one directory one delivers; the other takes over when that one has stopped")
    func takeOver() async throws {
        let fixture = OutboxFixture()
        let (one, other) = (try fixture.outbox(), try fixture.outbox())
        try one.start()
        await expect(eventually { fixture.clock.pendingCount == 1 })
        try other.start()
        await expect(eventually { fixture.clock.pendingCount == 2 })
        try other.add(OutboxMessage(text: "a"))
        // The one that delivers hears the bell.
        await expect(
            eventually {
                fixture.clock.advance(by: 1)
                return fixture.count("entries") == 0
            }
        )
        try await one.drain(deadline: 0)
        try one.add(OutboxMessage(text: "b"))
        await expect(
            eventually {
                fixture.clock.advance(by: 1)
                return fixture.count("entries") == 0
            }
        )
        expect(fixture.texts, equals: ["a", "b"])
        try await other.drain(deadline: 0)
    }

    #if os(Linux)
    @Test("BEY-13: an outbox hears at once what another one adds, and when that stops, and sleeps meanwhile")
    func hears() async throws {
        let fixture = OutboxFixture()
        let (one, other) = (try fixture.outbox(), try fixture.outbox())
        try one.start()
        await expect(eventually { (try? OutboxFolder(fixture.directory).lock()) == nil })
        try other.start()
        // The clock stands still throughout: no look is due.
        try other.add(OutboxMessage(text: "a"))
        await expect(eventually { fixture.count("entries") == 0 })
        try await one.drain(deadline: 0)
        try one.add(OutboxMessage(text: "b"))
        await expect(eventually { fixture.count("entries") == 0 })
        expect(fixture.texts, equals: ["a", "b"])
        // Each looks again after two minutes, and no earlier.
        fixture.clock.advance(by: 119)
        expect(fixture.clock.pendingCount, equals: 1)
        try await other.drain(deadline: 0)
        expect(fixture.clock.pendingCount, equals: 0)
    }

    @Test("BEY-13: what the system tells of a directory is read to its end, whatever it is")
    func news() {
        func event(_ mask: some BinaryInteger, _ name: String, padding: Int = 0) -> [UInt8] {
            let text = Array(name.utf8) + Array(repeating: UInt8(0), count: padding)
            let numbers = [1, UInt32(mask), 0, UInt32(text.count)]
            return numbers.flatMap { number in withUnsafeBytes(of: number) { Array($0) } } + text
        }
        func isNews(_ bytes: [UInt8]) -> Bool { bytes.withUnsafeBytes { OutboxWatch.isNews($0) } }
        let (folder, counter) = (
            event(IN_CLOSE_NOWRITE, "entries", padding: 9), event(IN_MODIFY, "changes", padding: 1)
        )
        expect(isNews(counter) && isNews(folder + counter) && isNews(folder + event(IN_CLOSE_NOWRITE, "")))
        expect(!isNews(folder) && !isNews([]) && !isNews(event(IN_MODIFY, "sequence", padding: 8)))
        for count in 0..<counter.count where count != 16 + 7 { _ = isNews(Array(counter.prefix(count))) }
        var odd = folder
        odd.replaceSubrange(12..<16, with: [255, 255, 255, 255])
        expect(!isNews(odd))
    }
    #endif

    @Test("BEY-13: a drain waits for what can be delivered, and returns what is left")
    func drain() async throws {
        let fixture = OutboxFixture()
        let outbox = try fixture.outbox()
        for text in ["a", "b"] { try outbox.add(OutboxMessage(text: text), lane: "l") }
        try outbox.start()
        try await expect(outbox.drain(deadline: 60).isEmpty)
        expect(fixture.texts, equals: ["a", "b"])
        let id = try outbox.add(OutboxMessage(text: "c"))
        try await expect(outbox.drain(deadline: 0).map(\.id), equals: [id])
    }

    @Test("BEY-13: start ends a drain, which then does not stop the outbox")
    func startDuringDrain() async throws {
        let fixture = OutboxFixture()
        fixture.answers(503, 204)
        let outbox = try fixture.outbox()
        let id = try outbox.add(OutboxMessage(text: "a"))
        async let left = outbox.drain(deadline: 600)
        await expect(eventually { (try? outbox.entries.first?.error) != nil })
        try outbox.start()
        try await expect(left.map(\.id), equals: [id])
        try outbox.add(OutboxMessage(text: "b"), lane: "b")
        await expect(
            eventually {
                fixture.clock.advance(by: 1)
                return fixture.count("entries") == 0
            }
        )
        try await outbox.drain(deadline: 0)
    }

    @Test("BEY-13: what depends on a dead letter that is removed is never sent")
    func removedDependency() async throws {
        let fixture = OutboxFixture()
        fixture.answers(503, 422, 204)
        let queue = NetworkQueue()
        let outbox = try fixture.outbox(queue: queue)
        // It holds up the dependent's lane.
        try outbox.add(OutboxMessage(text: "held up"), lane: "a")
        try outbox.start()
        await expect(eventually { (try? outbox.entries.first?.error) != nil })
        // Nothing can come after what is a dead letter already.
        queue.isSuspended = true
        let root = try outbox.add(OutboxMessage(text: "root"), lane: "b")
        let next = try outbox.add(OutboxMessage(text: "next"), lane: "a", after: [root])
        queue.isSuspended = false
        await expect(eventually { fixture.count("dead") == 1 })
        try outbox.remove(root)
        try expect(outbox.deadLetters.map(\.id), equals: [next])
        try expect(outbox.deadLetters.first?.error?.code, equals: .dependencyFailed)
        try await expect(outbox.drain(deadline: 0).count, equals: 1)
        expect(fixture.texts, equals: ["held up", "root"])
    }

    @Test("BEY-13: what depends on a dead letter that another process makes an entry again waits for that")
    func revivedDependency() async throws {
        let fixture = OutboxFixture()
        fixture.answers(503, 422, 204)
        let queue = NetworkQueue()
        let (outbox, other) = (try fixture.outbox(queue: queue), try fixture.outbox())
        // It holds up the dependent's lane.
        let held = try outbox.add(OutboxMessage(text: "held up"), lane: "a")
        try outbox.start()
        await expect(eventually { (try? outbox.entries.first?.error) != nil })
        // Nothing can come after what is a dead letter already.
        queue.isSuspended = true
        let root = try outbox.add(OutboxMessage(text: "root"), lane: "b")
        try outbox.add(OutboxMessage(text: "next"), lane: "a", after: [root])
        queue.isSuspended = false
        await expect(eventually { fixture.count("dead") == 1 })
        try other.retry(root)
        // Before the outbox looks for changes by others.
        try outbox.retry(held)
        // The clock stands still: it does not look for them meanwhile either.
        await expect(eventually { fixture.count("entries") == 0 })
        // The two lanes go on in either order.
        expect(fixture.texts.prefix(2), equals: ["held up", "root"])
        expect(fixture.texts.dropFirst(2).dropLast().sorted(), equals: ["held up", "root"])
        expect(fixture.texts.last == "next" && fixture.texts.count == 5)
        try await outbox.drain(deadline: 0)
    }

    @Test("BEY-3, BEY-13: a drain in a task that is cancelled already sends nothing")
    func drainCancelledAlready() async throws {
        let fixture = OutboxFixture()
        let outbox = try fixture.outbox()
        let ids = try (0..<40).map { try outbox.add(OutboxMessage(text: "\($0)"), lane: "\($0)") }
        let left = try await Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await outbox.drain(deadline: 60)
        }.value
        expect(left.map(\.id) == ids && fixture.texts.isEmpty)
    }

    @Test("BEY-13: retry has an entry that waits after a failure tried at once")
    func retryNow() async throws {
        let fixture = OutboxFixture()
        fixture.answers(503, 204)
        let outbox = try fixture.outbox()
        let id = try outbox.add(OutboxMessage(text: "a"))
        try outbox.start()
        await expect(eventually { (try? outbox.entries.first?.error) != nil })
        try outbox.retry(id)
        // Without an advance of the clock.
        await expect(eventually { fixture.count("entries") == 0 })
        try await outbox.drain(deadline: 0)
    }

    @Test("BEY-13: a file is found by its place in the body, when its path has changed since it was added")
    func movedFiles() async throws {
        struct Relative: APIRequest, Codable {
            typealias Item = Void
            nonisolated(unsafe) static var folder = ""  // Changed while no job runs.
            var api: String { "photos" }
            var method: NetworkService.Method { .post }
            var body: RequestBody? { .file(URL(fileURLWithPath: Self.folder + "/photo.png")) }
        }
        let fixture = OutboxFixture()
        let outbox = try fixture.outbox()
        outbox.register(Relative.self, name: "relative")
        Relative.folder = fixture.directory.path
        try Data("pixels".utf8).write(to: fixture.directory.appendingPathComponent("photo.png"))
        try outbox.add(Relative())
        Relative.folder = "/elsewhere"
        try await expect(outbox.drain(deadline: 60).isEmpty)
        expect(fixture.transport.requests.map(\.body), equals: [Data("pixels".utf8)])
        expect(fixture.count("dead"), equals: 0)
    }
}
