#if os(Linux) || os(macOS)
import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import EasyNetworkOutbox
@testable import TestSupport

/// Kills programs that fill and deliver an outbox, `OUTBOX_KILLS` times; without this environment variable, a few
/// times.
@Suite("An outbox whose programs are killed", .serialized, .timeLimit(.minutes(20)))
struct OutboxKillTests {
    private static let lives = ProcessInfo.processInfo.environment["OUTBOX_KILLS"].flatMap(Int.init) ?? 6

    /// Like the type of the program, with the same name on disk.
    private struct Numbered: APIRequest, Codable {
        typealias Item = Void
        let number: Int
        let lane: String
        let file: URL?
        var api: String { "\(lane)/\(number)" }
        var method: NetworkService.Method { .post }
        var body: RequestBody? { file.map { .file($0) } }
    }

    private struct Added {
        var number: Int
        var id: String
        var lane: String
        var dependency: Int

        init?(_ line: String) {
            let parts = line.split(separator: " ").map(String.init)
            guard parts.count == 4, let number = Int(parts[0]), let dependency = Int(parts[3]) else { return nil }
            (self.number, id, lane, self.dependency) = (number, parts[1], parts[2], dependency)
        }
    }

    private struct Received {
        var keys: Set<String> = []
        /// The place among all first deliveries.
        var first = 0
        /// The place of the first one that the server accepted among all answers.
        var accepted: Int?
        var isRefused = false
        var hasWrongBody = false
    }

    private struct Server {
        var random: SeededGenerator
        var isCalm = false
        var answerCount = 0
        var received: [Int: Received] = [:]

        mutating func answer(to request: MockRequest) -> MockResponse {
            answerCount += 1
            let number = request.path.split(separator: "/").last.flatMap { Int($0) } ?? 0
            let body = String(decoding: request.body, as: UTF8.self)
            let chance = isCalm ? 4 : Int.random(in: 0..<80, using: &random)
            var one = received[number] ?? Received(first: answerCount)
            one.keys.insert(request.headers["Idempotency-Key"] ?? "")
            if !body.isEmpty, body != "file of \(number)" { one.hasWrongBody = true }
            if chance == 2 { one.isRefused = true }
            if chance > 2, one.accepted == nil { one.accepted = answerCount }
            received[number] = one
            switch chance {
            case 0: return .status(503)
            case 1: return .status(503, headers: ["Retry-After": "1"])
            case 2: return .status(422)
            // It has acted, and its answer is lost.
            case 3: return .fault(.reset)
            default: return .status(204)
            }
        }
    }

    @Test("BEY-13: whatever was added reaches the server with one key and in order, though its programs are killed")
    func kills() async throws {
        let seed = UInt64.random(in: 0...UInt64.max)
        var generator = SeededGenerator(seed: seed)
        let folder = TestFolder()
        let directory = folder.url.appendingPathComponent("outbox")
        let mock = try MockServer()
        let server = Locked(Server(random: SeededGenerator(seed: seed)))
        mock.route("POST", "*") { request in server.withLock { $0.answer(to: request) } }

        var added: [Int: Added] = [:]
        var removed: Set<Int> = []
        var life = 0
        while life < Self.lives {
            // Up to three at a time: one of them delivers what all add.
            let count = Int.random(in: 1...3, using: &generator)
            let programs = (0..<count).map { index in
                let first = life * 1_000_000 + index * 100_000 + 1
                let program = [
                    "outbox", directory.path, "\(generator.next())", "\(first)", mock.baseURL.absoluteString,
                ]
                return (program, Int.random(in: 0..<4_000, using: &generator), generator.next())
            }
            life += count
            for line in try await KilledProgram.lines(of: programs, pause: 0...4_000_000) {
                if let number = line.split(separator: " ").last.flatMap({ Int($0) }), line.hasPrefix("removed") {
                    removed.insert(number)
                    continue
                }
                let one = try #require(Added(line), "\(line), seed \(seed)")
                added[one.number] = one
            }
        }
        server.withLock { $0.isCalm = true }
        let reached = server.withLock { $0.received.count }
        let host = HostConfiguration(baseURL: mock.baseURL) { $0.random = { 0 } }
        let outbox = try Outbox(directory: directory, queue: NetworkQueue(), service: EasyNetworkService(host))
        outbox.register(Numbered.self, name: "numbered")
        let deadCount = try outbox.deadLetters.count
        for entry in try outbox.deadLetters { try outbox.retry(entry.id) }
        let left = try await outbox.drain(deadline: 600)
        expect(left.isEmpty, "seed \(seed)")
        for name in ["entries", "dead", "errors", "tries", "outputs", "uploads", "tmp"] {
            let found = try FileManager.default.contentsOfDirectory(atPath: directory.path + "/" + name)
            // This outbox has a folder for what it writes.
            expect(found.count, equals: (name == "tmp" ? 1 : 0), "\(name), seed \(seed)")
        }

        let received = server.withLock { $0.received }
        print("\(life) lives, \(added.count) entries, \(reached) in time, \(deadCount) dead letters; seed \(seed)")
        for one in added.values where received[one.number] != nil || !removed.contains(one.number) {
            let found = try #require(received[one.number], "\(one), seed \(seed)")
            expect(found.keys, equals: [one.id], "\(one), seed \(seed)")
            expect(found.accepted != nil || removed.contains(one.number), "\(one), seed \(seed)")
            if one.dependency > 0 {
                let dependency = try #require(received[one.dependency]?.accepted)
                expect(dependency < found.first, "\(one), seed \(seed)")
            }
        }
        expect(received.values.allSatisfy { $0.keys.count == 1 && !$0.hasWrongBody }, "seed \(seed)")
        // A dead letter before it was sent: those behind it in its lane went on.
        func wasOvertaken(_ one: Added) -> Bool {
            guard let dependency = added[one.dependency] else { return false }
            return received[dependency.number]?.isRefused == true || wasOvertaken(dependency)
        }
        for (lane, ones) in Dictionary(grouping: added.values.filter { !wasOvertaken($0) }, by: \.lane) {
            let firsts = ones.sorted { $0.number < $1.number }.compactMap { received[$0.number]?.first }
            expect(firsts, equals: firsts.sorted(), "lane \(lane), seed \(seed)")
        }
    }
}
#endif
