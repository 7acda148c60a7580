#if os(Linux) || os(macOS)
import EasyNetwork
import Foundation

/// What a gigabyte takes, each way, beside the curl program.
struct LargeBodies {
    private static let samples = 3
    private static let mebibyte = 1_048_576.0

    let report: Report
    let server: LocalServer

    func run() throws {
        report.line("\n1 GiB between nginx and a file, the best of \(Self.samples): MB a second; resident MiB.")
        let curl = Program("curl")
        if curl == nil { report.line("There is no curl in PATH: nothing to compare with.") }
        report.line(row(["", "this package", "curl", "ratio", "before", "peak"]))
        let transport = DefaultTransport(.direct)
        let service = EasyNetworkService(HostConfiguration(baseURL: nil, transport: transport))
        let queue = NetworkQueue()
        for transfer in LargeTransfer.allCases {
            try measure(transfer, by: "\(DefaultTransport.self)", curl) { file in
                try transfer.seconds(over: transport, server, file)
            }
            let operation = transfer == .download ? "DownloadOperation" : "UploadOperation"
            try measure(transfer, by: operation, curl) { file in
                try transfer.seconds(on: queue, service, server, file)
            }
        }
    }

    private func measure(
        _ transfer: LargeTransfer,
        by name: String,
        _ curl: Program?,
        _ seconds: (URL) throws -> Double
    ) throws {
        let file = server.folder.appendingPathComponent("file")
        var own = Double.infinity
        var others = Double.infinity
        var before = 0
        var peak = 0
        // The first is a warm-up.
        for sample in 0...Self.samples {
            try prepare(file, for: transfer)
            Memory.trim()
            Memory.forgetPeak()
            before = max(before, Memory.resident ?? 0)
            let ownSeconds = try seconds(file)
            peak = max(peak, Memory.peakResident ?? 0)
            try check(file)
            try prepare(file, for: transfer)
            let otherSeconds = try curl.map { try transfer.seconds(with: $0, server, file) }
            guard sample > 0 else { continue }
            own = min(own, ownSeconds)
            others = min(others, otherSeconds ?? .infinity)
        }
        try FileManager.default.removeItem(at: file)
        show("\(transfer.name), \(name)", own, curl == nil ? nil : others, before, peak)
    }

    /// To write over a file takes longer than to write a new one: each begins with none.
    private func prepare(_ file: URL, for transfer: LargeTransfer) throws {
        try? FileManager.default.removeItem(at: file)
        if transfer == .upload { try ServerFiles.makeSparse(file) }
    }

    private func check(_ file: URL) throws {
        let size = try FileManager.default.attributesOfItem(atPath: file.path)[.size] as? NSNumber
        guard size?.intValue == LocalServer.bigCount else {
            throw TransportBenchmark.Unavailable(description: "the file has \(size ?? 0) bytes")
        }
    }

    private func show(_ name: String, _ own: Double, _ curl: Double?, _ before: Int, _ peak: Int) {
        func rate(_ seconds: Double) -> String {
            Report.number(Double(LocalServer.bigCount) / seconds / 1_000_000, digits: 0)
        }
        func mebibytes(_ bytes: Int) -> String {
            bytes == 0 ? "-" : Report.number(Double(bytes) / Self.mebibyte, digits: 1)
        }
        let ratio = curl.map { $0 / own }
        report.line(
            row([
                name, rate(own), curl.map(rate) ?? "-", ratio.map { Report.number($0) } ?? "-",
                mebibytes(before), mebibytes(peak),
            ])
        )
        if let ratio { report.bar("1 GiB, \(name): throughput against curl's", ratio, atLeast: 0.9) }
        if peak > 0 {
            report.bar("1 GiB, \(name): resident at the peak", Double(peak) / Self.mebibyte, atMost: 64, unit: " MiB")
        }
    }

    private func row(_ cells: [String]) -> String {
        cells[0].filled(40) + cells.dropFirst().map { $0.aligned(14) }.joined()
    }
}
#endif
