import Dispatch
import EasyNetwork
import EasyNetworkOutbox
import Foundation

/// The costs of an outbox with many entries, over a transport that accepts all at once.
struct OutboxBenchmark {
    private struct Message: APIRequest, Codable {
        typealias Item = Void
        let number: Int
        var api: String { "messages/\(number)" }
        var method: NetworkService.Method { .post }
    }

    /// Accepts each request at once, and notes the time of some.
    private final class Accepting: NetworkTransport, @unchecked Sendable {
        // Sendable because the lock guards the variables.
        private struct Exchange: TransportExchange {
            func cancel() {}
        }

        private let lock = NSLock()
        private var count = 0
        private var times: [DispatchTime] = []

        /// The seconds of each part of the requests.
        var seconds: [Double] {
            let times = lock.withLock { self.times }
            return zip(times, times.dropFirst()).map { Double($1.uptimeNanoseconds - $0.uptimeNanoseconds) / 1e9 }
        }

        func start(
            _ request: TransportRequest,
            events: @escaping @Sendable (TransportEvent) -> Void
        ) -> any TransportExchange {
            lock.withLock {
                if count.isMultiple(of: OutboxBenchmark.part) { times.append(DispatchTime.now()) }
                count += 1
                if count == OutboxBenchmark.count { times.append(DispatchTime.now()) }
            }
            events(.head(TransportHead(statusCode: 204)))
            events(.end(TransportEnd()))
            return Exchange()
        }
    }

    static let count = 100_000
    static let laneCount = 100
    /// The entries whose cost is compared: the first ones and the last ones.
    static let part = 10_000

    let report: Report

    func run() throws {
        let scratch = ScratchFolder.choose()
        let folder = scratch.parent.appendingPathComponent("EasyNetwork-\(UUID().uuidString)", isDirectory: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        report.line("\(Self.count) entries in \(Self.laneCount) lanes, by the clock. \(scratch.remark)")
        report.line("")
        compare("added", try add(to: open(folder, NetworkQueue(), Accepting())))

        Memory.trim()
        let before = Memory.settledAllocated
        let queue = NetworkQueue()
        queue.isSuspended = true
        let transport = Accepting()
        let outbox = try open(folder, queue, transport)
        let events = outbox.events
        let start = try Measurement.seconds {
            try outbox.start()
            Measurement.wait { for await case .sending in events { return } }
        }
        report.line("started, until the first job is in the queue: \(Report.number(start)) s")
        report.bar("start with \(Self.count) entries", start, atMost: 1, unit: " s")
        if let before, let after = Memory.settledAllocated {
            let bytes = Double(after - before) / Double(Self.count)
            report.line("memory of a waiting entry: \(Report.number(bytes, digits: 0)) bytes")
            report.bar("memory of a waiting entry", bytes, atMost: 1_024, unit: " bytes")
        }
        queue.isSuspended = false
        Measurement.wait { _ = try? await outbox.drain(deadline: 600) }
        guard transport.seconds.count == Self.count / Self.part else { Report.stop("entries were not delivered") }
        compare("delivered", transport.seconds)
    }

    /// - Parameter seconds: of each ``part``.
    private func compare(_ name: String, _ seconds: [Double]) {
        guard let first = seconds.first, let last = seconds.last else { return }
        let microseconds = [first, last].map { Report.number($0 / Double(Self.part) * 1_000_000) }
        report.line("\(name): \(microseconds[0]) µs each of the first \(Self.part), \(microseconds[1]) of the last")
        report.bar("\(name), the larger of the two against the other", max(first / last, last / first), atMost: 2)
    }

    private func open(_ folder: URL, _ queue: NetworkQueue, _ transport: Accepting) throws -> Outbox {
        let host = HostConfiguration(baseURL: URL(string: "http://localhost")) { $0.transport = transport }
        let outbox = try Outbox(directory: folder, queue: queue, service: EasyNetworkService(host))
        outbox.register(Message.self, name: "message")
        return outbox
    }

    /// - Returns: the seconds of each ``part``.
    private func add(to outbox: Outbox) throws -> [Double] {
        try stride(from: 0, to: Self.count, by: Self.part).map { first in
            try Measurement.seconds {
                for number in first..<first + Self.part {
                    try outbox.add(Message(number: number), lane: "lane \(number % Self.laneCount)")
                }
            }
        }
    }
}
