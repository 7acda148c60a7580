import EasyNetwork
import EasyNetworkDiagnostics
import Foundation
import SampleSupport

/// The log and the files of a run, made from the events of the queue.
struct Recordings {
    private var log: Task<Void, Never>?
    private var traffic: TrafficRecorder?
    private var timeline: (timeline: Timeline, file: URL)?

    /// - Throws: when a file cannot be written, before anything runs.
    init(_ arguments: Arguments, _ queue: NetworkQueue, log console: Console) throws {
        if let path = arguments.harFile {
            traffic = try TrafficRecorder(file: URL(fileURLWithPath: path))
            traffic?.record(queue)
        }
        if let path = arguments.timelineFile {
            let file = URL(fileURLWithPath: path)
            do { try Data().write(to: file) } catch { throw Misuse("\(path): \(error.localizedDescription)") }
            let timeline = Timeline()
            timeline.record(queue)
            self.timeline = (timeline, file)
        }
        guard arguments.isLogged else { return }
        let events = queue.events
        log = Task {
            for await event in events {
                console.write("\(event.date.formatted(.iso8601)) \(event.level) \(event)\n")
                if case .shutDown = event.kind { break }
            }
        }
    }

    /// Completes the files, when the queue has been shut down.
    func finish() async throws {
        await log?.value
        try await traffic?.finish()
        if let timeline {
            try Data(await timeline.timeline.html(title: "Harness").utf8).write(to: timeline.file)
        }
    }
}
