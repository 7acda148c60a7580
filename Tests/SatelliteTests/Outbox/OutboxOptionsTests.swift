import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import EasyNetworkOutbox
@testable import TestSupport

@Suite("What an entry of an outbox asks for", .timeLimit(.minutes(10)))
struct OutboxOptionsTests {
    private let fixture = OutboxFixture()

    /// The texts that were sent, when there are so many.
    private func sent(_ count: Int) async -> [String] {
        await expect(eventually { fixture.transport.requests.count >= count })
        return fixture.texts
    }

    /// Moves the clock on, when the outbox waits for it.
    private func advance(by seconds: TimeInterval) async {
        await fixture.clock.waitForTimers(1)
        fixture.clock.advance(by: seconds)
    }

    // MARK: - Time

    @Test("BEY-19: an entry is not sent before its date, which does not hold up a drain")
    func notBefore() async throws {
        let outbox = try fixture.outbox()
        let date = fixture.clock.date + 100
        let id = try outbox.add(OutboxMessage(text: "later"), options: OutboxOptions(notBefore: date))
        try outbox.add(OutboxMessage(text: "now"))
        let left = try await outbox.drain(deadline: 60)
        expect(left.map(\.id) == [id] && left.map(\.nextTry) == [date] && fixture.texts == ["now"])
        expect(left.allSatisfy { $0.attemptCount == 0 && $0.error == nil })
        try outbox.start()
        await advance(by: 99)
        for _ in 1...3 { await fixture.checkForChanges() }
        await expect(sent(2), equals: ["now", "later"])
        expect(fixture.clock.date >= date)
        await expect(eventually { fixture.count("entries") == 0 })
        try await outbox.drain(deadline: 0)
    }

    @Test("BEY-19: an entry before its date holds up its lane, and its age counts from then on")
    func lane() async throws {
        let outbox = try fixture.outbox(maximumAge: 50)
        let options = OutboxOptions(notBefore: fixture.clock.date + 100)
        try outbox.add(OutboxMessage(text: "first"), lane: "a", options: options)
        try outbox.add(
            OutboxMessage(text: "second"),
            lane: "a",
            options: OutboxOptions(notBefore: fixture.clock.date + 60)
        )
        try await outbox.drain(deadline: 60)
        expect(fixture.texts.isEmpty)
        try outbox.start()
        await advance(by: 101)
        await expect(sent(2), equals: ["first", "second"])
        try await outbox.drain(deadline: 60)
    }

    @Test("BEY-19: periods that are over are left out; the window is at the end of each")
    func periods() {
        let begin = Date(timeIntervalSince1970: 1_000)
        func next(_ sentAt: TimeInterval) -> TimeInterval {
            OutboxOptions.nextPeriod(after: begin, 100, sentAt: Date(timeIntervalSince1970: sentAt))
                .timeIntervalSince1970
        }
        expect(next(1_000) == 1_100 && next(1_099) == 1_100 && next(1_100) == 1_200 && next(1_350) == 1_400)
        expect(next(500) == 600 && next(450) == 500, "the clock was set back")
        let options = OutboxOptions(period: 100, flex: 30)
        expect(options.due(begin, at: begin).timeIntervalSince1970, equals: 1_070)
        expect(OutboxOptions(period: 100).due(begin, at: begin), equals: begin)
        expect(OutboxOptions().due(begin, at: .distantPast), equals: begin)
        // Whatever the clock was: no wait is longer, and a clock that is set back by a little has nothing sent twice.
        for seconds in [-1e9, -1_001, -100, -1, 0, 30, 69, 70, 99, 100, 1_001, 1e9] {
            let now = begin + seconds
            let next = OutboxOptions.nextPeriod(after: begin, 100, sentAt: now)
            expect(next > now && next <= now + 100 && options.due(begin, at: now) <= now + 180)
            expect(options.due(next, at: now - 5) == next + 70 && options.due(next, at: now - 1e9) <= now - 1e9 + 70)
        }
    }

