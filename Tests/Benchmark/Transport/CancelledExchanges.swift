#if os(Linux) || os(macOS)
import Dispatch
import EasyNetwork
import Foundation

/// The time that a transport takes to end exchanges that are cancelled in the middle of a body.
struct CancelledExchanges {
    private static let count = 64
    private static let rounds = 50

    let report: Report
    let url: URL

    func run() throws {
        let configuration = TransportConfiguration(maximumConnectionsPerHost: Self.count, proxy: .none)
        let transport = configuration.makeTransport()
        let milliseconds = try (0..<Self.rounds).map { _ in try round(transport) * 1_000 }.sorted()
        func percentile(_ part: Double) -> Double { Measurement.percentile(part, of: milliseconds) }
        report.line(
            "\n\(Self.count) exchanges in the middle of a large body, cancelled one after the other, \(Self.rounds) times:"
        )
        report.line("from the first cancel to the last end, divided by \(Self.count).")
        let figures = [("median", 0.5), ("longest", 1)].map { name, part in
            "\(name) \(Report.number(percentile(part), digits: 4)) ms"
        }
        report.line("  " + figures.joined(separator: ", "))
        report.bar("cancel of an exchange, median", percentile(0.5), atMost: 0.5, unit: " ms")
    }

    /// - Returns: the seconds for one exchange.
    private func round(_ transport: any NetworkTransport) throws -> Double {
        let (heads, ends) = (DispatchGroup(), DispatchGroup())
        let exchanges = (0..<Self.count).map { _ in
            heads.enter()
            ends.enter()
            let exchange = transport.start(TransportRequest(url: url)) { event in
                switch event {
                case .head: heads.leave()
                case .end: ends.leave()
                case .body, .sent: break
                }
            }
            // Without a pause the bodies would keep the processor busy.
            exchange.pause()
            return exchange
        }
        guard heads.wait(timeout: .now() + 60) == .success else {
            throw TransportBenchmark.Unavailable(description: "the server leaves some of \(Self.count) unanswered")
        }
        let seconds = Measurement.seconds {
            for exchange in exchanges { exchange.cancel() }
            ends.wait()
        }
        return seconds / Double(Self.count)
    }
}
#endif
