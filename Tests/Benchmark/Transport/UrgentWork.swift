#if os(Linux) || os(macOS)
import Dispatch
import EasyNetwork
import Foundation

/// The time of an urgent request every second, while as many bulk downloads run as there are slots.
struct UrgentWork {
    private static let slots = 6

    private struct Figures {
        var milliseconds: [Double] = []
        var seconds = 0.0
        var sent: Int64 = 0
    }

    let report: Report
    let server: LocalServer

    func run() async throws {
        report.line(
            "\n\(Self.slots) downloads of \(LocalServer.bulkCount / 1_000_000) MB in \(Self.slots) slots, from a server that sends "
                + "\(LocalServer.bulkRate / 1_000_000) MB/s; a small request every second"
        )
        let alone = try await round(yields: false, withRequests: false)
        let kept = try await round(yields: false, withRequests: true)
        let yielded = try await round(yields: true, withRequests: true)
        line("without the requests", alone)
        line("no download yields", kept)
        line("downloads yield", yielded)
        let whole = Double(Self.slots * LocalServer.bulkCount)
        report.bar(
            "an urgent request, median",
            Measurement.percentile(0.5, of: yielded.milliseconds),
            atMost: 50,
            unit: " ms"
        )
        report.bar(
            "an urgent request, 99th percentile",
            Measurement.percentile(0.99, of: yielded.milliseconds),
            atMost: 200,
            unit: " ms"
        )
        report.bar("bytes that came twice", 100 * (Double(yielded.sent) / whole - 1), atMost: 2, unit: " %")
        report.bar("time of the downloads", yielded.seconds / alone.seconds, atMost: 1.05, unit: " times")
    }

    private func line(_ name: String, _ figures: Figures) {
        var text = "  \(name.filled(22))downloads \(Report.number(figures.seconds, digits: 3)) s"
        if !figures.milliseconds.isEmpty {
            let milliseconds = [
                Measurement.percentile(0.5, of: figures.milliseconds),
                Measurement.percentile(0.99, of: figures.milliseconds),
                figures.milliseconds.max() ?? 0,
            ].map { "\(Report.number($0, digits: 3)) ms" }
            text += ", requests: median \(milliseconds[0]), 99 % \(milliseconds[1]), longest \(milliseconds[2])"
        }
        report.line(text)
    }

    private func round(yields: Bool, withRequests: Bool) async throws -> Figures {
        let queue = NetworkQueue(maxConcurrentOperationCount: Self.slots)
        if !yields { queue.yieldingPriority = nil }
        let host = HostConfiguration(
            baseURL: try server.url("/"),
            transport: TransportConfiguration(proxy: .none).makeTransport()
        )
        let service = EasyNetworkService(host)
        let folder = server.folder.appendingPathComponent("bulk-\(UUID().uuidString.prefix(8))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: folder) }
        let before = try server.bulkBytesSent()
        let downloads = (0..<Self.slots).map { number in
            let download = DownloadOperation(
                Request<Data>("bulk"),
                to: folder.appendingPathComponent("\(number)"),
                service: service
            )
            download.queuePriority = .low
            return download
        }
        var figures = Figures()
        let start = DispatchTime.now()
        queue.addOperations(downloads, waitUntilFinished: false)
        let requests = Task {
            var milliseconds: [Double] = []
            while withRequests, !Task.isCancelled, downloads.contains(where: { !$0.isFinished }) {
                // The pace of the requests; nothing is synchronised by it.
                try? await Task.sleep(nanoseconds: 1_000_000_000)
                let begin = DispatchTime.now()
                guard (try? await queue.perform(Request<Data>("small"), service: service)) != nil else { continue }
                milliseconds.append(Double(DispatchTime.now().uptimeNanoseconds - begin.uptimeNanoseconds) / 1e6)
            }
            return milliseconds
        }
        for download in downloads {
            let file = try await download.value
            guard FileManager.default.contentsEqual(atPath: file.path, andPath: server.bulk.path) else {
                throw TransportBenchmark.Unavailable(description: "\(file.path) is not what the server has")
            }
        }
        figures.seconds = Double(DispatchTime.now().uptimeNanoseconds - start.uptimeNanoseconds) / 1e9
        figures.milliseconds = await requests.value.sorted()
        figures.sent = try server.bulkBytesSent() - before
        return figures
    }
}
#endif
