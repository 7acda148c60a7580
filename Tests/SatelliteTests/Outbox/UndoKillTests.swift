#if os(Linux) || os(macOS)
import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import EasyNetworkOutbox
@testable import TestSupport

/// Kills programs that run chains of bookings, `UNDO_KILLS` times; without this environment variable, a few times.
@Suite("Chains whose programs are killed", .serialized, .timeLimit(.minutes(20)))
struct UndoKillTests {
    private static let lives = ProcessInfo.processInfo.environment["UNDO_KILLS"].flatMap(Int.init) ?? 5

    /// Like the type of the program, with the same name on disk.
    private struct Unbook: APIRequest, Codable {
        typealias Item = Void
        let key: String
        var api: String { "cancellations/\(key)" }
        var method: NetworkService.Method { .post }
    }

    private struct Server {
        var random: SeededGenerator
        var isCalm = false
        /// The keys of the bookings, by chain and part.
        var booked: [Int: [Int: String]] = [:]
        var cancelled: Set<String> = []
        var cancellationKeys: [String: Set<String>] = [:]
        var repeatedCount = 0

        mutating func book(_ request: MockRequest) -> MockResponse {
            let parts = request.path.split(separator: "/").compactMap { Int($0) }
            guard parts.count == 2, let key = request.headers["Idempotency-Key"] else { return .status(400) }
            let chance = Int.random(in: 0..<40, using: &random)
            if chance == 0 { return .status(503) }
            // An undo arrived first.
            if chance == 1 || cancelled.contains(key) { return .status(422) }
            if booked[parts[0]]?[parts[1]] != nil { repeatedCount += 1 }
            booked[parts[0], default: [:]][parts[1]] = key
            // The server has acted, and the response is lost.
            return chance == 2 ? .fault(.reset) : .json(["key": key], status: 201)
        }

        mutating func cancel(_ request: MockRequest) -> MockResponse {
            let key = String(request.path.dropFirst("/cancellations/".count))
            let chance = isCalm ? 9 : Int.random(in: 0..<10, using: &random)
            cancellationKeys[key, default: []].insert(request.headers["Idempotency-Key"] ?? "")
            if chance < 2 { return .status(503) }
            cancelled.insert(key)
            return chance == 2 ? .fault(.reset) : .status(204)
        }

        /// The parts of a chain that are still booked.
        func left(of chain: Int) -> Int { (booked[chain] ?? [:]).values.count { !cancelled.contains($0) } }
    }

    @Test("OPQ-14: each booking is a part of a whole chain or undone, though its program is killed")
    func kills() async throws {
        let seed = UInt64.random(in: 0...UInt64.max)
        var generator = SeededGenerator(seed: seed)
        let folder = TestFolder()
        let directory = folder.url.appendingPathComponent("outbox")
        let mock = try MockServer()
        let server = Locked(Server(random: SeededGenerator(seed: seed)))
        mock.route("POST", "/bookings/*") { request in server.withLock { $0.book(request) } }
        mock.route("POST", "/cancellations/*") { request in server.withLock { $0.cancel(request) } }

        var said: [Int: Set<String>] = [:]
        var life = 0
        while life < Self.lives {
            // One of them delivers what the others have left.
            let count = Int.random(in: 1...2, using: &generator)
            let programs = (0..<count).map { index in
                let first = (life + index) * 100_000 + 1
                let program = [
                    "bookings", directory.path, "\(generator.next())", "\(first)", mock.baseURL.absoluteString,
                ]
                return (program, Int.random(in: 0..<400, using: &generator), generator.next())
            }
            life += count
            for line in try await KilledProgram.lines(of: programs, pause: 0...4_000_000) {
                let words = line.split(separator: " ").map(String.init)
                guard words.count == 2, let chain = Int(words[1]) else { continue }
                said[chain, default: []].insert(words[0])
            }
        }
        let before = server.withLock { server in
            server.isCalm = true
            return server.booked.keys.count { chain in ![0, 3].contains(server.left(of: chain)) }
        }
        let host = HostConfiguration(baseURL: mock.baseURL) { $0.random = { 0 } }
        let outbox = try Outbox(directory: directory, queue: NetworkQueue(), service: EasyNetworkService(host))
        outbox.register(Unbook.self, name: "unbook")
        let left = try await outbox.drain(deadline: 600)
        expect(left.isEmpty, "seed \(seed)")
        for name in ["entries", "dead", "errors", "tries", "undo", "tmp"] {
            let found = try FileManager.default.contentsOfDirectory(atPath: directory.path + "/" + name)
            // This outbox has a folder for what it writes.
            expect(found.count, equals: (name == "tmp" ? 1 : 0), "\(name), seed \(seed)")
        }
        let end = server.withLock { $0 }
        let counts = end.booked.keys.map { end.left(of: $0) }
        print(
            "\(life) kills, \(end.booked.count) chains: \(counts.count { $0 == 3 }) whole, \(counts.count { $0 == 0 }) "
                + "undone, \(before) of them after the last kill; seed \(seed)"
        )
        expect(end.repeatedCount, equals: 0, "a booking was sent twice, seed \(seed)")
        for chain in end.booked.keys {
            let left = end.left(of: chain)
            let words = said[chain] ?? []
            expect(left == 0 || left == 3, "\(left) parts of chain \(chain) are left, seed \(seed)")
            if words == ["whole"] { expect(left, equals: 3, "chain \(chain), seed \(seed)") }
            if words == ["undone"] { expect(left, equals: 0, "chain \(chain), seed \(seed)") }
        }
        // Whatever sends it, the undo of a booking has one key.
        expect(end.cancellationKeys.values.allSatisfy { $0.count == 1 && $0 != [""] }, "seed \(seed)")
    }
}
#endif
