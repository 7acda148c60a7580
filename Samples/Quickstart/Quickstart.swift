import Foundation

/// `swift run Quickstart` shows the main features with a local server; `swift run Quickstart URL…` fetches URLs.
@main
struct Quickstart {
    static func main() async {
        let addresses = Array(CommandLine.arguments.dropFirst())
        let isFine: Bool
        if addresses.isEmpty {
            isFine = await Tour.run()
        } else if addresses.contains(where: { $0.hasPrefix("-") }) {
            print("usage: Quickstart [URL…]")
            isFine = addresses == ["--help"] || addresses == ["-h"]
        } else {
            isFine = await Fetch.run(addresses)
        }
        exit(isFine ? EXIT_SUCCESS : EXIT_FAILURE)
    }
}
