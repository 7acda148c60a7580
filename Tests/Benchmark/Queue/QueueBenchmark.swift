import Foundation

/// The costs of a job, by shape and number.
struct QueueBenchmark {
    let report: Report

    func run() {
        #if DEBUG
        report.line("A debug build: the figures mean little. Use swift run -c release Benchmark queue.")
        #endif
        if Memory.allocated == nil { report.line("This platform does not report allocated memory: no bytes.") }
        if Memory.resident == nil { report.line("This platform does not report resident memory.") }
        report.line(
            "Nanoseconds a job, from adding the first to the end of the last: by the clock, and of the processor;"
        )
        report.line(
            "in all, with making, linking and release, by the clock. Bytes of a waiting job. Ratio by the clock."
        )
        report.line("".filled(24) + "NetworkQueue".filled(36) + "OperationQueue")
        let columns = ["clock", "processor", "in all", "bytes"]
        report.line(row(["", "jobs"] + columns + columns + ["ratio"]))
        for shape in Shape.allCases { measure(shape) }
        WaitingRequests(report: report).run()
        CancelLatency(report: report).run()
        LongChain(report: report).run()
    }

    private func measure(_ shape: Shape) {
        var costs: [Contender: [Int: Round.Cost]] = [:]
        // All sizes of both take turns, so that a slow moment of the machine does not affect one of them alone.
        for _ in 0..<Measurement.samples {
            for size in Shape.sizes {
                for contender in Contender.allCases where isBearable(shape, contender, size) {
                    let sample = Round(shape: shape, contender: contender, size: size).sample()
                    costs[contender, default: [:]][size, default: Round.Cost()].lower(to: sample)
                }
            }
        }
        for size in Shape.sizes { show(shape, size, costs) }
        let own = Shape.sizes.compactMap { costs[.networkQueue]?[$0]?.processor }
        if let small = own.first, let large = own.last {
            report.bar(
                "\(shape.rawValue): a job among 100,000 against one among 1,000, processor",
                large / small,
                atMost: 1.5
            )
        }
    }

    private func isBearable(_ shape: Shape, _ contender: Contender, _ size: Int) -> Bool {
        contender == .networkQueue || size <= shape.largestForOperationQueue
    }

    private func show(_ shape: Shape, _ size: Int, _ costs: [Contender: [Int: Round.Cost]]) {
        var cells: [String] = [shape.rawValue, String(size)]
        for contender in Contender.allCases {
            if let cost = costs[contender]?[size] {
                let bytes = Round(shape: shape, contender: contender, size: size).waitingBytes()
                cells += [cost.running, cost.processor, cost.inAll].map { Report.number($0, digits: 0) }
                cells.append(bytes.map { Report.number($0, digits: 0) } ?? "-")
            } else {
                cells += ["-", "-", "-", "-"]
            }
        }
        if let own = costs[.networkQueue]?[size], let plain = costs[.operationQueue]?[size] {
            cells.append(Report.number(own.running / plain.running))
            if shape.onlyRuns {
                let name = "\(shape.rawValue), \(size) jobs: against OperationQueue, processor"
                report.bar(name, own.processor / plain.processor, atMost: 2)
            }
        } else {
            cells.append("-")
        }
        report.line(row(cells))
    }

    private func row(_ cells: [String]) -> String {
        (cells.first ?? "").filled(14) + cells.dropFirst().map { $0.aligned(10) }.joined()
    }
}
