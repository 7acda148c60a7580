import EasyNetwork
import EasyNetworkOutbox
import EasyNetworkResources
import Foundation

/// A post, and all that is fetched and sent for it.
struct Row: Sendable {
    let post: Post
    let details: RequestOperation<GetDetails>
    let picture: ResourceReceipt<String>
    let like: UUID
}

/// Shows the rows: again and again on a terminal, otherwise at the end.
struct Screen: Sendable {
    let rows: [Row]
    let queue: NetworkQueue
    let outbox: Outbox

    private let isTerminal = isatty(STDOUT_FILENO) == 1

    /// Draws the rows until the task is cancelled.
    func live() async {
        guard isTerminal else { return }
        draw()
        // Ten pictures a second; the sleep ends at once when the task is cancelled.
        while (try? await Task.sleep(for: .milliseconds(100))) != nil { draw(again: true) }
    }

    func end() {
        draw(again: isTerminal)
    }

    private func draw(again: Bool = false) {
        let text = (again ? "\u{1B}[\(rows.count)A" : "") + lines().map { $0 + "\n" }.joined()
        // Where the text goes may be gone.
        try? FileHandle.standardOutput.write(contentsOf: Data(text.utf8))
    }

    private func lines() -> [String] {
        let waiting = Dictionary(uniqueKeysWithValues: ((try? outbox.entries) ?? []).map { ($0.id, $0) })
        let dead = Dictionary(uniqueKeysWithValues: ((try? outbox.deadLetters) ?? []).map { ($0.id, $0) })
        return rows.map { row in
            let columns = [(row.post.title, 21), (text(of: row.details), 40), (text(of: row.picture), 10)]
                .map { $0.padding(toLength: $1, withPad: " ", startingAt: 0) }
            let line = columns.joined() + text(ofLike: waiting[row.like], dead[row.like])
            return (isTerminal ? "\u{1B}[2K" : "") + line
        }
    }

    private func text(of details: RequestOperation<GetDetails>) -> String {
        switch details.result {
        case .success(let item): "by \(item.author), \(item.likes) likes"
        case .failure(let error): error.serverMessage ?? "\(error.code)"
        case nil: queue.explain(details).map(\.description).joined(separator: "; ")
        }
    }

    private func text(of picture: ResourceReceipt<String>) -> String {
        switch picture.result {
        case .success(let picture): picture
        case .failure(let error): "\(error.code)"
        case nil: "…"
        }
    }

    private func text(ofLike entry: OutboxEntry?, _ dead: OutboxEntry?) -> String {
        if let dead { return "♡ refused, \(dead.error?.statusCode ?? 0)" }
        guard let entry else { return "♥ sent" }
        return entry.isSending ? "♡ is being sent" : "♡ waits" + (entry.error.map { ", \($0.statusCode ?? 0)" } ?? "")
    }
}
