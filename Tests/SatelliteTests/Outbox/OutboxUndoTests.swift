import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import EasyNetworkOutbox
@testable import TestSupport

/// Groups whose undo requests are kept by an outbox. A copy of the directory shows what the next process would find if
/// this one were killed now.
@Suite("Undone by an outbox", .timeLimit(.minutes(10)))
struct OutboxUndoTests {
    private let server = BookingServer()
    private let host: HostConfiguration
    private let queue = NetworkQueue()
    private let folder = TestFolder()
    private let files = FailingOutboxFiles()

    init() {
        host = server.host { $0.random = { 0 } }
    }

    private var directory: URL { folder.url.appendingPathComponent("outbox") }

    private func outbox(in directory: URL? = nil, _ host: HostConfiguration? = nil) throws -> Outbox {
        let folder = try OutboxFolder(directory ?? self.directory, files: files)
        let outbox = Outbox(folder, NetworkQueue(), EasyNetworkService(host ?? self.host), activity: nil)
        outbox.register(CancelBooking.self, name: "cancel")
        return outbox
    }

    private func booking(_ name: String) -> RequestOperation<Book> { RequestOperation(undoable: name, host) }

    /// A job that does not end by itself, and opens the gate when it runs.
    private func stuck(_ gate: Gate) -> TestJob { TestJob { _ in gate.open() } }

    /// What the next process finds.
    private func copy(_ name: String = "copy") throws -> URL {
        let copy = folder.url.appendingPathComponent(name)
        try FileManager.default.copyItem(at: directory, to: copy)
        return copy
    }

    /// The files of all journals.
    private func kept(in directory: URL? = nil) -> [String] {
        let root = (directory ?? self.directory).path + "/undo"
        let journals = (try? FileManager.default.contentsOfDirectory(atPath: root)) ?? []
        return journals.flatMap { (try? FileManager.default.contentsOfDirectory(atPath: root + "/" + $0)) ?? [] }
    }

    @Test("OPQ-14: the undo request is on disk before its step is sent, and none is left of a whole chain")
    func whole() async throws {
        let outbox = try outbox()
        let seen = Locked<[Int]>([])
        server.transport.route("POST", "/bookings/watched") { _ in
            seen.withLock { $0.append(kept().count) }
            return .json(["name": "watched", "key": "k"], status: 201)
        }
        let chain = ChainOperation([booking("a"), booking("watched")])
        chain.undoneBy = outbox
        queue.addOperation(chain)
        await chain.ended()
        expect(chain.error == nil)
        expect(seen.withLock { $0 }, equals: [2])
        expect(kept().isEmpty)
        expect(try await outbox.drain(deadline: 10).isEmpty && server.cancelled.isEmpty)
    }

    @Test("OPQ-14: after a kill, the outbox undoes what is not whole, last first, and continues nothing")
    func relaunch() async throws {
        let gate = Gate()
        let chain = ChainOperation([booking("a"), booking("b"), stuck(gate), booking("c")])
        chain.undoneBy = try outbox()
        queue.addOperation(chain)
        await gate.opened()
        // Another outbox of this process, or another process, leaves the journal of a running group alone.
        expect(try await outbox().drain(deadline: 10).isEmpty && server.cancelled.isEmpty)
        let next = try outbox(in: copy())
        expect(try await next.drain(deadline: 10).isEmpty)
        expect(server.cancelled, equals: ["b", "a"])
        expect(server.booked, equals: ["a", "b"])
        expect(try next.deadLetters.isEmpty && kept(in: folder.url.appendingPathComponent("copy")).isEmpty)
        // What this process does afterwards has the same keys.
        chain.cancel()
        await chain.ended()
        expect(Set(server.cancelKeys).count == 2 && server.cancelKeys.count == 4)
        expect(kept().isEmpty)
    }

    @Test("OPQ-14: a kill while a step is sent undoes it by its key")
    func relaunchWhileSending() async throws {
        let gate = Gate()
        let transport = SteeredTransport()
        let a = RequestOperation(undoable: "a", transport.host())
        let chain = ChainOperation([a])
        chain.undoneBy = try outbox()
        queue.addOperation(chain)
        let exchange = try #require(await transport.exchange(0))
        let key = exchange.request.headers["Idempotency-Key"] ?? ""
        _ = try await outbox(in: copy()).drain(deadline: 10)
        expect(server.transport.requests.map(\.path), equals: ["/cancellations/\(key)"])
        exchange.head(422)
        exchange.end()
        await chain.ended()
        gate.open()
        expect(chain.error?.statusCode == 422 && kept().isEmpty)
    }