    @Test("BEY-19: work that was sent while the clock was ahead waits for one period, and is sent once in each")
    func clockAhead() async throws {
        for flex in [nil, 40.0] {
            let fixture = OutboxFixture()
            let (ahead, options) = (ManualClock(), OutboxOptions(unique: .keep("sync"), period: 100, flex: flex))
            // Years ahead, and by less than a period.
            for seconds in [1e9 + 30, 130] {
                ahead.advance(by: seconds)
                let outbox = try fixture.outbox { $0.clock = ahead }
                try outbox.add(OutboxMessage(text: "sync"), options: options)
                try await outbox.drain(deadline: 60)
            }
            let outbox = try fixture.outbox()
            try outbox.add(OutboxMessage(text: "again"), options: options)
            let next = try #require(try outbox.entries.first)
            let now = fixture.clock.date
            expect(next.nextTry ?? now <= now + 100, "\(String(describing: next.nextTry))")
            let count = fixture.texts.count
            for _ in 1...40 {
                fixture.clock.advance(by: 10)
                try await fixture.outbox().drain(deadline: 60)
            }
            expect([4, 5].contains(fixture.texts.count - count) && !fixture.texts.contains("again"))
        }
    }

    @Test("BEY-13: what was added before the clock was set is not too old, and what failed while it was ahead is tried")
    func clockNotSet() async throws {
        let (early, ahead) = (ManualClock(now: 9 - fixture.clock.date.timeIntervalSince1970), ManualClock(now: 1e9))
        try fixture.outbox { $0.clock = early }.add(OutboxMessage(text: "1970"))
        fixture.answers(503, 204)
        let outbox = try fixture.outbox { $0.clock = ahead }
        let events = outbox.events
        try outbox.start()
        for await case .failed in events { break }
        try await outbox.drain(deadline: 0)
        let later = try fixture.outbox(maximumAge: 60)
        let next = try #require(try later.entries.first?.nextTry)
        expect(next <= fixture.clock.date + 2)
        try later.start()
        let isSent = await eventually {
            fixture.clock.advance(by: 1)
            return fixture.texts == ["1970", "1970"] && fixture.count("entries") == 0
        }
        expect(isSent && fixture.count("dead") == 0)
        try await later.drain(deadline: 0)
    }

    @Test("BEY-19: periodic work is sent once in each period, each time under another key, and by the next process")
    func periodic() async throws {
        let start = fixture.clock.date
        let options = OutboxOptions(unique: .keep("sync"), period: 100, flex: 40, tags: ["background"])
        let first = try fixture.outbox().add(OutboxMessage(text: "sync"), options: options)
        for round in 1...4 {
            let outbox = try fixture.outbox()
            // As at each launch.
            let id = try outbox.add(OutboxMessage(text: "another"), options: options)
            let left = try await outbox.drain(deadline: 60)
            expect(left.map(\.id) == [id] && left.map(\.options.tags) == [["background"]])
            expect(left.first?.nextTry, equals: start + Double(round - 1) * 100 + 60)
            expect(fixture.transport.requests.count == round - 1 && (id == first) == (round == 1))
            try outbox.start()
            await advance(by: round == 1 ? 61 : 100)
            await expect(sent(round).allSatisfy { $0 == "sync" })
            try await outbox.drain(deadline: 60)
        }
        expect(Set(fixture.keys).count == 4 && fixture.keys.first == first.uuidString)
        let outbox = try fixture.outbox()
        try outbox.remove(outbox.entries(tag: "background").map(\.id))
        expect(fixture.count("entries") == 0 && fixture.count("dead") == 0)
        expect(fixture.count("unique") == 0 && fixture.count("tries") == 0)
    }

    @Test(
        "BEY-19: periodic work that is refused is a dead letter and ends; a retry goes on; another may take its place"
    )
    func periodicRefused() async throws {
        fixture.answers(422)
        let outbox = try fixture.outbox()
        let options = OutboxOptions(unique: .keep("sync"), period: 100)
        let id = try outbox.add(OutboxMessage(text: "a"), options: options)
        try await expect(outbox.drain(deadline: 60).isEmpty)
        try expect(outbox.deadLetters.map(\.id), equals: [id])
        fixture.answers(204)
        try outbox.retry(id)
        try expect(outbox.add(OutboxMessage(text: "b"), options: options), equals: id)
        let next = try #require(try await outbox.drain(deadline: 60).first)
        expect(next.id != id && next.nextTry == fixture.clock.date + 100)
        let other = OutboxOptions(unique: .replace("sync"), period: 1_000)
        let replacing = try outbox.add(OutboxMessage(text: "c"), options: other)
        try expect(outbox.entries.map(\.id), equals: [replacing])
        try await expect(outbox.drain(deadline: 60).map(\.options.period), equals: [1_000])
        expect(fixture.texts, equals: ["a", "a", "c"])
    }

