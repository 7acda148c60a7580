#if os(Linux) || os(macOS)
import Dispatch
import EasyNetworkTesting
import Foundation
import Programs
import Testing

@testable import EasyNetwork
@testable import EasyNetworkTesting
@testable import TestSupport

/// Kills a program that uploads files, and restarts it until they are complete. The environment variable `UPLOAD_KILLS`
/// sets the number of kills for each test; without it the tests do not run.
@Suite(
    "An upload whose process is killed",
    .serialized,
    .enabled(if: ProcessInfo.processInfo.environment["UPLOAD_KILLS"] != nil)
)
struct UploadKillTests {
    private static let kills = ProcessInfo.processInfo.environment["UPLOAD_KILLS"].flatMap(Int.init) ?? 10
    private static let total = 200_000_000

    /// What the server has got of the files, which are told apart by their lengths.
    private struct Received: Sendable {
        /// The number of bytes of each upload.
        var counts: [Int: Int] = [:]
        var byteCount = 0
        var problems: [String] = []
    }

    @Test(
        "TRF-7: killed at any moment, each file arrives once and whole, and at most a part is sent twice for each kill",
        arguments: UploadFixture.kinds,
        [1, 2, 6]
    )
    func kills(kind: ResumableUpload.Kind, atOnce: Int) async throws {
        var (kills, rounds, lost) = (0, 0, 0)
        var generator = SeededGenerator(seed: UInt64(atOnce))
        let bytes = RangedFile.bytes(Self.total / atOnce)
        while kills < Self.kills {
            rounds += 1
            let folder = TestFolder()
            try FileManager.default.createDirectory(at: folder.file("files"), withIntermediateDirectories: true)
            for number in 0..<atOnce { try bytes.write(to: folder.file("files/\(number)")) }
            let server = try MockServer()
            let received = Locked(Received())
            let uploads = server.routeUploads("/uploads", kind == .tus ? .tus : .http) { id, offset, part in
                let isRight = part.isEmpty || part == bytes[offset..<offset + part.count]
                received.withLock { received in
                    if !isRight || received.counts[id] ?? 0 != offset { received.problems.append("\(id) at \(offset)") }
                    received.counts[id, default: 0] += part.count
                    received.byteCount += part.count
                }
            }
            let url = server.baseURL.appendingPathComponent("uploads").absoluteString
            let arguments = ["upload", folder.url.path, "\(atOnce)", kind.rawValue, url]
            while true {
                let before = received.withLock { $0.byteCount }
                // Some lives end before the first part, others after several.
                let more = Int.random(in: 0...4, using: &generator) * 8_388_608
                let pause = UInt32.random(in: 0..<60_000, using: &generator)
                let (status, lines) = try await live(arguments, pause) {
                    received.withLock { $0.byteCount } >= before + more
                }
                lost += lines.filter { $0.hasPrefix("lost") }.count
                expect(!lines.contains { $0.hasPrefix("failed") }, "\(lines)")
                if status == 0 { break }
                kills += 1
            }
            let (problems, counts) = received.withLock { ($0.problems, $0.counts) }
            expect(problems, equals: [])
            // An upload whose creation was interrupted before the journal had its address is left behind, empty.
            expect(counts.values.sorted(), equals: Array(repeating: bytes.count, count: atOnce))
            expect(uploads.completed.count, equals: atOnce)
            // No part that the server has stored comes again.
            let parts = server.requests.filter { $0.method == "PATCH" }
                .map { "\($0.path) \($0.headers["Upload-Offset"] ?? "") \($0.headers["Upload-Complete"] ?? "")" }
            expect(Set(parts).count, equals: parts.count)
        }
        print("\(kind), \(atOnce) at once: \(kills) kills in \(rounds) rounds; \(lost) lost responses")
    }

    /// Runs the program until a condition holds and a pause has passed, and kills it.
    ///
    /// - Returns: The status, 0 if it exited by itself with success, nil if it was killed, and the lines of its output.
    private func live(
        _ arguments: [String],
        _ pause: UInt32,
        until condition: @escaping @Sendable () -> Bool
    ) async throws -> (Int32?, [String]) {
        try await KilledProgram.run(arguments) { process, output in
            // The pause paces the polling of the other process. Nothing is synchronised by it.
            while process.isRunning, !condition() { usleep(500) }
            // The kill comes at a moment that the seed chooses.
            usleep(pause)
            process.kill()
            let said = try output.readToEnd() ?? Data()
            return (process.wait(), String(decoding: said, as: UTF8.self).split(separator: "\n").map(String.init))
        }
    }
}
#endif
