#if os(Linux) || os(macOS)
import Foundation

/// The installed programs that tests need.
enum Command {
    /// The output of a program that failed.
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// Finds a program in `PATH` or in folders for servers, which only the `PATH` of administrators has.
    static func find(_ name: String) -> URL? {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
        let folders = path.split(separator: ":").map(String.init)
        return (folders + ["/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin"]).lazy
            .map { URL(fileURLWithPath: $0).appendingPathComponent(name) }
            .first { FileManager.default.isExecutableFile(atPath: $0.path) }
    }

    /// The programs that some tests need and that are not installed. They are reported once on standard error.
    private static let missing: Set<String> = {
        let missing = ["nginx", "openssl", "python3", "curl"].filter { find($0) == nil }
        if !missing.isEmpty {
            let line = "Skipped: the tests that need \(missing.joined(separator: ", ")). To run them: "
            FileHandle.standardError.write(Data((line + "apt-get install nginx-light openssl python3 curl\n").utf8))
        }
        return Set(missing)
    }()

    /// Whether these programs are installed. They must be in the list above.
    static func areInstalled(_ names: String...) -> Bool {
        missing.isDisjoint(with: names)
    }

    /// Runs a shell script, which stops at the first failing command, and blocks the calling thread until its end.
    ///
    /// - Parameters:
    ///   - arguments: The script's `$1`, `$2`, …
    ///   - folder: The working directory.
    /// - Throws: ``Failure`` with the output if the exit status is not 0.
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
