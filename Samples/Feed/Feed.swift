import EasyNetwork
import EasyNetworkOutbox
import EasyNetworkResources
import Foundation

/// A list of posts, their details and pictures, and likes that survive, against a server that fails now and then.
@main
struct Feed {
    static func main() async {
        do {
            let server = try FlakyServer.start()
            try HostConfiguration.baseURL(server.baseURL.absoluteString)
            // An app would keep its likes where they are found after the next launch.
            let folder = FileManager.default.temporaryDirectory.appendingPathComponent("Feed-\(UUID())")
            defer { try? FileManager.default.removeItem(at: folder) }
            try await show(likesIn: folder)
            server.stop()
        } catch {
            print("Feed: \(error.localizedDescription)")
            exit(EXIT_FAILURE)
        }
    }

    private static func show(likesIn folder: URL) async throws {
        let posts = try await NetworkQueue.shared.perform(GetPosts())
        let queue = NetworkQueue(name: "details", maxConcurrentOperationCount: 2)
        // An app would make an image of the body.
        let pictures = ResourceLoader(maximumLoadCount: 2) { response in
            String(response.body.prefix(8).map { Array("▁▂▃▄▅▆▇█")[Int($0) % 8] })
        }
        let outbox = try Outbox(directory: folder)
        outbox.register(Like.self, name: "like")
        let rows = try posts.map { post in
            Row(
                post: post,
                details: RequestOperation(GetDetails(post: post.id)),
                picture: pictures.load(post.picture),
                // A lane for each post: one that has to wait holds up no other.
                like: try outbox.add(Like(post: post.id), lane: "post \(post.id)")
            )
        }
        queue.addOperations(rows.map(\.details))
        try outbox.start()

        let screen = Screen(rows: rows, queue: queue, outbox: outbox)
        let drawing = Task { await screen.live() }
        for row in rows {
            // What fails is shown in its row.
            _ = try? await row.details.value
            _ = try? await row.picture.value
        }
        let left = try await outbox.drain(deadline: 30)
        drawing.cancel()
        await drawing.value
        screen.end()
        print("\(queue); \(left.count) likes are left, \(try outbox.deadLetters.count) was refused")
    }
}
