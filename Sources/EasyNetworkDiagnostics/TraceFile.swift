import EasyNetwork
import Foundation

/// The file of a ``Timeline``'s traces: a line for each job or call that has ended, written on the file's own queue.
final class TraceFile: Sendable {
    /// The maximum number of lines that wait.
    static let maximumCount = 10_000

    private let queue = BatchQueue<TracedRow>(label: "EasyNetwork.Timeline")
    /// The number of lines that wait or are being written, and the number of lines dropped since the last written one.
    private let state: Locked<(count: Int, droppedCount: Int)>
    private let work: BatchQueue<TracedRow>.Work

    init(_ file: LogFile, _ text: OpenTelemetryText) {
        let state = Locked((count: 0, droppedCount: 0))
        self.state = state
        work = { rows in
            for row in rows {
                let droppedCount = state.withLock { $0.droppedCount }
                let isWritten = file.write(text.line(of: row.spans(until: Date()), droppedCount: droppedCount))
                state.withLock { state in
                    state.count -= 1
                    state.droppedCount += isWritten ? -droppedCount : 1
                }
            }
        }
    }

    func add(_ row: TracedRow) {
        let hasRoom = state.withLock { state in
            let hasRoom = state.count < Self.maximumCount
            if hasRoom { state.count += 1 } else { state.droppedCount += 1 }
            return hasRoom
        }
        if hasRoom { queue.add(row, work) }
    }

    /// Returns when all lines up to now have been written or dropped.
    func settled() async throws(NetworkError) {
        await withCheckedContinuation { continuation in queue.settle(work) { continuation.resume() } }
        let droppedCount = state.withLock { $0.droppedCount }
        guard droppedCount > 0 else { return }
        throw NetworkError(code: .cannotWriteFile, message: "\(droppedCount) lines of the traces were dropped")
    }
}
