#if os(Linux) || os(macOS)
import Dispatch
import EasyNetworkTesting
import Foundation
import Programs
import Testing

@testable import EasyNetwork
@testable import TestSupport

/// Kills the Downloader repeatedly and restarts it until its file is complete. The environment variable
/// `DOWNLOAD_KILLS` sets the number of files for each test; without it the tests do not run.
///
/// Serialized: on Linux, Foundation's `Process.run()` was seen to read foreign data when hundreds of processes start at
/// the same time.
@Suite("A download whose process is killed", .enabled(if: ProcessInfo.processInfo.environment["DOWNLOAD_KILLS"] != nil))
struct DownloadKillTests {
    private static let files = ProcessInfo.processInfo.environment["DOWNLOAD_KILLS"].flatMap(Int.init) ?? 5
    private static let count = 24_000_000

    /// The download of one file by several processes.
    private struct Course {
        let folder = TestFolder()
        let server: MockServer
        let file: RangedFile
        let segments: Int
        var generator: SeededGenerator

        init(seed: UInt64, segments: Int) throws {
            let file = RangedFile(RangedFile.bytes(DownloadKillTests.count, seed: seed))
            server = try MockServer()
            server.route("*", "/file") { file.answer($0) }
            self.file = file
            self.segments = segments
            generator = SeededGenerator(seed: seed)
        }

        var record: ResumeJournal? {
            let journal = folder.names.first { $0.hasSuffix(".journal") }
            return journal.flatMap(folder.data).flatMap { try? JSONDecoder().decode(ResumeJournal.self, from: $0) }
        }

        /// - Returns: Whether the download is complete.
        mutating func live() async throws -> Bool {
            let arguments = [
                "-o", folder.url.path, "--segments", "\(segments)",
                server.baseURL.appendingPathComponent("file").absoluteString,
            ]
            // The limit may exceed the length, so that a kill also hits the final move of the file.
            let limit = Int.random(in: 0..<DownloadKillTests.count * 5 / 4, using: &generator)
            return try await DownloadKillTests.live(arguments, folder, until: limit)
        }
    }

    @Test(
        "TRF-3: killed at any moment, it resumes from its journal, and no byte of that comes again",
        arguments: [1, 3]
    )
    func kills(segments: Int) async throws {
        var lives = 0
        for seed in 1...UInt64(Self.files) {
            var course = try Course(seed: seed, segments: segments)
            var isDone = false
            while !isDone {
                let record = course.record
                let before = course.file.requests.count
                isDone = try await course.live()
                lives += 1
                // This process has replaced the journal; its first requests follow from the previous journal.
                let asked = course.file.ranges.dropFirst(before)
                guard let record, record.segments.contains(where: { $0.count > 0 }) else { continue }
                let missing = record.segments.filter { !$0.isComplete }.map { $0.lower + $0.count }
                let possible = Set(missing.isEmpty ? [Int64(Self.count)] : missing)
                let lowers = asked.map { $0?.dropFirst(6).split(separator: "-").first.flatMap { Int64($0) } }
                let isRest = lowers.allSatisfy { $0.map(possible.contains) ?? false }
                expect(isRest, "seed \(seed), life \(lives): \(lowers)")
            }
            expect(course.folder.data("file"), equals: course.file.data, "seed \(seed)")
            expect(course.folder.names, equals: ["file"], "seed \(seed)")
        }
        print("\(segments) segments: \(Self.files) files in \(lives) lives")
    }

    @Test(
        "TRF-3: after kills, lost connections and a change, the file is one whole state of it",
        arguments: [1, 3]
    )
    func chaos(segments: Int) async throws {
        var lives = 0
        for seed in 1...UInt64(Self.files) {
            var course = try Course(seed: seed, segments: segments)
            let cuts = Locked(SeededGenerator(seed: seed &+ 1_000))
            course.file.change { _, _, response in
                let cut = cuts.withLock { Int.random(in: 0..<Self.count / 2, using: &$0) }
                // Some answers must be whole for the download to complete.
                if cut > 2_000_000 { response.fault = .truncate(after: cut) }
            }
            let other = RangedFile.bytes(Self.count - 1_000_000, seed: seed &+ 500)
            for life in 1... {
                lives += 1
                let isDone = try await course.live()
                if life == 4 { course.file.replace(other, tag: "\"two\"") }
                guard isDone else { continue }
                if life > 4 { break }
                // The download completed before the file changed.
                expect(course.folder.data("file"), equals: RangedFile.bytes(Self.count, seed: seed), "seed \(seed)")
                try FileManager.default.removeItem(at: course.folder.file("file"))
            }
            expect(course.folder.data("file"), equals: other, "seed \(seed)")
            expect(course.folder.names, equals: ["file"], "seed \(seed)")
        }
        print("\(segments) segments, with cuts and a change: \(Self.files) files in \(lives) lives")
    }

    /// Runs the program until its part has that many bytes.
    ///
    /// - Returns: Whether it exited by itself with success.
    private static func live(_ arguments: [String], _ folder: TestFolder, until limit: Int) async throws -> Bool {
        // Runs off the cooperative threads, which must not block.
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async {
                continuation.resume(
                    with: Result {
                        let process = try ChildProcess(BuiltProgram.url("Downloader"), arguments)
                        // Paces the polling of the other process.
                        while process.isRunning, partSize(in: folder) < limit { usleep(100) }
                        process.kill()
                        return process.wait() == 0
                    }
                )
            }
        }
    }

    private static func partSize(in folder: TestFolder) -> Int {
        guard let part = folder.names.first(where: { $0.hasSuffix(".part") }) else { return 0 }
        var found = stat()
        return stat(folder.file(part).path, &found) == 0 ? Int(found.st_size) : 0
    }
}
#endif
