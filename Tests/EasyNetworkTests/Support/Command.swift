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

    /// The programs that some tests need and this machine has not. A line on standard error says so once.
    private static let missing: Set<String> = {
        let missing = ["nginx", "openssl", "python3"].filter { find($0) == nil }
        if !missing.isEmpty {
            let line = "Skipped: the tests that need \(missing.joined(separator: ", ")). To run them: "
            FileHandle.standardError.write(Data((line + "apt-get install nginx-light openssl python3\n").utf8))
        }
        return Set(missing)
    }()

    /// Whether the machine has these, which are among those that are looked for above.
    static func areInstalled(_ names: String...) -> Bool {
        missing.isDisjoint(with: names)
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
