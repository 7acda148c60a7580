import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import EasyNetworkOutbox

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
                #expect(error.code == .cannotWriteFile)
                #expect(error.localizedDescription.contains(fixture.directory.path))
                #expect(fixture.count("entries") == 1 && fixture.count("tmp") == 0)
            }
            step += 1
        }
        // Link, sync, write, sync, sync, rename, sync.
        #expect(step == 7)
        #expect(try outbox.entries.first?.id == first && outbox.entries.count == 2)
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
        #expect(#expect(throws: NetworkError.self) { try outbox.remove(waiting) }?.code == .cannotWriteFile)
        #expect(try outbox.entries.map(\.id) == [waiting])
        fixture.files.fail(0..<1)
        #expect(#expect(throws: NetworkError.self) { try outbox.retry(dead) }?.code == .cannotWriteFile)
        fixture.files.fail(0..<1)
        #expect(#expect(throws: NetworkError.self) { try outbox.remove(dead) }?.code == .cannotWriteFile)
        #expect(try outbox.deadLetters.map(\.id) == [dead] && outbox.deadLetters[0].error?.statusCode == 422)

        try outbox.retry(dead)
        try outbox.remove(waiting)
        #expect(try outbox.entries.map(\.id) == [dead] && outbox.deadLetters.isEmpty)
        #expect(fixture.count("tmp") == 0 && fixture.count("errors") == 0)
    }

    @Test(
        "BEY-13: when an entry cannot be moved, that is told; a refused one is sent again, a delivered one only removed",
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
        #expect(error.code == .cannotWriteFile)
        #expect(fixture.count("entries") == 1 && fixture.count("dead") == 0 && fixture.count("errors") == 0)
        #expect(
            await eventually {
                fixture.clock.advance(by: 1)
                return fixture.count("entries") == 0
            }
        )
        try await outbox.drain(deadline: 0)
        #expect(fixture.texts == (status == 204 ? ["a"] : ["a", "a"]) && Set(fixture.keys) == [id.uuidString])
        #expect(try outbox.deadLetters.map(\.error?.statusCode) == (status == 204 ? [] : [422]))
        #expect(fixture.count("tmp") == 0)
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
            for index in whole.indices {
                var other = whole
                other[index] ^= 1
                for damaged in [whole.prefix(index), other] {
                    try damaged.write(to: file)
                    let error = #expect(throws: NetworkError.self) { try outbox.folder.read(name) }
                    #expect(error?.code == .cannotParseResponse, "byte \(index)")
                }
            }
            try FileManager.default.removeItem(at: file)
            let error = #expect(throws: NetworkError.self) { try outbox.folder.read(name) }
            #expect(error?.code == (name.type == "photo" ? .cannotParseResponse : .cancelled))
        }
    }

    @Test("BEY-13: a directory that cannot be made or locked is an error of that call")
    func noDirectory() throws {
        let fixture = OutboxFixture()
        _ = try fixture.outbox()
        let file = fixture.directory.appendingPathComponent("file")
        try Data().write(to: file)
        let error = #expect(throws: NetworkError.self) { try Outbox(directory: file.appendingPathComponent("outbox")) }
        #expect(error?.code == .cannotWriteFile)
        // A directory in the place of the lock.
        let outbox = try fixture.outbox()
        let lock = fixture.directory.appendingPathComponent("lock")
        try FileManager.default.createDirectory(at: lock, withIntermediateDirectories: false)
        #expect(#expect(throws: NetworkError.self) { try outbox.start() }?.code == .cannotWriteFile)
        let id = try outbox.add(OutboxMessage(text: "a"))
        try FileManager.default.removeItem(at: lock)
        #expect(try outbox.entries.map(\.id) == [id])
    }
}
