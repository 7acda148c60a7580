import Foundation

/// `swift run -c release Benchmark queue` measures the queue, `Benchmark transport` the transports, `Benchmark cache`
/// the cache, `Benchmark diagnostics` what shows them, `Benchmark outbox` an outbox, `Benchmark json` the reading of
/// JSON, `Benchmark urgent` requests behind bulk downloads, `Benchmark predictions` what a timeline predicts,
/// `Benchmark start` the first response of a program, `Benchmark distance` round trips, and compares them with the bars
/// of the project.
@main
struct Benchmark {
    static func main() async {
        if StartedProgram.isNamed(by: CommandLine.arguments) {
            exit(await StartedProgram.run(CommandLine.arguments) ? EXIT_SUCCESS : EXIT_FAILURE)
        }
        let arguments: Arguments
        do {
            arguments = try Arguments(Array(CommandLine.arguments.dropFirst()))
        } catch {
            print(error.message)
            print(Arguments.usage)
            exit(2)
        }
        let report = Report()
        do {
            switch arguments.subject {
            case nil: print(Arguments.usage)
            case .queue: QueueBenchmark(report: report).run()
            case .transport: try TransportBenchmark(report: report).run()
            case .cache: try CacheBenchmark(report: report).run()
            case .diagnostics: try DiagnosticsBenchmark(report: report).run()
            case .outbox: try OutboxBenchmark(report: report).run()
            case .json: try JSONBenchmark(report: report).run()
            case .urgent, .start, .distance: try await runWithServer(arguments.subject, report)
            case .predictions: try await WhatIfBenchmark(report: report).run()
            }
        } catch {
            report.line("Benchmark: \(error)")
            exit(2)
        }
        report.printBars()
        exit(arguments.isStrict && report.misses > 0 ? EXIT_FAILURE : EXIT_SUCCESS)
    }

    private static func runWithServer(_ subject: Arguments.Subject?, _ report: Report) async throws {
        #if os(Linux) || os(macOS)
        let server = try LocalServer(in: ScratchFolder.choose().parent)
        defer { server.stop() }
        switch subject {
        case .start:
            #if os(Linux)
            try StartBenchmark(report: report, server: server).run()
            #else
            throw TransportBenchmark.Unavailable(description: "the subject start needs Linux")
            #endif
        case .distance: try DistanceBenchmark(report: report, server: server).run()
        default: try await UrgentWork(report: report, server: server).run()
        }
        #else
        throw TransportBenchmark.Unavailable(
            description: "no program may start another here: there is no server to measure with"
        )
        #endif
    }
}