    @Test("BEY-19: a period whose next one was added before a kill is not added twice, and keeps its files")
    func periodAfterKill() async throws {
        let photo = fixture.directory.appendingPathComponent("photo.png")
        let options = OutboxOptions(unique: .keep("sync"), period: 100)
        let outbox = try fixture.outbox()
        try Data("pixels".utf8).write(to: photo)
        let id = try outbox.add(OutboxPhoto(file: photo), options: options)
        try FileManager.default.removeItem(at: photo)
        // Of the entry, which is there again after the kill.
        let folder = fixture.directory.appendingPathComponent("entries")
        let name = try #require(FileManager.default.contentsOfDirectory(atPath: folder.path).first)
        let copy = fixture.directory.appendingPathComponent("copy")
        try FileManager.default.copyItem(at: folder.appendingPathComponent(name), to: copy)
        let next = try await outbox.drain(deadline: 60)
        try FileManager.default.moveItem(at: copy, to: folder.appendingPathComponent(name))
        try await expect(fixture.outbox().drain(deadline: 60).map(\.id), equals: next.map(\.id))
        expect(fixture.keys, equals: [id.uuidString, id.uuidString])
        fixture.clock.advance(by: 100)
        try await expect(fixture.outbox().drain(deadline: 60).map(\.id) != next.map(\.id))
        expect(fixture.transport.requests.map(\.body), equals: Array(repeating: Data("pixels".utf8), count: 3))
    }

    @Test("BEY-19: a dead letter whose row was begun again is sent once more, and begins no second row")
    func oneRow() async throws {
        fixture.answers(422, 204)
        let outbox = try fixture.outbox()
        let options = OutboxOptions(unique: .keep("sync"), period: 100)
        let dead = try outbox.add(OutboxMessage(text: "old"), options: options)
        try await outbox.drain(deadline: 60)
        let new = try outbox.add(OutboxMessage(text: "new"), options: options)
        try outbox.retry(dead)
        expect(new != dead && fixture.count("entries") == 2)
        try await expect(outbox.drain(deadline: 60).count, equals: 1)
        expect(fixture.texts.sorted(), equals: ["new", "old", "old"])
    }

    @Test("BEY-19: a drain beside the process that delivers does not wait for what has its time")
    func drainBeside() async throws {
        let (outbox, other) = (try fixture.outbox(), try fixture.outbox())
        try outbox.start()
        let id = try outbox.add(OutboxMessage(text: "a"), options: OutboxOptions(notBefore: fixture.clock.date + 100))
        try await expect(other.drain(deadline: 60).map(\.id), equals: [id])
        expect(fixture.clock.now, equals: 0)
        try await outbox.drain(deadline: 0)
    }

    // MARK: - Names and tags

    @Test("BEY-19: of a name the old one is kept, replaced, or comes first")
    func unique() async throws {
        let (outbox, other) = (try fixture.outbox(), try fixture.outbox())
        func add(_ text: String, _ unique: OutboxOptions.Unique, to outbox: Outbox) throws -> UUID {
            try outbox.add(OutboxMessage(text: text), options: OutboxOptions(unique: unique))
        }
        let first = try add("1", .keep("a"), to: outbox)
        try expect(add("2", .keep("a"), to: other), equals: first)
        try expect(add("3", .keep("b"), to: other) != first)
        try expect(add("4", .keep(""), to: outbox) != first)
        let replacing = try add("5", .replace("a"), to: other)
        try expect(!outbox.entries.map(\.id).contains(first))
        try expect(add("6", .append("a"), to: outbox) != replacing)
        let last = try add("7", .append("a"), to: other)
        try expect(outbox.entries.map(\.options.unique?.name), equals: ["b", "", "a", "a", "a"])
        try await expect(outbox.drain(deadline: 60).isEmpty)
        expect(
            fixture.texts.filter { Int($0) ?? 0 > 4 } == ["5", "6", "7"]
                && Set(fixture.texts) == ["3", "4", "5", "6", "7"]
        )
        // All have left.
        try expect(add("8", .keep("a"), to: outbox) != last)
    }

