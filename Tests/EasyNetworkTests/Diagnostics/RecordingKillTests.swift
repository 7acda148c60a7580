#if os(Linux) || os(macOS)
import Dispatch
import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork

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
        let folder = try TemporaryFolder()
        let file = folder.url.appendingPathComponent("traffic.har")
        var (entryCount, cutCount) = (0, 0)
        for life in 1...UInt64(Self.lives) {
            var generator = SeededGenerator(seed: life)
            let bytes = Int.random(in: 1..<60, using: &generator)
            let pause = Int.random(in: 0..<400_000, using: &generator)
            let written = try await Self.live(file, seed: life, bytes: bytes, pause: pause)

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
            #expect(paths.count >= written, "life \(life)")
            let numbers = paths.map { $0.split(separator: "/").first.flatMap { Int($0) } }
            #expect(numbers == paths.indices.map { $0 + 1 }, "life \(life)")
            entryCount += paths.count
            if !isWhole { cutCount += 1 }

            let transport = try InMemoryTransport(har: file)
            let host = HostConfiguration(baseURL: URL(string: "http://localhost"), transport: transport)
            if let path = paths.last {
                let response = try await EasyNetworkService(host).send(Get(api: String(path.dropFirst())))
                #expect(response.body.count == path.split(separator: "/").last.flatMap { Int($0) }, "life \(life)")
            }
        }
        print("\(Self.lives) lives, \(entryCount) entries, killed in the middle of one \(cutCount) times")
    }

    /// Kills the program when it has said that many bytes and a little time has passed.
    ///
    /// - Returns: the number of the entries that it said it has written.
    private static func live(_ file: URL, seed: UInt64, bytes: Int, pause: Int) async throws -> Int {
        // Not on the threads of tasks, which must not block.
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async {
                continuation.resume(
                    with: Result {
                        let output = Pipe()
                        let process = try ChildProcess(
                            BuiltProgram.url("CacheWriter"),
                            [file.path, "\(seed)"],
                            output: output.fileHandleForWriting
                        )
                        try output.fileHandleForWriting.close()
                        var said = Data()
                        while said.count < bytes {
                            let data = output.fileHandleForReading.availableData
                            if data.isEmpty { break }
                            said.append(data)
                        }
                        var generator = SeededGenerator(seed: seed)
                        for _ in 0..<pause { _ = generator.next() }
                        process.kill()
                        said.append(try output.fileHandleForReading.readToEnd() ?? Data())
                        _ = process.wait()
                        // The last line may be incomplete.
                        let lines = String(decoding: said, as: UTF8.self).split(
                            separator: "\n",
                            omittingEmptySubsequences: false
                        )
                        return try #require(lines.dropLast().last.flatMap { Int($0) })
                    }
                )
            }
        }
    }
}
#endif
