#if os(Linux)
import Foundation
import Programs

/// The time of a program from its start to its end, after its first response.
struct StartBenchmark {
    private static let starts = 20
    private static let limit = 1.15

    private struct Program {
        let name: String
        let file: URL
        let arguments: [String]
        var isOurs = false
        var seconds: [Double] = []
        var processor: [Double] = []
    }

    let report: Report
    let server: LocalServer

    func run() throws {
        var programs = try programs()
        // The programs take turns, so that a slow moment of the machine does not affect one of them alone.
        for _ in 0..<Self.starts {
            for index in programs.indices { try start(&programs[index]) }
        }
        report.line("A program from its start to its end, \(Self.starts) times in turns: medians in milliseconds,")
        report.line("by the clock and of the processor, and the ratios to the program that only links Foundation.")
        report.line(row(["", "clock", "processor", "ratio", "ratio"]))
        func median(_ figures: [Double]) -> Double { Measurement.percentile(0.5, of: figures.sorted()) * 1_000 }
        let base = (clock: median(programs[0].seconds), processor: median(programs[0].processor))
        for program in programs {
            let (clock, processor) = (median(program.seconds), median(program.processor))
            let figures = [clock, processor, clock / base.clock, processor / base.processor]
            report.line(row([program.name] + figures.map { Report.number($0) }))
            guard program.isOurs else { continue }
            let name = "\(program.name): processor, against a program that only links Foundation"
            report.bar(name, processor / base.processor, atMost: Self.limit)
        }
    }

    private func programs() throws -> [Program] {
        guard let own = Bundle.main.executableURL, let curl = ChildProcess.find("curl") else {
            throw TransportBenchmark.Unavailable(description: "there is no curl in PATH")
        }
        let plain = try server.url("/small")
        let tls = try server.url("/small", over: .tls)
        let quiet = ["--silent", "--noproxy", "*"]
        return [
            Program(name: "only links Foundation", file: own, arguments: StartedProgram.arguments()),
            Program(name: "first of URLSession", file: own, arguments: StartedProgram.sessionArguments(plain)),
            Program(name: "first response", file: own, arguments: StartedProgram.arguments(plain), isOurs: true),
            Program(
                name: "first response over TLS",
                file: own,
                arguments: StartedProgram.arguments(tls, authority: server.authority),
                isOurs: true
            ),
            Program(name: "curl", file: curl, arguments: quiet + [plain.absoluteString]),
            Program(
                name: "curl over TLS",
                file: curl,
                arguments: quiet + ["--cacert", server.authority.path, tls.absoluteString]
            ),
        ]
    }

    private func start(_ program: inout Program) throws {
        let before = Self.processorTimeOfChildren
        var status: Int32?
        program.seconds.append(
            try Measurement.seconds { status = try ChildProcess(program.file, program.arguments).wait() }
        )
        guard status == 0 else {
            throw TransportBenchmark.Unavailable(description: "\(program.name): there was no right response")
        }
        program.processor.append(Self.processorTimeOfChildren - before)
    }

    /// The seconds, user and system, of all children that have ended. No other child ends while one is measured.
    private static var processorTimeOfChildren: Double {
        var usage = rusage()
        // RUSAGE_CHILDREN, whose type depends on the platform.
        getrusage(-1, &usage)
        func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1_000_000 }
        return seconds(usage.ru_utime) + seconds(usage.ru_stime)
    }

    private func row(_ cells: [String]) -> String {
        cells[0].filled(26) + cells.dropFirst().map { $0.aligned(11) }.joined()
    }
}
#endif