    @Test("BEY-13, BEY-19: a full outbox takes an entry that replaces another one, and no other")
    func replaceWhenFull() async throws {
        let outbox = try fixture.outbox(maximumCount: 2)
        func add(_ text: String, _ unique: OutboxOptions.Unique) throws {
            try outbox.add(OutboxMessage(text: text), options: OutboxOptions(unique: unique))
        }
        try add("old", .replace("position"))
        try add("other", .keep("sync"))
        try add("newer", .replace("position"))
        // Another process with another limit.
        try fixture.outbox().add(OutboxMessage(text: "more"))
        try add("newest", .replace("position"))
        for unique in [OutboxOptions.Unique.replace("none"), .append("position")] {
            expect(#expect(throws: NetworkError.self) { try add("too many", unique) }?.code, equals: .refused)
        }
        try await expect(outbox.drain(deadline: 60).isEmpty)
        expect(fixture.texts.sorted(), equals: ["more", "newest", "other"])
    }

    @Test("BEY-19: many that want to be the only one at once, in several outboxes, are one")
    func uniqueAtOnce() async throws {
        let outboxes = try (0..<4).map { _ in try fixture.outbox() }
        let options = OutboxOptions(unique: .keep("a"))
        let ids = try await withThrowingTaskGroup(of: UUID.self) { group in
            for number in 0..<16 {
                group.addTask {
                    try await outboxes[number % 4].addInBackground(OutboxMessage(text: "\(number)"), options: options)
                }
            }
            return try await group.reduce(into: Set<UUID>()) { $0.insert($1) }
        }
        expect(ids.count == 1 && fixture.count("entries") == 1)
    }

    @Test("BEY-19: where the name cannot be kept, there is no entry", arguments: 0..<12, [false, true])
    func uniqueOnFullDisk(step: Int, isFull: Bool) async throws {
        let outbox = try fixture.outbox()
        let options = OutboxOptions(unique: .replace("a"))
        let old = try outbox.add(OutboxMessage(text: "old"), options: options)
        fixture.files.fail(step..<(isFull ? .max : step + 1))
        var ids = [old]
        do throws(NetworkError) {
            ids = [try outbox.add(OutboxMessage(text: "new"), options: options)]
        } catch {
            expect(error.code, equals: .cannotWriteFile)
        }
        fixture.files.fail(0..<0)
        try expect(outbox.entries.map(\.id), equals: ids)
        if !isFull {
            // The old one still has its name.
            ids = [try outbox.add(OutboxMessage(text: "newer"), options: options)]
            try expect(outbox.entries.map(\.id), equals: ids)
        }
        try await outbox.drain(deadline: 60)
        expect(fixture.keys, equals: ids.map(\.uuidString))
    }

    @Test("BEY-19: a replaced entry that is being sent is cancelled")
    func replacedInFlight() async throws {
        let gate = Locked(true)
        fixture.transport.route("POST", "*") { _ in gate.withLock { $0 } ? .fault(.stall) : .status(204) }
        let outbox = try fixture.outbox()
        let options = OutboxOptions(unique: .replace("a"))
        try outbox.add(OutboxMessage(text: "old"), options: options)
        try outbox.start()
        await expect(sent(1), equals: ["old"])
        gate.exchange(false)
        try outbox.add(OutboxMessage(text: "new"), options: options)
        await expect(eventually { fixture.count("entries") == 0 })
        expect(fixture.texts == ["old", "new"] && fixture.count("dead") == 0)
        try await outbox.drain(deadline: 0)
    }

    @Test("BEY-19: entries are listed, watched and removed by tag, with those of their type")
    func tags() async throws {
        let outbox = try fixture.outbox()
        outbox.register(OutboxMessage.self, name: "message", options: OutboxOptions(tags: ["all"]))
        let events = outbox.events(tag: "one")
        let one = try outbox.add(OutboxMessage(text: "1"), options: OutboxOptions(tags: ["one"]))
        let two = try outbox.add(OutboxMessage(text: "2"), options: OutboxOptions(tags: ["two"]))
        try expect(outbox.entries(tag: "all").map(\.id) == [one, two] && outbox.entries(tag: "one").map(\.id) == [one])
        try expect(outbox.entries(tag: "none").isEmpty)
        // Another outbox reads the tags from the disk.
        let other = try fixture.outbox()
        let otherEvents = other.events(tag: "one")
        try await other.drain(deadline: 60)
        let three = try outbox.add(OutboxMessage(text: "3"), options: OutboxOptions(tags: ["one"]))
        try outbox.remove(outbox.entries(tag: "one").map(\.id))
        func texts(_ events: AsyncStream<OutboxEvent>, _ count: Int) async -> [String] {
            var texts: [String] = []
            for await event in events {
                texts.append(
                    "\(event)".prefix { $0 != "(" } + (event.id == one ? " 1" : event.id == three ? " 3" : " ?")
                )
                if texts.count == count { break }
            }
            return texts
        }
        await expect(texts(events, 3), equals: ["added 1", "added 3", "removed 3"])
        await expect(texts(otherEvents, 2), equals: ["sending 1", "delivered 1"])
    }

    // MARK: - Failures

    @Test("BEY-19: tries, the last error, and the next try are kept for the next process, which waits for it")
    func tries() async throws {
        fixture.answers(503)
        let outbox = try fixture.outbox()
        let events = outbox.events
        let id = try outbox.add(OutboxMessage(text: "a"), options: OutboxOptions(retryDelays: 10...15))
        let added = fixture.clock.date
        try outbox.start()
        for await case .failed in events { break }
        try await outbox.drain(deadline: 0)
        let next = try fixture.outbox()
        var entry = try #require(next.entries.first)
        expect(entry.attemptCount == 1 && entry.error?.statusCode == 503 && entry.addedAt == added)
        expect(entry.nextTry, equals: added + 10)
        try next.start()
        // It has judged when the entry is due, which may not have begun to wait.
        await expect(eventually { next.state.withLock { $0.entries[id]?.attemptCount } == 1 })
        for _ in 1...3 { await fixture.checkForChanges() }
        expect(fixture.transport.requests.count, equals: 1)
        let nextEvents = next.events
        await advance(by: 7)
        for await case .failed in nextEvents { break }
        expect(fixture.transport.requests.count, equals: 2)
        entry = try #require(next.entries.first)
        expect(entry.attemptCount == 2 && entry.nextTry == fixture.clock.date + 15)
        try await next.drain(deadline: 0)
        // Retried, it does not wait.
        fixture.answers(204)
        let last = try fixture.outbox()
        try last.retry(id)
        try await expect(last.drain(deadline: 60).isEmpty)
        expect(fixture.count("tries"), equals: 0)
    }

    @Test("BEY-19: a next try by a clock that was a day ahead is waited for no longer than its delay")
    func otherClock() async throws {
        fixture.answers(503)
        fixture.clock.advance(by: 86_400)
        let outbox = try fixture.outbox()
        let events = outbox.events
        try outbox.add(OutboxMessage(text: "a"))
        try outbox.start()
        for await case .failed in events { break }
        try await outbox.drain(deadline: 0)
        fixture.answers(204)
        let (right, transport) = (ManualClock(), fixture.transport)
        let next = try fixture.outbox { $0.clock = right }
        try next.start()
        // At most 60,000 looks, a second each: less than the day.
        await expect(
            eventually {
                right.advance(by: 1)
                return transport.requests.count == 2
            }
        )
        try await next.drain(deadline: 0)
    }

    @Test("BEY-19: so many failures, counted over processes, make a dead letter, whose retry counts anew")
    func attempts() async throws {
        fixture.answers(503)
        let id = try fixture.outbox().add(OutboxMessage(text: "a"), options: OutboxOptions(maximumAttemptCount: 3))
        for number in 1...2 {
            let outbox = try fixture.outbox()
            let events = outbox.events
            try outbox.retry(id)
            try outbox.start()
            for await case .failed in events { break }
            try expect(outbox.entries.map(\.attemptCount), equals: [number])
            try await outbox.drain(deadline: 0)
        }
        let outbox = try fixture.outbox()
        try outbox.retry(id)
        try await expect(outbox.drain(deadline: 60).isEmpty)
        let letter = try #require(outbox.deadLetters.first)
        expect(letter.id == id && letter.error?.statusCode == 503 && fixture.keys.count == 3)
        fixture.answers(503, 204)
        try outbox.retry(id)
        let events = outbox.events
        try outbox.start()
        for await case .failed in events { break }
        try outbox.retry(id)
        await expect(eventually { fixture.count("entries") == 0 })
        expect(fixture.count("dead") == 0 && fixture.keys.count == 5)
        try await outbox.drain(deadline: 0)
    }

    @Test("BEY-19: a head that keeps failing lets those behind it pass after so many tries")
    func yields() async throws {
        fixture.transport.route("POST", "*") { request in
            .status((request.json() as? [String: String])?["text"] == "bad" ? 503 : 204)
        }
        let outbox = try fixture.outbox()
        let events = outbox.events
        let bad = try outbox.add(OutboxMessage(text: "bad"), lane: "a", options: OutboxOptions(yieldsAfter: 2))
        for text in ["1", "2"] { try outbox.add(OutboxMessage(text: text), lane: "a") }
        try outbox.start()
        for await case .failed in events { break }
        expect(fixture.texts, equals: ["bad"])
        try outbox.retry(bad)
        await expect(sent(4), equals: ["bad", "bad", "1", "2"])
        await expect(eventually { fixture.count("entries") == 1 })
        try expect(outbox.entries.map(\.id), equals: [bad])
        try await outbox.drain(deadline: 0)
    }

    // MARK: - Conditions

    @Test("BEY-19: an entry waits for its conditions, and is sent when they are met", arguments: [0, 1, 2])
    func conditions(number: Int) async throws {
        let network = NetworkReachability(number == 0 ? .unreachable : .reachable)
        network.isExpensive = number == 1
        network.isConstrained = number == 2
        let condition = OutboxOptions.Condition.allCases[number]
        let outbox = try fixture.outbox { $0.reachability = network }
        // The host waits for the network itself.
        let options = OutboxOptions(conditions: [condition])
        try outbox.add(OutboxMessage(text: "waits"), options: options)
        if number > 0 { try outbox.add(OutboxMessage(text: "goes")) }
        try await expect(outbox.drain(deadline: 60).count, equals: 1)
        expect(fixture.texts, equals: (number > 0 ? ["goes"] : []))
        try outbox.start()
        for _ in 1...3 { await fixture.checkForChanges() }
        expect(fixture.texts.count, equals: (number > 0 ? 1 : 0))
        (network.status, network.isExpensive, network.isConstrained) = (.reachable, false, false)
        await expect(eventually { fixture.count("entries") == 0 })
        expect(fixture.texts.last, equals: "waits")
        try await outbox.drain(deadline: 0)
    }

    @Test("BEY-19: a change of the network right after the outbox has begun to listen is heard")
    func changeAtOnce() async throws {
        let network = NetworkReachability(.unreachable)
        let outbox = try fixture.outbox()
        outbox.observe(network)
        network.status = .reachable
        await expect(eventually { outbox.state.withLock { $0.networkHasChanged } })
    }

    // MARK: - Items

    struct Upload: APIRequest, Codable {
        struct Item: Codable { let number: Int }
        var api: String { "uploads" }
        var method: NetworkService.Method { .post }
    }

    @Test(
        "BEY-19: an item is handed over before its entry leaves, and what is made of it reaches those that come after"
    )
    func items() async throws {
        fixture.transport.route("POST", "*") { request in
            request.path.hasSuffix("uploads") ? .json(["number": 7]) : .status(204)
        }
        let handed = Locked<[Int]>([])
        let entries = fixture.directory.path + "/entries"
        func open() throws -> Outbox {
            let outbox = try fixture.outbox()
            outbox.register(
                Upload.self,
                name: "upload",
                delivered: { _, item in
                    let names = try? FileManager.default.contentsOfDirectory(atPath: entries)
                    expect(names?.isEmpty, equals: false)
                    handed.withLock { $0.append(item.number) }
                    return Data("\(item.number)".utf8)
                }
            )
            outbox.register(
                OutboxMessage.self,
                name: "message",
                prepare: { request, outputs in
                    let texts = outputs.map { $0.map { String(decoding: $0, as: UTF8.self) } ?? "nothing" }
                    return OutboxMessage(text: request.text + " " + texts.joined(separator: " and "))
                }
            )
            return outbox
        }
        let outbox = try open()
        let upload = try outbox.add(Upload())
        let plain = try outbox.add(OutboxMessage(text: "plain"))
        let date = fixture.clock.date + 10
        let share = try outbox.add(
            OutboxMessage(text: "shares"),
            after: [plain, upload],
            options: OutboxOptions(notBefore: date)
        )
        try await expect(outbox.drain(deadline: 60).map(\.id), equals: [share])
        expect(handed.withLock { $0 } == [7] && fixture.count("outputs") == 1)
        // Also for one that is added when the upload has left.
        try outbox.add(OutboxMessage(text: "late"), after: [upload])
        try await expect(outbox.drain(deadline: 60).count, equals: 1)
        fixture.clock.advance(by: 10)
        let other = try open()
        try expect((other.request(of: #require(other.entries.first)) as? OutboxMessage)?.text, equals: "shares")
        try await expect(other.drain(deadline: 60).isEmpty)
        expect(fixture.texts == ["plain", "late 7", "shares nothing and 7"] && fixture.count("outputs") == 1)
        // Its own is kept for a day.
        let output = fixture.directory.appendingPathComponent("outputs/\(upload)")
        let old = [FileAttributeKey.modificationDate: Date() - 90_000]
        try FileManager.default.setAttributes(old, ofItemAtPath: output.path)
        let later = OutboxOptions(notBefore: fixture.clock.date + 10)
        let last = try open().add(OutboxMessage(text: "last"), after: [upload], options: later)
        try await open().drain(deadline: 60)
        expect(fixture.count("outputs"), equals: 1, "one that waits wants it")
        try open().remove(last)
        try await open().drain(deadline: 60)
        expect(fixture.count("outputs"), equals: 0)
    }

    @Test("BEY-19: a dead letter has the words of the error that prepare threw; one that was sent, its attempts")
    func failures() async throws {
        let outbox = try fixture.outbox()
        outbox.register(
            OutboxMessage.self,
            name: "message",
            prepare: { request, _ in
                if request.text == "refused" { throw NetworkError(code: .timedOut, message: "no picture") }
                return request
            }
        )
        let first = try outbox.add(OutboxMessage(text: "first"))
        try outbox.add(OutboxMessage(text: "refused"), after: [first])
        try await outbox.drain(deadline: 60)
        fixture.answers(422)
        try outbox.add(OutboxMessage(text: "sent"))
        try await outbox.drain(deadline: 60)
        let errors = try fixture.outbox().deadLetters.map(\.error)
        expect(errors.map { $0?.code }, equals: [.invalidRequest, .unacceptableStatus])
        expect(errors.first??.message == "no picture" && errors.map { $0?.attempts } == [0, 1])
    }

    @Test("BEY-19: a later period has no inputs")
    func inputsOfPeriods() async throws {
        let outputs = Locked<[Int]>([])
        let outbox = try fixture.outbox()
        outbox.register(
            OutboxMessage.self,
            name: "message",
            prepare: { request, inputs in
                outputs.withLock { $0.append(inputs.count) }
                return request
            }
        )
        let first = try outbox.add(OutboxMessage(text: "first"))
        let options = OutboxOptions(unique: .keep("sync"), period: 100)
        try outbox.add(OutboxMessage(text: "sync"), after: [first], options: options)
        try await outbox.drain(deadline: 60)
        fixture.clock.advance(by: 100)
        try await expect(outbox.drain(deadline: 60).count, equals: 1)
        expect(fixture.texts == ["first", "sync", "sync"] && outputs.withLock { $0 } == [1])
    }

    // MARK: - Many, and bad input

    @Test("BEY-19: many are retried and removed at once, with those that depend on them")
    func many() async throws {
        fixture.answers(422)
        let outbox = try fixture.outbox()
        let ids = try (0..<6).map { try outbox.add(OutboxMessage(text: "\($0)")) }
        let dependent = try outbox.add(OutboxMessage(text: "after"), after: [ids[0], ids[5]])
        try await outbox.drain(deadline: 60)
        try expect(Set(outbox.deadLetters.map(\.id)), equals: Set(ids + [dependent]))
        try outbox.remove(ids[1...2])
        try outbox.retry(ids)
        try expect(outbox.entries.map(\.id), equals: [ids[0], ids[3], ids[4], ids[5], dependent])
        try outbox.remove([ids[3], ids[4], UUID()])
        try outbox.remove([UUID]())
        fixture.answers(204)
        try await expect(outbox.drain(deadline: 60).isEmpty && fixture.count("dead") == 0)
        expect(fixture.texts.last, equals: "after")
    }

    @Test("BEY-19: in the background an entry is added as well, and by a cancelled task not")
    func background() async throws {
        let outbox = try fixture.outbox()
        let id = try await outbox.addInBackground(OutboxMessage(text: "a"), lane: "l", priority: .high)
        try expect(outbox.entries.map { [$0.lane] } == [["l"]] && outbox.entries.map(\.id) == [id])
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await outbox.addInBackground(OutboxMessage(text: "b"))
        }
        let error = await #expect(throws: NetworkError.self) { try await task.value }
        expect(error?.code == .cancelled && fixture.count("entries") == 1)
    }

    @Test(
        "BEY-19: options that cannot be meant are refused, and say why",
        arguments: [
            (OutboxOptions(period: 100), "unique"), (OutboxOptions(unique: .append("a"), period: 100), "unique"),
            (OutboxOptions(unique: .keep("a"), period: 1), "60"), (OutboxOptions(flex: 10), "flex"),
            (OutboxOptions(unique: .keep("a"), period: .nan), "60"), (OutboxOptions(retryDelays: 0...1), "retryDelays"),
            (OutboxOptions(unique: .keep("a"), period: 1e300), "60"),
            (OutboxOptions(retryDelays: 1...1e300), "retryDelays"),
            (OutboxOptions(unique: .keep("a"), period: 100, flex: 101), "flex"),
            (OutboxOptions(maximumAttemptCount: 0), "maximumAttemptCount"),
            (OutboxOptions(yieldsAfter: 0), "yieldsAfter"),
            (OutboxOptions(unique: .keep(String(repeating: "é", count: 40))), "too long"),
        ]
    )
    func badOptions(_ options: OutboxOptions, _ word: String) throws {
        let outbox = try fixture.outbox()
        let error = #expect(throws: NetworkError.self) { try outbox.add(OutboxMessage(text: "a"), options: options) }
        expect(error?.code == .invalidRequest && error?.message?.contains(word) == true, "\(error?.message ?? "")")
        expect(fixture.count("entries"), equals: 0)
    }

    @Test("BEY-19: a date that is none is refused")
    func badDate() throws {
        let outbox = try fixture.outbox()
        for seconds in [Double.nan, .infinity, 1e300, -1e300] {
            // Not in an argument: Foundation stops the program when such a date is described.
            let date = Date(timeIntervalSinceReferenceDate: seconds)
            let error = #expect(throws: NetworkError.self) {
                try outbox.add(OutboxMessage(text: "a"), options: OutboxOptions(notBefore: date))
            }
            expect(error?.code, equals: .invalidRequest)
        }
    }

    @Test("BEY-19: what has a period has no lane")
    func periodInLane() throws {
        let options = OutboxOptions(unique: .keep("a"), period: 100)
        let outbox = try fixture.outbox()
        let error = #expect(throws: NetworkError.self) {
            try outbox.add(OutboxMessage(text: "a"), lane: "a", options: options)
        }
        expect(error?.message?.contains("lane"), equals: true)
    }

    @Test("BEY-19: names of files of the version before mean one lane, in order")
    func oldNames() {
        let text = "0000000000000001.00000000-0000-0000-0000-000000000001.2d.message."
        let name = OutboxName(text)
        expect(name?.lane == "" && name?.hasDependencies == true && name?.hasOptions == false && name?.text == text)
    }
}
