#if os(Linux) || os(macOS)
import Dispatch
import EasyNetworkTesting
import Foundation
import Programs
import Testing

/// A program that writes without end, which a test kills.
enum KilledProgram {
    /// Runs the program `Writer` and kills it after some bytes of output.
    ///
    /// - Parameters:
    ///   - pause: the number of steps of a generator before the kill: the program never writes right after a line, but
    ///     within the next steps.
    /// - Returns: the complete lines of the output.
    static func lines(
        of arguments: [String],
        bytes: Int,
        pause: ClosedRange<Int> = 0...400_000,
        seed: UInt64
    ) async throws -> [String] {
        try await run(arguments) { process, output in
            var said = Data()
            while said.count < bytes {
                let data = output.availableData
                if data.isEmpty { break }
                said.append(data)
            }
            var generator = SeededGenerator(seed: seed)
            for _ in 0..<Int.random(in: pause, using: &generator) { _ = generator.next() }
            process.kill()
            said.append(try output.readToEnd() ?? Data())
            _ = process.wait()
            // The last line may be incomplete.
            let text = String(decoding: said, as: UTF8.self)
            return text.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map(String.init)
        }
    }

    /// Runs several of these programs at once.
    ///
    /// - Returns: the complete lines of the output of all of them.
    static func lines(
        of programs: [(arguments: [String], bytes: Int, seed: UInt64)],
        pause: ClosedRange<Int>
    ) async throws -> [String] {
        try await withThrowingTaskGroup(of: [String].self) { group in
            for (arguments, bytes, seed) in programs {
                group.addTask { try await lines(of: arguments, bytes: bytes, pause: pause, seed: seed) }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
    }

    /// Runs the program `Writer`, and a closure with it and its output.
    static func run<Result: Sendable>(
        _ arguments: [String],
        _ use: @escaping @Sendable (ChildProcess, FileHandle) throws -> Result
    ) async throws -> Result {
        // Not on the threads of tasks, which must not block.
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async {
                continuation.resume(
                    with: Swift.Result {
                        let output = Pipe()
                        let process = try ChildProcess(
                            BuiltProgram.url("Writer"),
                            arguments,
                            output: output.fileHandleForWriting
                        )
                        try output.fileHandleForWriting.close()
                        return try use(process, output.fileHandleForReading)
                    }
                )
            }
        }
    }
}
#endif
