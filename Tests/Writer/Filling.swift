#if DEBUG
import Foundation

@testable import EasyNetwork
@testable import EasyNetworkOutbox

/// The test has a type of its own with the same name on disk.
private struct Numbered: APIRequest, Codable {
    typealias Item = Void
    let number: Int
    let lane: String
    let file: URL?
    var api: String { "\(lane)/\(number)" }
    var method: NetworkService.Method { .post }
    var options: RequestOptions { RequestOptions(retry: .never) }
    var body: RequestBody? { file.map { .file($0) } }
}

/// A clock that is wrong, as that of a machine may be.
private struct SkewedClock: NetworkClock {
    let seconds: TimeInterval
    private let system = SystemClock()
    var now: TimeInterval { system.now }
    var date: Date { system.date + seconds }

    init(seconds: TimeInterval) {
        self.seconds = seconds
    }

    func schedule(after delay: TimeInterval, _ action: @escaping @Sendable () -> Void) -> any ClockTimer {
        system.schedule(after: delay, action)
    }
}

/// Adds requests to an outbox without end.
func fill(_ directory: URL, seed: UInt64, first: Int, server: URL?) throws {
    let queue = NetworkQueue()
    // No delay between two tries but the time until the outbox looks again.
    let host = HostConfiguration(baseURL: server) {
        $0.random = { 0 }
        $0.clock = SkewedClock(seconds: [-86_400, 0, 86_400][Int(seed % 3)])
    }
    let outbox = try Outbox(directory: directory, queue: queue, service: EasyNetworkService(host))
    outbox.register(Numbered.self, name: "numbered")
    try outbox.start()
    var random = seed
    func next(_ count: UInt64) -> Int {
        random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return Int((random >> 33) % count)
    }
    let file = directory.deletingLastPathComponent().appendingPathComponent("file \(UUID().uuidString)")
    var last: (id: UUID, number: Int)?
    for number in first... {
        // By the hundred thousands the processes that write at the same time differ, which know no common order.
        let lane = "\(number / 100_000 % 10)-\(next(3))"
        let hasFile = next(8) == 0
        if hasFile { try Data("file of \(number)".utf8).write(to: file) }
        // The server may have refused it already.
        let before = next(6) == 0 ? last.take() : nil
        if let before, try outbox.deadLetters.contains(where: { $0.id == before.id }) { continue }
        let request = Numbered(number: number, lane: lane, file: hasFile ? file : nil)
        let id = try outbox.add(request, lane: lane, after: before.map { [$0.id] } ?? [])
        if hasFile { try FileManager.default.removeItem(at: file) }
        last = (id, number)
        // A drain stops at once, or goes on until the start ends it.
        let (drains, deadline, starts) = (next(40) == 0, TimeInterval(next(2)), next(10) == 0)
        if drains { Task { try await outbox.drain(deadline: deadline) } }
        if starts { try outbox.start() }
        Writer.tell("\(number) \(id) \(lane) \(before?.number ?? 0)")
        if next(20) == 0 { try outbox.retry(outbox.deadLetters.prefix(2).map(\.id) + [id]) }
        if next(30) == 0 {
            // Nothing comes after it.
            last = nil
            Writer.tell("removed \(number)")
            try outbox.remove(id)
        }
    }
}
#endif
