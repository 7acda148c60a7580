import EasyNetwork
import EasyNetworkDiagnostics
import Foundation

/// `swift run Quickstart` shows the main features against a local server. `swift run Quickstart URL…` fetches URLs.
/// `--timeline FILE` before the URLs also writes a page that shows the jobs over time.
@main
struct Quickstart {
    static func main() async {
        var arguments = Array(CommandLine.arguments.dropFirst())
        var file: URL?
        if arguments.first == "--timeline", arguments.count > 1 {
            file = URL(fileURLWithPath: arguments[1])
            arguments.removeFirst(2)
        }
        if arguments.contains(where: { $0.hasPrefix("-") }) {
            print("usage: Quickstart [--timeline FILE] [URL…]")
            exit(arguments == ["--help"] || arguments == ["-h"] ? EXIT_SUCCESS : EXIT_FAILURE)
        }
        let timeline = file.map { _ in Timeline() }
        var isFine: Bool
        if arguments.isEmpty {
            timeline?.record(NetworkQueue.shared)
            isFine = await Tour.run()
        } else {
            isFine = await Fetch.run(arguments, timeline)
        }
        if let timeline, let file {
            let page = await timeline.html(title: "Quickstart")
            do {
                try Data(page.utf8).write(to: file)
            } catch {
                print("failed: \(error.localizedDescription)")
                isFine = false
            }
        }
        exit(isFine ? EXIT_SUCCESS : EXIT_FAILURE)
    }
}
