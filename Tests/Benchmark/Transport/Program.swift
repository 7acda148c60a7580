#if os(Linux) || os(macOS)
import Foundation

/// An installed program.
struct Program {
    /// The output of a program that ended with another status than 0.
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    let file: URL

    /// Finds a program in `PATH` or in the folders of servers, which only the `PATH` of administrators has; nil without
    /// it.
    init?(_ name: String) {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
        let folders = path.split(separator: ":").map(String.init)
        let others = ["/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin"]
        let files = (folders + others).lazy.map { URL(fileURLWithPath: $0).appendingPathComponent(name) }
        let found = files.first { FileManager.default.isExecutableFile(atPath: $0.path) }
        guard let found else { return nil }
        file = found
    }

    /// Runs the program to its end.
    ///
    /// - Returns: its output.
    /// - Throws: ``Failure``.
    func output(_ arguments: [String]) throws -> String {
        let process = Process()
        process.executableURL = file
        process.arguments = arguments
        process.standardInput = FileHandle.nullDevice
        let pipe = Pipe()
        process.standardOutput = pipe
        process.standardError = pipe
        try process.run()
        let text = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            throw Failure(description: "\(file.lastPathComponent) ended with \(process.terminationStatus): \(text)")
        }
        return text
    }
}
#endif
