import Foundation

/// What small requests and large bodies cost over the transports, beside what else there is for the same.
struct TransportBenchmark {
    /// Why nothing can be measured here.
    struct Unavailable: Error, CustomStringConvertible {
        let description: String
    }

    let report: Report

    /// - Throws: ``Unavailable``, or what Foundation says of files and processes.
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
        // Where URLSession on Linux writes what it downloads: it is to have no slower place than the others, and what
        // it leaves behind goes with the rest. Nobody else reads the environment yet.
        setenv("TMPDIR", server.folder.path, 1)
        // First, as it looks at the memory of the process, and URLSession leaves much of it behind.
        try LargeBodies(report: report, server: server).run()
        SmallRequests(report: report, url: try server.url("/small")).run()
        try CancelledExchanges(report: report, url: try server.url("/big")).run()
        if let before = descriptors, let after = Memory.descriptors {
            // Not all of them are sockets: Dispatch and the server's process have some, too.
            report.line("\nDescriptors open at the beginning: \(before); now: \(after).")
        }
        #else
        throw Unavailable(description: "no program may start another here: there is no server to measure with")
        #endif
    }
}
