import EasyNetwork
import EasyNetworkDiagnostics
import Foundation

/// The costs of small requests with and without what shows them.
struct DiagnosticsBenchmark {
    private enum Contender: String, CaseIterable {
        case off = "without"
        case log
        case timeline
        case recorder = "recording"
        case all
    }

    /// The number of requests in a sample.
    static let count = 5_000
    /// The most that requests may cost with all of it, compared with the same without.
    static let limit = 1.5

    let report: Report

    /// - Throws: ``TransportBenchmark/Unavailable``, or an error of the library or of Foundation about files.
    func run() throws {
        #if os(Linux) || os(macOS)
        let server = try LocalServer(in: ScratchFolder.choose().parent)
        defer { server.stop() }
        let url = try server.url("/small")
        let file = server.folder.appendingPathComponent("traffic.har")
        var costs: [Contender: [Double]] = [:]
        for _ in 0..<Measurement.samples {
            for contender in Contender.allCases {
                costs[contender, default: []].append(try cost(contender, url, file))
            }
        }
        let lowest = costs.mapValues { $0.min() ?? .nan }
        report.line("\(Self.count) GETs of 1 KB, 6 at a time; the lowest of \(Measurement.samples)")
        report.line("")
        report.line("with".filled(14) + "CPU ms per 1,000".aligned(18) + "ratio".aligned(9))
        for contender in Contender.allCases {
            let cost = lowest[contender] ?? .nan
            let ratio = cost / (lowest[.off] ?? .nan)
            let figures = Report.number(cost).aligned(18) + Report.number(ratio).aligned(9)
            report.line(contender.rawValue.filled(14) + figures)
            if contender == .all { report.bar("GETs that are logged, recorded and drawn", ratio, atMost: Self.limit) }
        }
        #else
        throw TransportBenchmark.Unavailable(description: "no program may start another here")
        #endif
    }

    /// The processor's milliseconds for 1,000 requests, until all has been written.
    private func cost(_ contender: Contender, _ url: URL, _ file: URL) throws -> Double {
        let load = QueueLoad(TransportConfiguration.direct.makeTransport(), url, atOnce: 6)
        guard load.send(500) == 500 else { Report.stop("the server did not answer") }
        let (queue, host) = (load.queue, load.service.configuration)
        let start = Measurement.processorTime
        let logger = NetworkLogger { _, _ in }
        if contender == .log || contender == .all {
            logger.log(queue)
            logger.log(host)
        }
        let timeline = Timeline()
        if contender == .timeline || contender == .all {
            timeline.record(queue)
            timeline.record(host)
        }
        let recorder = try TrafficRecorder(file: file)
        if contender == .recorder || contender == .all {
            recorder.record(queue)
            recorder.record(host)
        }
        guard load.send(Self.count) == Self.count else { Report.stop("the server did not answer") }
        Measurement.wait { try? await recorder.finish() }
        withExtendedLifetime((logger, timeline)) {}
        return (Measurement.processorTime - start) / Double(Self.count) * 1_000_000
    }
}