    @Test("OPQ-14: types that are not registered, or no request for an unknown outcome, end the group at once")
    func unregistered() async throws {
        let outbox = try Outbox(directory: directory, queue: NetworkQueue(), service: EasyNetworkService(host))
        let chain = ChainOperation([ChainOperation([booking("a")])])
        chain.undoneBy = outbox
        queue.addOperation(chain)
        await chain.ended()
        expect(chain.error?.code, equals: .invalidRequest)
        expect(chain.error?.message?.contains("register this type with the outbox") == true)
        let b = booking("b")
        b.undo = { _ in nil }
        outbox.register(CancelBooking.self, name: "cancel")
        let batch = BatchOperation([b])
        batch.undoneBy = outbox
        queue.addOperation(batch)
        await batch.ended()
        expect(batch.error?.code, equals: .invalidRequest)
        // One that is added later ends when it begins.
        let late = booking("c")
        late.undo = { _ in nil }
        let other = ChainOperation([booking("a")])
        other.undoneBy = outbox
        other.addOperation(late)
        queue.addOperation(other)
        await other.ended()
        expect(late.error?.code == .invalidRequest && other.error?.code == .invalidRequest)
        expect(server.booked == ["a"] && server.cancelled == ["a"] && kept().isEmpty)
    }

    @Test("OPQ-14: an undo request whose body contains a file ends the group", arguments: [false, true])
    func fileBody(isForm: Bool) async throws {
        let outbox = try outbox()
        outbox.register(OutboxPhoto.self, name: "photo")
        let file = folder.write("text", to: "file")
        let a = booking("a")
        a.undo = { _ in OutboxPhoto(file: file, isForm: isForm) }
        let chain = ChainOperation([a])
        chain.undoneBy = outbox
        queue.addOperation(chain)
        await chain.ended()
        expect(chain.error?.code, equals: .invalidRequest)
        expect(chain.error?.message?.contains(file.path) == true)
        expect(server.booked.isEmpty && kept().isEmpty)
    }

    @Test("OPQ-14: an undo that fails is left to the outbox, with its key, and does not hold up the others")
    func handedOver() async throws {
        let outbox = try outbox()
        server.answer("undo of b", 503, 503, 503, 503)
        server.answer("c", 422)
        let chain = ChainOperation([booking("a"), booking("b"), booking("c")])
        chain.undoneBy = outbox
        queue.addOperation(chain)
        await chain.ended()
        expect(chain.error?.undoFailures.map(\.statusCode), equals: [503])
        expect(server.cancelled == ["a"] && kept().isEmpty)
        let entry = try #require(try outbox.entries.first)
        expect(entry.type, equals: "cancel")
        try await chain.undo()
        server.answer("undo of b")
        expect(try await outbox.drain(deadline: 10).isEmpty)
        expect(server.cancelled, equals: ["a", "b"])
        expect(server.cancelKeys.last, equals: entry.id.uuidString)
        expect(Set(server.cancelKeys).count, equals: 2)
    }

    @Test("OPQ-14: after a kill, an undo that fails does not hold up the others")
    func relaunchWithFailure() async throws {
        let gate = Gate()
        let chain = ChainOperation([booking("a"), booking("b"), stuck(gate)])
        chain.undoneBy = try outbox()
        queue.addOperation(chain)
        await gate.opened()
        server.answer("undo of b", Array(repeating: 503, count: 1_000_000))
        let outbox = try outbox(in: copy())
        try outbox.start()
        await expect(eventually { server.cancelled == ["a"] })
        server.answer("undo of b")
        expect(try await outbox.drain(deadline: 60).isEmpty)
        expect(server.cancelled, equals: ["a", "b"])
        chain.cancel()
        await chain.ended()
    }

    @Test("OPQ-14: a chain finished from outside is whole on disk before its callbacks", arguments: [false, true])
    func finishedFromOutside(isFull: Bool) async throws {
        let (gate, left) = (Gate(), Locked<[String]?>(nil))
        let chain = ChainOperation([booking("a"), stuck(gate)])
        chain.undoneBy = try outbox()
        chain.success = { _ in left.exchange(kept()) }
        queue.addOperation(chain)
        await gate.opened()
        expect(kept().count, equals: 1)
        if isFull { files.fail(0..<1_000) }
        chain.finish()
        await chain.ended()
        expect(chain.error == nil && left.withLock { $0 } == [])
        files.fail(0..<0)
        expect(try await outbox(in: copy()).drain(deadline: 10).isEmpty && server.cancelled.isEmpty)
    }

    @Test("OPQ-14: without room on the disk nothing is sent; a chain that cannot be recorded as whole is undone")
    func fullDisk() async throws {
        let outbox = try outbox()
        let chain = ChainOperation([booking("a")])
        chain.undoneBy = outbox
        files.fail(0..<1_000)
        queue.addOperation(chain)
        await chain.ended()
        expect(chain.error?.code == .cannotWriteFile && server.booked.isEmpty)
        files.fail(0..<0)
        let other = ChainOperation([booking("b")])
        other.undoneBy = outbox
        let files = files
        other.addOperation(BlockNetworkOperation { files.fail(0..<1_000) })
        other.addOperation(BlockNetworkOperation {})
        queue.addOperation(other)
        await other.ended()
        expect(other.error?.code, equals: .cannotWriteFile)
        expect(server.cancelled, equals: ["b"])
    }

