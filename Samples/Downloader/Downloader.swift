import EasyNetwork
import Foundation
import SampleSupport

/// Downloads files in parallel, and resumes the partial files of an earlier run.
@main
struct Downloader {
    static func main() async {
        do {
            switch try Arguments.parse(Array(CommandLine.arguments.dropFirst()), readList: readList) {
            case .help:
                print(Arguments.usage)
            case .download(let arguments):
                try checkDirectory(arguments.directory)
                exit(await download(arguments))
            }
        } catch {
            Terminal.writeError("Downloader: \(PlainText.line(error.message))\n\n\(Arguments.usage)\n")
            exit(2)
        }
    }

    /// - Returns: The exit status.
    private static func download(_ arguments: Arguments) async -> Int32 {
        let clock = SystemClock()
        let began = clock.now
        let screen = Screen(arguments.addresses)
        let jobs = Jobs(arguments, screen: screen)
        let interrupt = await Interrupt { jobs.cancel() }
        let ticking = Task {
            // Draw the bars ten times a second.
            while (try? await Task.sleep(for: .milliseconds(100))) != nil { await screen.draw(isForced: false) }
        }
        await jobs.run()
        ticking.cancel()
        await screen.draw(isForced: true)
        let summary = Summary(
            board: await screen.board,
            seconds: clock.now - began,
            isInterrupted: interrupt.hasHappened
        )
        Terminal.write(summary.lines.map { $0 + "\n" }.joined())
        return summary.exitStatus
    }

    private static func readList(_ name: String) throws -> String {
        if name != "-" { return try String(contentsOfFile: name, encoding: .utf8) }
        var text = ""
        while let line = readLine(strippingNewline: false) { text += line }
        return text
    }

    /// Rejects a path that exists and is not a directory. `Jobs` creates a missing directory.
    private static func checkDirectory(_ path: String) throws(Misuse) {
        var isDirectory: ObjCBool = false
        if FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory), !isDirectory.boolValue {
            throw Misuse("-o \(path): is not a directory")
        }
    }
}
