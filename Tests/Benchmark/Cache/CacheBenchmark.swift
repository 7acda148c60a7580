import Dispatch
import EasyNetwork
import EasyNetworkResources
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The costs of the cache, compared with Foundation's `URLCache` in the same run.
struct CacheBenchmark {
    /// The number of answers of 1 KB.
    static let count = 1_000
    /// The number for the disk of `URLCache`, which takes tens of milliseconds for each answer on Linux.
    static let fewer = 50
    /// The highest cost of a `RequestOperation` with a memory hit in microseconds.
    static let hitLimit = 20.0

    /// The highest cost of a resource that a `ResourceLoader` has in memory in microseconds, and the number of hits.
    static let resourceLimit = 5.0
    static let resourceHits = 10_000

    let report: Report

    func run() throws {
        let name = "EasyNetwork-\(UUID().uuidString)"
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(name, isDirectory: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let samples = "the lowest of \(Measurement.samples)"
        report.line("\(Self.count) answers of 1 KB; microseconds each, by the clock, \(samples)")
        report.line("")
        report.line("what".filled(34) + "EasyNetwork".aligned(13) + "URLCache".aligned(13) + "ratio".aligned(9))
        let ours = try CacheContender(folder.appendingPathComponent("ours"))
        let foundation = FoundationContender(folder.appendingPathComponent("foundation"))
        row("stored, until it is on disk", ours.write(Self.count), foundation.write(Self.fewer))
        row("found in memory", ours.memoryHits(Self.count), foundation.memoryHits(Self.count))
        row("found on disk", ours.diskHits(Self.count), foundation.diskHits(Self.fewer))
        let hit = ours.operations(Self.count, rounds: 20)
        report.line("")
        report.line("a RequestOperation that the memory answers: \(Report.number(hit)) microseconds of the processor")
        report.bar("a memory hit through RequestOperation", hit, atMost: Self.hitLimit, unit: " µs")
        let resources = ResourceContender(50)
        for (name, figure) in [
            ("cachedResource", resources.direct(Self.resourceHits)),
            ("await resource", resources.awaited(Self.resourceHits)),
            ("load, to its completion", resources.told(Self.resourceHits)),
        ] {
            report.line("a decoded resource in memory, \(name): \(Report.number(figure)) microseconds")
            report.bar("a resource in memory, \(name)", figure, atMost: Self.resourceLimit, unit: " µs")
        }
    }

    private func row(_ name: String, _ ours: Double, _ foundations: Double) {
        let ratio = Report.number(ours / foundations).aligned(9)
        report.line(
            name.filled(34) + Report.number(ours).aligned(13) + Report.number(foundations).aligned(13) + ratio
        )
    }
}

extension Measurement {
    /// The lowest time of a step in microseconds; `work` runs `count` steps.
    static func microseconds(_ count: Int, _ work: () -> Void) -> Double {
        let lowest = (0..<samples).map { _ in seconds(work) }.min() ?? .nan
        return lowest / Double(count) * 1_000_000
    }

    /// Runs asynchronous work and blocks until it has ended.
    static func wait(_ work: @escaping @Sendable () async -> Void) {
        let done = DispatchSemaphore(value: 0)
        Task {
            await work()
            done.signal()
        }
        done.wait()
    }
}
