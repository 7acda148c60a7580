#if os(Linux) || os(macOS)
import Foundation
import Programs

/// The installed programs that tests need.
enum Command {
    /// The programs that some tests need and that are not installed. They are reported once on standard error.
    private static let missing: Set<String> = {
        let missing = ["nginx", "openssl", "python3", "curl"].filter { ChildProcess.find($0) == nil }
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
    /// - Throws: ``ChildProcess/Failure`` with the output if the exit status is not 0.
    static func runScript(_ script: String, _ arguments: [String], in folder: URL) throws {
        let shell = URL(fileURLWithPath: "/bin/sh")
        try ChildProcess.run(shell, ["-eu", "-c", script, "sh"] + arguments, in: folder)
    }
}
#endif
