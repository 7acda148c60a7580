import EasyNetwork
import Foundation

/// The destination of the output.
struct Console: Sendable {
    /// Whether a line can be redrawn.
    var isTerminal = false
    var write: @Sendable (String) -> Void
}

/// Tracks the jobs by the events of their queue, and prints their results.
actor Progress {
    private enum Phase {
        case waiting, running, ended
    }

    private let jobs: [Runner.Job]
    private let console: Console
    private let began = Date()
    private var rows: [(phase: Phase, started: Date?, seconds: Double, attempts: Int, status: Int?)]
    /// The indices of the jobs by the ids of their operations.
    private let indices: [UInt64: Int]

    init(_ jobs: [Runner.Job], _ console: Console) {
        self.jobs = jobs
        self.console = console
        rows = jobs.map { _ in (.waiting, nil, 0, 0, nil) }
        indices = Dictionary(uniqueKeysWithValues: jobs.enumerated().map { ($1.operation.operationID, $0) })
    }

    func note(_ event: NetworkEvent) {
        guard let index = event.operationID.flatMap({ indices[$0] }) else { return }
        switch event.kind {
        case .started:
            rows[index].phase = .running
            rows[index].started = event.date
        case .slotReleased: rows[index].phase = .waiting
        case .slotRegained: rows[index].phase = .running
        case .attemptStarted: rows[index].attempts += 1
        case .attemptEnded(let attempt, _): rows[index].status = attempt.statusCode
        case .servedFromCache(let response): rows[index].status = response.statusCode
        case .finished:
            rows[index].phase = .ended
            rows[index].seconds = rows[index].started.map { event.date.timeIntervalSince($0) } ?? 0
            write(result(index).line + "\n")
        default: break
        }
    }

    /// Redraws the line of counts on a terminal.
    func draw() {
        guard console.isTerminal else { return }
        let (running, ended) = (rows.count { $0.phase == .running }, rows.count { $0.phase == .ended })
        let numbers = "running \(running)  waiting \(rows.count - running - ended)  done \(ended)"
        write(numbers + String(format: "  %.1f s", Date().timeIntervalSince(began)))
    }

    func finish() -> Report {
        let report = Report(results: jobs.indices.map(result), seconds: Date().timeIntervalSince(began))
        write(report.summary + "\n")
        return report
    }

    private func write(_ text: String) {
        // Return to the beginning of the line and clear it.
        console.write(console.isTerminal ? "\r\u{1B}[K" + text : text)
    }

    private func result(_ index: Int) -> Report.Result {
        let (job, row) = (jobs[index], rows[index])
        let error = job.operation.error
        return Report.Result(
            name: job.api,
            id: job.id,
            outcome: Report.Outcome(error),
            status: error?.statusCode ?? row.status,
            seconds: (row.seconds * 1_000).rounded() / 1_000,
            attempts: row.attempts,
            error: error?.localizedDescription
        )
    }
}
