import EasyNetwork
import EasyNetworkDiagnostics
import Foundation
import SampleSupport

/// The log and the files of a run, made from the events of the queue.
struct Recordings {
    private var log: Task<Void, Never>?
    private var traffic: TrafficRecorder?
    private var timeline: Timeline?
    private var timelineFile: URL?
    private var traceFile: URL?

    /// - Throws: An error if a file cannot be written, before any job runs.
    init(_ arguments: Arguments, _ queue: NetworkQueue, log console: Console) throws {
        if let path = arguments.harFile {
            traffic = try TrafficRecorder(file: URL(fileURLWithPath: path))
            traffic?.record(queue)
        }
        timelineFile = try arguments.timelineFile.map(Self.file)
        traceFile = try arguments.traceFile.map(Self.file)
        if timelineFile != nil || traceFile != nil {
            timeline = Timeline()
            timeline?.record(queue)
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

    /// Completes the files. Call this after the queue has shut down.
    func finish() async throws {
        await log?.value
        try await traffic?.finish()
        guard let timeline else { return }
        if let timelineFile { try Data(await timeline.html(title: "Harness").utf8).write(to: timelineFile) }
        if let traceFile {
            let isLines = traceFile.pathExtension == "jsonl"
            let text = isLines ? await timeline.openTelemetry(service: "Harness") : await timeline.chromeTrace()
            try Data(text.utf8).write(to: traceFile)
        }
    }

    /// Creates an empty file, which shows that it can be written.
    private static func file(_ path: String) throws -> URL {
        let file = URL(fileURLWithPath: path)
        do { try Data().write(to: file) } catch { throw Misuse("\(path): \(error.localizedDescription)") }
        return file
    }
}
