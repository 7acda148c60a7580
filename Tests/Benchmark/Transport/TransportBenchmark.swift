import Foundation

/// The costs of small requests and large bodies over the transports, compared with alternatives.
struct TransportBenchmark {
    /// The reason why the benchmark cannot run.
    struct Unavailable: Error, CustomStringConvertible {
        let description: String
    }

    let report: Report

    /// - Throws: ``Unavailable``, or an error of Foundation about files and processes.
    func run() throws {
        #if DEBUG
        report.line("A debug build: the figures mean little. Use swift run -c release Benchmark transport.")
        #endif
        #if os(Linux) || os(macOS)
        let descriptors = Memory.descriptors
        let folder = ScratchFolder.choose()
        report.line(folder.remark)
        let server = try LocalServer(in: folder.parent)
        defer { server.stop() }
        // On Linux URLSession writes downloads here: the same place as for the other contenders, which is removed at
        // the end. No other thread reads the environment yet.
        setenv("TMPDIR", server.folder.path, 1)
        // First, because it measures the memory of the process, of which URLSession keeps much.
        try LargeBodies(report: report, server: server).run()
        SmallRequests(report: report, url: try server.url("/small")).run()
        try CancelledExchanges(report: report, url: try server.url("/big")).run()
        if let before = descriptors, let after = Memory.descriptors {
            // Some descriptors belong to Dispatch and to the server's process.
            report.line("\nDescriptors open at the beginning: \(before); now: \(after).")
        }
        #else
        throw Unavailable(description: "no program may start another here: there is no server to measure with")
        #endif
    }
}
