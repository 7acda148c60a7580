#if os(Linux) || os(macOS)
import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

/// Kills a program that records traffic, `RECORDING_KILLS` times; without this environment variable, a few times.
@Suite("A recording whose program is killed", .serialized, .timeLimit(.minutes(10)))
struct RecordingKillTests {
    private static let lives = ProcessInfo.processInfo.environment["RECORDING_KILLS"].flatMap(Int.init) ?? 4

    private struct Get: APIRequest {
        typealias Item = NetworkResponse
        var api: String
    }

    @Test("DIA-1: after a kill at any time each entry that was written is in the file and is replayed")
    func kills() async throws {
        let folder = TestFolder()
        let file = folder.url.appendingPathComponent("traffic.har")
        var (entryCount, cutCount) = (0, 0)
        for life in 1...UInt64(Self.lives) {
            var generator = SeededGenerator(seed: life)
            let bytes = Int.random(in: 1..<60, using: &generator)
            let program = ["recording", file.path, "\(life)"]
            let said = try await KilledProgram.lines(of: program, bytes: bytes, seed: life)
            let written = try #require(said.last.flatMap { Int($0) })

            let data = try Data(contentsOf: file)
            var lines = String(decoding: data, as: UTF8.self).split(separator: "\n").dropFirst()
            let isWhole = (try? JSONSerialization.jsonObject(with: data)) != nil
            // The end of the document, or an entry that is cut.
            lines.removeLast()
            let paths = try lines.map { line in
                let json = try JSONSerialization.jsonObject(with: Data(line.trimmingPrefix(",").utf8))
                let request = (json as? [String: Any])?["request"] as? [String: Any]
                return try #require((request?["url"] as? String).flatMap { URL(string: $0) }?.path)
            }
            expect(paths.count >= written, "life \(life)")
            let numbers = paths.map { $0.split(separator: "/").first.flatMap { Int($0) } }
            expect(numbers, equals: paths.indices.map { $0 + 1 }, "life \(life)")
            entryCount += paths.count
            if !isWhole { cutCount += 1 }

            let transport = try InMemoryTransport(har: file)
            let host = HostConfiguration(baseURL: URL(string: "http://localhost"), transport: transport)
            if let path = paths.last {
                let response = try await EasyNetworkService(host).send(Get(api: String(path.dropFirst())))
                expect(response.body.count, equals: path.split(separator: "/").last.flatMap { Int($0) }, "life \(life)")
            }
        }
        print("\(Self.lives) lives, \(entryCount) entries, killed in the middle of one \(cutCount) times")
    }
}
#endif
