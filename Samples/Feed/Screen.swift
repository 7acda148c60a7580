import EasyNetwork
import EasyNetworkOutbox
import EasyNetworkResources
import Foundation

/// A post with its jobs: the details, the picture and the like.
struct Row: Sendable {
    let post: Post
    let details: RequestOperation<GetDetails>
    let picture: ResourceReceipt<String>
    let like: UUID
}

/// Shows the rows of a round and a status line: ten times a second on a terminal, otherwise once at the end.
struct Screen: Sendable {
    let rows: [Row]
    let queue: NetworkQueue
    let outbox: Outbox
    let round: Int
    /// Whether rounds follow each other until Ctrl-C.
    let isLive: Bool

    private let isTerminal = isatty(STDOUT_FILENO) == 1

    /// Draws the rows until the task is cancelled.
    func live() async {
        guard isTerminal else { return }
        // A later round is drawn over the round before it.
        draw(again: round > 1)
        // Cancelling the task ends the sleep.
        while (try? await Task.sleep(for: .milliseconds(100))) != nil { draw(again: true) }
    }

    /// Draws the rows for the last time.
    func end() {
        draw(again: isTerminal)
    }

    /// - Parameter again: Whether to draw over the last drawing.
    private func draw(again: Bool) {
        let lines = lines()
        let text = (again ? "\u{1B}[\(lines.count)A" : "") + lines.map { $0 + "\n" }.joined()
        // An error means that the reader has closed the pipe.
        try? FileHandle.standardOutput.write(contentsOf: Data(text.utf8))
    }

    private func lines() -> [String] {
        let waiting = Dictionary(uniqueKeysWithValues: ((try? outbox.entries) ?? []).map { ($0.id, $0) })
        let dead = Dictionary(uniqueKeysWithValues: ((try? outbox.deadLetters) ?? []).map { ($0.id, $0) })
        let rows = rows.map { row in
            let columns = [(row.post.title, 21), (text(of: row.details), 40), (text(of: row.picture), 10)]
                .map { $0.padding(toLength: $1, withPad: " ", startingAt: 0) }
            return columns.joined() + text(ofLike: waiting[row.like], dead[row.like])
        }
        let hint = isLive && !Task.isCancelled ? " Press Ctrl-C to stop." : ""
        let status = "Round \(round). Likes waiting: \(waiting.count), refused: \(dead.count).\(hint)"
        return (rows + [status]).map { (isTerminal ? "\u{1B}[2K" : "") + $0 }
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
