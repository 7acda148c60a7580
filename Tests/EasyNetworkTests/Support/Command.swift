#if os(Linux) || os(macOS)
import Foundation

/// Programs of the machine that tests need.
enum Command {
    /// What a program wrote before it ended with another status than 0.
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// Where the program is: in `PATH`, or in a folder for servers, which is in the `PATH` of administrators only.
    static func find(_ name: String) -> URL? {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
        let folders = path.split(separator: ":").map(String.init)
        return (folders + ["/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin"]).lazy
            .map { URL(fileURLWithPath: $0).appendingPathComponent(name) }
            .first { FileManager.default.isExecutableFile(atPath: $0.path) }
    }

    /// Runs a shell script to its end, which blocks the calling thread; it stops at the first command that fails.
    ///
    /// - Parameters:
    ///   - arguments: what it knows as `$1`, `$2`, …
    ///   - folder: where it runs.
    /// - Throws: ``Failure`` with what it wrote, when its status is not 0.
    static func runScript(_ script: String, _ arguments: [String], in folder: URL) throws {
        let output = Pipe()
        let shell = URL(fileURLWithPath: "/bin/sh")
        let words = ["-eu", "-c", script, "sh"] + arguments
        let process = try ChildProcess(shell, words, in: folder, output: output.fileHandleForWriting)
        try output.fileHandleForWriting.close()
        let text = String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
        let status = process.wait()
        guard status == 0 else {
            throw Failure(description: "status \(status.map(String.init) ?? "of a signal"): \(text)")
        }
    }
}
#endif
