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
        // Not on the threads of tasks, which must not block.
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async {
                continuation.resume(
                    with: Result {
                        let output = Pipe()
                        let process = try ChildProcess(
                            BuiltProgram.url("Writer"),
                            arguments,
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
                        for _ in 0..<Int.random(in: pause, using: &generator) { _ = generator.next() }
                        process.kill()
                        said.append(try output.fileHandleForReading.readToEnd() ?? Data())
                        _ = process.wait()
                        // The last line may be incomplete.
                        let text = String(decoding: said, as: UTF8.self)
                        return text.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map(String.init)
                    }
                )
            }
        }
    }
}
#endif
