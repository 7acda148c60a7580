import EasyNetwork
import EasyNetworkOutbox
import EasyNetworkResources
import Foundation
import SampleSupport

/// A list of posts with details, pictures and likes, loaded again and again from a server that sometimes fails.
@main
struct Feed {
    static func main() async {
        let isLive = isLive(Array(CommandLine.arguments.dropFirst()))
        do {
            let server = try FlakyServer.start()
            defer { server.stop() }
            try HostConfiguration.baseURL(server.baseURL.absoluteString)
            // An app would keep its likes in a directory that it finds again after the next launch.
            let folder = FileManager.default.temporaryDirectory.appendingPathComponent("Feed-\(UUID())")
            defer { try? FileManager.default.removeItem(at: folder) }
            let feed = Task { try await show(likesIn: folder, isLive: isLive) }
            let interrupt = await Interrupt { feed.cancel() }
            defer { interrupt.cancel() }
            do { try await feed.value } catch { guard feed.isCancelled else { throw error } }
            // On a terminal, the text replaces the ^C that the terminal has shown.
            if feed.isCancelled { print(isatty(STDOUT_FILENO) == 1 ? "\rStopped." : "Stopped.") }
        } catch {
            print("Feed: \(error.localizedDescription)")
            exit(EXIT_FAILURE)
        }
    }

    /// Returns whether to repeat the round until Ctrl-C: on a terminal, unless an argument decides.
    private static func isLive(_ arguments: [String]) -> Bool {
        switch arguments {
        case []: return isatty(STDOUT_FILENO) == 1
        case ["--live"]: return true
        case ["--once"]: return false
        default:
            print("usage: Feed [--live | --once]")
            exit(arguments == ["--help"] || arguments == ["-h"] ? EXIT_SUCCESS : EXIT_FAILURE)
        }
    }

    /// Shows one round, or rounds with a pause in between until the task is cancelled.
    private static func show(likesIn folder: URL, isLive: Bool) async throws {
        let queue = NetworkQueue(name: "details", maxConcurrentOperationCount: 2)
        // An app would make an image of the body.
        let pictures = ResourceLoader(maximumLoadCount: 2) { response in
            String(response.body.prefix(8).map { Array("▁▂▃▄▅▆▇█")[Int($0) % 8] })
        }
        let outbox = try Outbox(directory: folder)
        outbox.register(Like.self, name: "like")
        for round in 1... {
            let posts = try await NetworkQueue.shared.perform(GetPosts())
            // The refused likes of the last round have been shown.
            try outbox.remove(outbox.deadLetters.map(\.id))
            let rows = try posts.map { post in
                Row(
                    post: post,
                    details: RequestOperation(GetDetails(post: post.id)),
                    picture: pictures.load(post.picture),
                    // Each post has its own lane, so that a like that has to wait does not delay the others.
                    like: try outbox.add(Like(post: post.id), lane: "post \(post.id)")
                )
            }
            queue.addOperations(rows.map(\.details))
            try outbox.start()

            let screen = Screen(rows: rows, queue: queue, outbox: outbox, round: round, isLive: isLive)
            let drawing = Task { await screen.live() }
            for row in rows {
                // The row shows its error.
                _ = try? await row.details.value
                _ = try? await row.picture.value
            }
            try await outbox.drain(deadline: 30)
            drawing.cancel()
            await drawing.value
            screen.end()
            guard isLive else { return }
            try await Task.sleep(for: .seconds(2))
        }
    }
}
