#if os(Linux) || os(macOS)
import EasyNetwork
import Foundation

/// The round trips of requests to a distant server, over new connections and over kept ones.
struct DistanceBenchmark {
    /// The milliseconds of a round trip. Without a distance, only processors take time.
    private static let roundTrips = [0, 20, 100]
    private static let loads = [(requests: 1, slots: 6), (6, 6), (100, 6), (100, 100)]
    private static let samples = 3

    /// The best seconds for each of ``roundTrips``.
    private struct Figures {
        var cold = roundTrips.map { _ in Double.infinity }
        var warm = roundTrips.map { _ in Double.infinity }
    }

    let report: Report
    let server: LocalServer

    func run() throws {
        report.line("GETs of 1 KB from a distant server, added at once to a NetworkQueue; the best of \(Self.samples):")
        report.line("milliseconds, and how many round trips they are. * marks half a round trip more than needed,")
        report.line("besides the time without a distance.")
        let times = Self.roundTrips.dropFirst().flatMap { ["\($0) ms away", "round trips"] }
        report.line(row(["", "requests", "slots", "connections", "no distance"] + times + ["needed"]))
        let marks = try LocalServer.Listener.allCases.reduce(0) { try $0 + measure($1) }
        report.bar("rows with more round trips than needed at the largest distance", Double(marks), atMost: 0)
    }

    /// Returns the number of marks at the largest distance.
    private func measure(_ listener: LocalServer.Listener) throws -> Int {
        let relays = try Self.roundTrips.map {
            try Relay(to: server.port(of: listener), delay: UInt64($0) * 500_000)
        }
        defer { for relay in relays { relay.stop() } }
        var marks = 0
        for (requests, slots) in Self.loads {
            var figures = Figures()
            for _ in 0..<Self.samples {
                for (index, relay) in relays.enumerated() {
                    let load = try load(listener, relay, slots)
                    figures.cold[index] = min(figures.cold[index], seconds(load, requests))
                    figures.warm[index] = min(figures.warm[index], seconds(load, requests))
                }
            }
            let waves = (requests + slots - 1) / slots
            // A handshake of TCP, and one of TLS 1.3.
            let handshakes = listener == .plain ? 1 : 2
            let name = [listener.rawValue, String(requests), String(slots)]
            marks += show(name + ["new"], figures.cold, needed: handshakes + waves)
            marks += show(name + ["kept"], figures.warm, needed: waves)
        }
        return marks
    }

    private func load(_ listener: LocalServer.Listener, _ relay: Relay, _ slots: Int) throws -> QueueLoad {
        var configuration = TransportConfiguration.direct
        // Only the slots limit the requests.
        configuration.maximumConnectionsPerHost = 100
        configuration.tls.trust = .certificateFile(server.authority)
        let url = try server.url("/small", over: listener, port: relay.port)
        return QueueLoad(configuration.makeTransport(), url, atOnce: slots)
    }

    private func seconds(_ load: QueueLoad, _ requests: Int) -> Double {
        Measurement.seconds {
            guard load.send(requests) == requests else { Report.stop("a request got no right response") }
        }
    }

    /// Returns 1 for a mark at the largest distance.
    private func show(_ name: [String], _ seconds: [Double], needed: Int) -> Int {
        let base = seconds[0] * 1_000
        var cells = name + [Report.number(base, digits: 1)]
        var isMarked = false
        for (roundTrip, seconds) in zip(Self.roundTrips, seconds).dropFirst() {
            let milliseconds = seconds * 1_000
            isMarked = milliseconds - base > (Double(needed) + 0.5) * Double(roundTrip)
            let taken = Report.number(milliseconds / Double(roundTrip)) + (isMarked ? "*" : " ")
            cells += [Report.number(milliseconds, digits: 1), taken]
        }
        report.line(row(cells + [String(needed)]))
        return isMarked ? 1 : 0
    }

    private func row(_ cells: [String]) -> String {
        cells[0].filled(10) + cells.dropFirst().map { $0.aligned(12) }.joined()
    }
}
#endif
