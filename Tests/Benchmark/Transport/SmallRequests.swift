import Foundation

/// GETs of 1 KB, several at a time: their rate, and their processor time.
struct SmallRequests {
    static let byteCount = 1_024
    private static let widths = [1, 6, 64]
    private static let samples = 3

    let report: Report
    let url: URL

    private struct Cost {
        var rate = 0.0
        /// The processor's seconds for 1,000 requests.
        var processor = Double.infinity
        var wrong = 0

        mutating func improve(by other: Cost) {
            rate = max(rate, other.rate)
            processor = min(processor, other.processor)
            wrong += other.wrong
        }
    }

    func run() {
        report.line("\nGET of 1 KB from nginx on this machine, the best of \(Self.samples) samples of about a second:")
        report.line("requests a second, and the processor's seconds, user and system, of this process for 1,000.")
        report.row(["at once", "", "a second", "CPU/1,000", "rate ratio", "CPU ratio"])
        for width in Self.widths { measure(width) }
        report.line("Rate ratio: to URLSession's data tasks. CPU ratio: to bare libcurl.")
    }

    private func measure(_ width: Int) {
        var costs: [LoadContender: Cost] = [:]
        let loads = LoadContender.allCases.map { ($0, $0.makeLoad(url, atOnce: width)) }
        // The contenders take turns, so that a slow moment of the machine does not affect one of them alone.
        for _ in 0..<Self.samples {
            for case (let contender, let load?) in loads {
                costs[contender, default: Cost()].improve(by: sample(load))
            }
        }
        for contender in LoadContender.allCases { show(contender, width, costs) }
        guard width > 1, let own = costs[.curlTransport] else { return }
        if let session = costs[.session] {
            let name = "\(width) at once: requests a second, against URLSession's data tasks"
            report.bar(name, own.rate / session.rate, atLeast: 5)
        }
        if let bare = costs[.bareCurl] {
            let name = "\(width) at once: processor of a request, against bare libcurl"
            report.bar(name, own.processor / bare.processor, atMost: 2)
        }
    }

    private func sample(_ load: any Load) -> Cost {
        // A warm-up opens the connections, and a trial finds the number of requests in a second.
        var cost = Cost(wrong: wrong(load, 100))
        var count = 300
        let trial = Measurement.seconds { cost.wrong += wrong(load, count) }
        count = min(max(Int(Double(count) / trial), count), 40_000)
        let processor = Measurement.processorTime
        let seconds = Measurement.seconds { cost.wrong += wrong(load, count) }
        cost.processor = (Measurement.processorTime - processor) / Double(count) * 1_000
        cost.rate = Double(count) / seconds
        return cost
    }

    private func wrong(_ load: any Load, _ count: Int) -> Int {
        count - load.send(count)
    }

    private func show(_ contender: LoadContender, _ width: Int, _ costs: [LoadContender: Cost]) {
        var cells = [String(width), contender.name]
        if let cost = costs[contender] {
            cells += [Report.number(cost.rate, digits: 0), Report.number(cost.processor, digits: 4)]
            cells.append(costs[.session].map { Report.number(cost.rate / $0.rate) } ?? "-")
            cells.append(costs[.bareCurl].map { Report.number(cost.processor / $0.processor) } ?? "-")
            if cost.wrong > 0 { cells.append("  \(cost.wrong) without the right answer") }
        } else {
            cells.append("not on this platform")
        }
        report.row(cells)
    }
}
