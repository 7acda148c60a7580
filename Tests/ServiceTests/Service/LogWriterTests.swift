import Dispatch
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("LogWriter", .timeLimit(.minutes(10)))
struct LogWriterTests {
    private func settle(_ writer: LogWriter) async {
        await withCheckedContinuation { continuation in writer.settle { continuation.resume() } }
    }

    @Test("DIA-2: a pipe that nobody reads delays nothing; what finds no room is dropped and counted")
    func blocked() async throws {
        let pipe = Pipe()
        let descriptor = pipe.fileHandleForWriting.fileDescriptor
        let writer = LogWriter { LogWriter.write($0.text, to: descriptor) }
        let filler = String(repeating: "x", count: 100)
        let count = 30_000
        // None of these waits for the pipe, which holds a small part of them.
        for number in 1...count { writer.add(.info) { "\(number) \(filler)" } }

        let reader = pipe.fileHandleForReading.fileDescriptor
        let reading = Task {
            await withCheckedContinuation { (continuation: CheckedContinuation<Data?, Never>) in
                // Not on the threads of tasks, which must not block.
                DispatchQueue.global().async {
                    continuation.resume(returning: try? FileHandle(fileDescriptor: reader).readToEnd())
                }
            }
        }
        await settle(writer)
        try pipe.fileHandleForWriting.close()
        let text = String(decoding: try #require(await reading.value), as: UTF8.self)
        withExtendedLifetime(pipe) {}
        var (numbers, droppedCount) = ([Int](), 0)
        for line in text.split(separator: "\n") {
            let number = try #require(line.split(separator: " ").first.flatMap { Int($0) })
            if line.hasSuffix("lines of the log were dropped") {
                droppedCount += number
            } else {
                numbers.append(number)
            }
        }
        expect(numbers.count + droppedCount == count && droppedCount > 0)
        expect(numbers.count * filler.utf8.count <= LogWriter.maximumLoad + 1_000_000)
        expect(numbers == numbers.sorted() && numbers.first == 1)
    }

    @Test("DIA-2: a closed pipe stops nothing, also not by its signal")
    func closed() async throws {
        let pipe = Pipe()
        let descriptor = pipe.fileHandleForWriting.fileDescriptor
        try pipe.fileHandleForReading.close()
        let results = Locked<[Bool]>([])
        let writer = LogWriter { line in
            let isWritten = LogWriter.write(line.text, to: descriptor)
            results.withLock { $0.append(isWritten) }
            return isWritten
        }
        for _ in 1...3 {
            writer.add(.info) { "a" }
            await settle(writer)
        }
        expect(results.withLock { $0 }.allSatisfy { !$0 } && results.withLock { $0 }.count >= 3)
        try pipe.fileHandleForWriting.close()
    }

    @Test("DIA-2: the number of the lines that could not be written comes before the next one that can")
    func report() async {
        let isBroken = Locked(true)
        let lines = Locked<[String]>([])
        let writer = LogWriter { level, text in
            guard !isBroken.withLock({ $0 }) else { return false }
            lines.withLock { $0.append("\(level) \(text)") }
            return true
        }
        for number in 1...5 {
            writer.add(.debug) { "\(number)" }
            await settle(writer)
        }
        isBroken.exchange(false)
        writer.add(.info) { "6" }
        await settle(writer)
        expect(lines.withLock { $0 }, equals: ["error 5 lines of the log were dropped", "info 6"])
    }

    @Test("DIA-2: a line is made when its event is told, and cut where it is long")
    func line() async {
        let lines = Locked<[String]>([])
        let writer = LogWriter { line in
            lines.withLock { $0.append(line.text) }
            return true
        }
        let text = Locked("é")
        writer.add(.info) { text.withLock { $0 } }
        text.exchange(String(repeating: "é", count: 1_000_000))
        writer.add(.info) { text.withLock { $0 } }
        await settle(writer)
        expect(lines.withLock { $0 }.first, equals: "é")
        let last = lines.withLock { $0 }.last ?? ""
        expect(last.utf8.count <= LogWriter.maximumLine + 3 && last.hasSuffix("…"), "\(last.utf8.count)")
    }

    #if os(Linux) || os(macOS)
    /// Runs a script, whose `$1` is Quickstart.
    private func run(_ script: String, _ arguments: [String] = [], in folder: URL) async throws {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            // Not on the threads of tasks, which must not block.
            DispatchQueue.global().async {
                continuation.resume(
                    with: Result {
                        try Command.runScript(script, [BuiltProgram.url("Quickstart").path] + arguments, in: folder)
                    }
                )
            }
        }
    }

    @Test(
        "DIA-1, DIA-2: EASYNETWORK_LOG is a level, in any case; of another value it tells, and logs nothing",
        arguments: [
            ("debug", ["debug", "info", "error"]), ("info", ["info", "error"]), ("error", ["error"]),
            ("ERROR", ["error"]), ("heads", ["debug", "info", "error"]), ("Bodies:20", ["debug", "info", "error"]),
            ("all", ["unknown"]), ("bodies:x", ["unknown"]), ("info:20", ["unknown"]), ("", []),
        ]
    )
    func levels(value: String, levels: [String]) async throws {
        let folder = TestFolder()
        // Nothing else of the program goes there.
        try await run(#"EASYNETWORK_LOG=$2 "$1" 2>log"#, [value], in: folder.url)
        let text = String(decoding: try #require(folder.data("log")), as: UTF8.self)
        let words = text.split(separator: "\n").filter { !$0.hasPrefix("  ") }.map {
            $0.split(separator: " ").dropFirst().first ?? $0
        }
        expect(Set(words.map(String.init)), equals: Set(levels), "\(text)")
        let isDetailed = ["heads", "bodies:20"].contains(value.lowercased())
        expect(text.lowercased().contains("\n  < content-"), equals: isDetailed, "\(text)")
        expect(text.contains("\n  <\n  < "), equals: value.hasPrefix("Bodies"), "\(text)")
    }
    #endif

    #if os(Linux)
    @Test("DIA-2: EASYNETWORK_LOG on a full device does not stop the program")
    func fullDevice() async throws {
        try await run(#"EASYNETWORK_LOG=debug "$1" 2>/dev/full"#, in: FileManager.default.temporaryDirectory)
    }
    #endif
}
