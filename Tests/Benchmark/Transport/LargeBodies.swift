#if os(Linux) || os(macOS)
import Foundation
import Programs

/// Downloads and uploads of 1 GiB, compared with the `curl` program.
struct LargeBodies {
    private static let samples = 3
    private static let mebibyte = 1_048_576.0

    let report: Report
    let server: LocalServer

    private struct Cost {
        /// Seconds.
        var own = Double.infinity
        /// Seconds; nil without curl.
        var curl: Double?
        /// The resident bytes before and at the peak; 0 when the platform does not report them.
        var before = 0
        var peak = 0
        /// The error.
        var failure: String?

        /// The throughput relative to curl; nil without curl, NaN after a failure, which misses every bar.
        var ratio: Double? { failure == nil ? curl.map { $0 / own } : .nan }
    }

    func run() throws {
        report.line("\n1 GiB between nginx and a file, the best of \(Self.samples): MB a second; resident MiB.")
        let curl = ChildProcess.find("curl")
        if curl == nil { report.line("There is no curl in PATH: nothing to compare with.") }
        report.row(["1 GiB", "", "MB/s", "curl's", "ratio", "before", "peak"])
        // Each contender runs both directions before the next, so that the memory of one does not count for another.
        for contender in CarrierContender.allCases {
            let carrier = contender.makeCarrier()
            for transfer in LargeTransfer.allCases {
                let names = [transfer.name, contender.name]
                guard let carrier else {
                    report.row(names + ["not on this platform"])
                    continue
                }
                let cost = try measure(transfer, by: carrier, curl)
                report.row(names + cells(cost))
                if contender.hasBars { hold(cost, names.joined(separator: ", ")) }
            }
        }
        report.line("Ratio: to the curl program, which takes turns with each.")
    }

    private func measure(_ transfer: LargeTransfer, by carrier: any Carrier, _ curl: URL?) throws -> Cost {
        let file = server.folder.appendingPathComponent("file")
        defer { try? FileManager.default.removeItem(at: file) }
        var cost = Cost()
        // The first is a warm-up.
        for sample in 0...Self.samples {
            try prepare(file, for: transfer)
            let other = try curl.map { try transfer.seconds(with: $0, server, file) }
            try prepare(file, for: transfer)
            Memory.trim()
            Memory.forgetPeak()
            cost.before = max(cost.before, Memory.resident ?? 0)
            let own = attempt(transfer, by: carrier, file, &cost)
            cost.peak = max(cost.peak, Memory.peakResident ?? 0)
            guard sample > 0 || cost.failure != nil else { continue }
            cost.own = min(cost.own, own)
            if let other { cost.curl = min(cost.curl ?? other, other) }
            if cost.failure != nil { return cost }
        }
        return cost
    }

    /// Runs a transfer. The failure of a contender is a result and does not end the benchmark.
    ///
    /// - Returns: the time in seconds.
    private func attempt(
        _ transfer: LargeTransfer,
        by carrier: any Carrier,
        _ file: URL,
        _ cost: inout Cost
    ) -> Double {
        do {
            return try transfer.seconds(by: carrier, server, file)
        } catch {
            cost.failure = "\(error)"
            return .infinity
        }
    }

    /// Removes the file, because overwriting a file takes longer than writing a new one.
    private func prepare(_ file: URL, for transfer: LargeTransfer) throws {
        try? FileManager.default.removeItem(at: file)
        if transfer == .upload { try ServerFiles.makeSparse(file) }
    }

    private func cells(_ cost: Cost) -> [String] {
        func rate(_ seconds: Double) -> String {
            Report.number(Double(LocalServer.bigCount) / seconds / 1_000_000, digits: 0)
        }
        func mebibytes(_ bytes: Int) -> String {
            bytes == 0 ? "-" : Report.number(Double(bytes) / Self.mebibyte, digits: 1)
        }
        if let failure = cost.failure { return ["  failed: \(failure)"] }
        return [
            rate(cost.own), cost.curl.map(rate) ?? "-", cost.ratio.map { Report.number($0) } ?? "-",
            mebibytes(cost.before), mebibytes(cost.peak),
        ]
    }

    private func hold(_ cost: Cost, _ name: String) {
        if let ratio = cost.ratio { report.bar("1 GiB, \(name): throughput against curl's", ratio, atLeast: 0.9) }
        if cost.peak > 0 {
            let peak = Double(cost.peak) / Self.mebibyte
            report.bar("1 GiB, \(name): resident at the peak", peak, atMost: 64, unit: " MiB")
        }
    }
}
#endif