    @Test("OPQ-14: undo() of a whole chain survives a kill, and so does a chain within a chain")
    func askedAndKilled() async throws {
        let transport = SteeredTransport()
        let inner = ChainOperation([booking("a"), booking("b")])
        let c = RequestOperation(undoable: "c", transport.host())
        let chain = ChainOperation([inner, c])
        chain.undoneBy = try outbox()
        queue.addOperation(chain)
        let exchange = try #require(await transport.exchange(0))
        // The inner chain is whole, but not the outer one.
        _ = try await outbox(in: copy("first")).drain(deadline: 10)
        expect(server.cancelled, equals: ["unknown", "b", "a"])
        exchange.head(200, ["Content-Type": "application/json"])
        exchange.body(#"{"name": "c", "key": "c"}"#)
        exchange.end()
        await chain.ended()
        expect(chain.error == nil && kept().isEmpty)
        let asked = Task { try? await chain.undo() }
        let undo = try #require(await transport.exchange(1))
        expect(kept().count, equals: 3)
        _ = try await outbox(in: copy("second")).drain(deadline: 10)
        expect(server.cancelled.suffix(3), equals: ["unknown", "b", "a"])
        undo.head(204)
        undo.end()
        await asked.value
        expect(await eventually { kept().isEmpty })
    }

    @Test("OPQ-14: if a full disk cannot store the undo requests again, undo() undoes nothing and says so")
    func askedOnFullDisk() async throws {
        let outbox = try outbox()
        let chain = ChainOperation([booking("a"), booking("b")])
        chain.undoneBy = outbox
        queue.addOperation(chain)
        await chain.ended()
        for _ in 0..<2 {
            files.fail(0..<1_000)
            let error = await #expect(throws: NetworkError.self) { try await chain.undo() }
            expect(error?.code == .cannotWriteFile && error?.undoFailures.count == 1)
            expect(error?.message?.hasPrefix("the undo requests cannot be stored again: ") == true)
            expect(server.cancelled.isEmpty && kept().isEmpty && chain.error == nil)
        }
        files.fail(0..<0)
        let seen = Locked<[Int]>([])
        files.willRename.exchange { _ in seen.withLock { $0.append(kept().count) } }
        try await chain.undo()
        expect(server.cancelled, equals: ["b", "a"])
        // The undo requests were on disk again before the first one was sent.
        expect(seen.withLock { $0.count }, equals: 1)
    }

    @Test("OPQ-14: a chain that is cancelled while it becomes whole says if its undo requests were not on disk")
    func cancelledAtCommitOnFullDisk() async throws {
        let chain = ChainOperation([booking("a")])
        chain.undoneBy = try outbox()
        let files = files
        files.willRename.exchange { [weak chain] path in
            // The rename that takes the journal away, and its sync, still succeed.
            guard path.contains("/undo/"), chain?.error == nil else { return }
            chain?.cancel()
            files.fail(2..<1_000)
        }
        queue.addOperation(chain)
        await chain.ended()
        expect(chain.error?.code, equals: .cancelled)
        expect(chain.error?.undoFailures.map(\.code), equals: [.cannotWriteFile])
        expect(server.cancelled, equals: ["a"])
    }

    @Test("OPQ-14: a job is stored by the group that has an outbox, and refused if two have one")
    func severalGroups() async throws {
        let (outbox, gate) = (try outbox(), Gate())
        let a = booking("a")
        let groups = [ChainOperation([a]), ChainOperation([a, stuck(gate)])]
        groups[1].undoneBy = outbox
        queue.addOperations(groups)
        await gate.opened()
        expect(groups[0].isFinished || kept().count == 1)
        await groups[0].ended()
        expect(kept().count, equals: 1)
        groups[1].cancel()
        await groups[1].ended()
        expect(server.cancelled == ["a"] && kept().isEmpty)
        let b = booking("b")
        let others = [ChainOperation([b]), ChainOperation([b])]
        for group in others { group.undoneBy = outbox }
        queue.addOperations(others)
        for group in others { await group.ended() }
        expect(b.error?.code == .invalidRequest && server.booked == ["a"])
        expect(b.error?.message?.hasPrefix("undoneBy must be set for only one ") == true)
    }

    @Test("OPQ-14: a damaged journal loses no other undo, and becomes a dead letter")
    func damaged() async throws {
        let gate = Gate()
        let chain = ChainOperation([booking("a"), booking("b"), stuck(gate)])
        chain.undoneBy = try outbox()
        queue.addOperation(chain)
        await gate.opened()
        let copy = try copy()
        let journal = try #require(try FileManager.default.contentsOfDirectory(atPath: copy.path + "/undo").first)
        let root = copy.path + "/undo/" + journal + "/"
        let file = try #require(kept(in: copy).max())
        try Data("nothing".utf8).write(to: URL(fileURLWithPath: root + file))
        try Data("stranger".utf8).write(to: URL(fileURLWithPath: root + "stranger"))
        // A folder that is not a journal.
        try FileManager.default.createDirectory(atPath: copy.path + "/undo/other", withIntermediateDirectories: false)
        let next = try outbox(in: copy)
        expect(try await next.drain(deadline: 10).isEmpty)
        expect(server.cancelled, equals: ["a"])
        expect(try next.deadLetters.map(\.error?.code), equals: [.cannotParseResponse])
        expect(FileManager.default.fileExists(atPath: root + "stranger"))
        chain.cancel()
        await chain.ended()
    }
}
