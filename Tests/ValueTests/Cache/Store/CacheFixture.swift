import EasyNetworkTesting
import Foundation

@testable import EasyNetwork
@testable import TestSupport

/// A directory for one test, a clock, and files with failures.
final class CacheFixture: Sendable {
    let directory: URL
    let clock: ManualClock
    let files = FaultyCacheFiles()

    init(clock: ManualClock = ManualClock()) {
        self.clock = clock
        directory = FileManager.default.temporaryDirectory
            .appendingPathComponent("cache-\(UUID().uuidString)", isDirectory: true)
    }

    deinit {
        try? FileManager.default.removeItem(at: directory)
    }

    func disk(bytes: Int? = nil, count: Int? = nil, age: TimeInterval? = nil) -> NetworkCache.Disk {
        NetworkCache.Disk(directory: directory, bytes: bytes, count: count, age: age)
    }

    /// A new cache with the directory, as after a relaunch.
    func cache(
        _ disk: NetworkCache.Disk? = nil,
        memoryBytes: Int = 20_000_000,
        memoryCount: Int = 1_000
    ) -> NetworkCache {
        NetworkCache(
            memoryBytes: memoryBytes,
            memoryCount: memoryCount,
            disk: disk ?? self.disk(),
            clock: clock,
            files: files
        )
    }

    func entry(_ key: String, version: Int = 1, count: Int = 100) -> CacheEntry {
        CacheEntry.made(key, version: version, count: count, at: clock.date)
    }

    func path(of key: String) -> String {
        let name = DiskCache.name(of: key)
        return "\(directory.path)/\(name.prefix(2))/\(name)"
    }

    /// The relative paths of all files in the directory.
    func paths() -> [String] {
        let all = FileManager.default.enumerator(atPath: directory.path)?.compactMap { $0 as? String } ?? []
        return all.filter { path in
            var isDirectory = ObjCBool(false)
            let exists = FileManager.default.fileExists(atPath: "\(directory.path)/\(path)", isDirectory: &isDirectory)
            return exists && !isDirectory.boolValue
        }.sorted()
    }

    var hasTemporaries: Bool { paths().contains { $0.hasSuffix(".tmp") } }
}

extension CacheEntry {
    /// An entry whose contents depend on its key and version.
    static func made(_ key: String, version: Int, count: Int, at date: Date) -> CacheEntry {
        var generator = SeededGenerator(seed: UInt64(version))
        var body = Data("\(key) \(version) ".utf8)
        while body.count < count { withUnsafeBytes(of: generator.next()) { body.append(contentsOf: $0) } }
        let header = NetworkCache.Entry(
            key: key,
            method: "GET",
            url: URL(string: "https://example.com/things?page=\(version)"),
            statusCode: 203,
            headers: ["Content-Type": "text/plain", "ETag": "\"\(version)\"", "Set-Cookie": "a", "set-cookie": "b"],
            requestedAt: date.addingTimeInterval(-0.25),
            receivedAt: date,
            attributes: ["version": "\(version)", "count": "\(count)"]
        )
        return CacheEntry(header: header, body: body)
    }

    /// The version, if the entry is whole and has the key.
    func version(of key: String) -> Int? {
        guard
            header.key == key,
            let version = header.attributes["version"].flatMap(Int.init),
            let count = header.attributes["count"].flatMap(Int.init),
            self == .made(key, version: version, count: count, at: header.receivedAt)
        else { return nil }
        return version
    }
}

extension CacheCoordinator {
    /// Whether no read or change is pending.
    var isIdle: Bool {
        changes.isEmpty && removals.isEmpty && flights.isEmpty && currentFlights.isEmpty && waitingCost == 0
    }
}

extension NetworkCache {
    func memoryEntry(for key: String) -> CacheEntry? {
        coordinator.withLock { $0.memory[key] }
    }

    func loaded(
        _ key: String,
        from tiers: CacheStorage = .all,
        isPromoting: Bool = true
    ) async -> Result<CacheEntry, CacheMiss> {
        await withCheckedContinuation { continuation in
            load(key, from: tiers, isPromoting: isPromoting) { continuation.resume(returning: $0) }
        }
    }

    func loaded(_ key: String, for request: HTTPHeaders) async -> Result<CacheEntry, CacheMiss> {
        await withCheckedContinuation { continuation in
            load(key, for: request, isPromoting: false) { found in
                let isFor = (try? found.get())?.header.nominated?.match(request) == true
                continuation.resume(returning: isFor ? found : .failure(.absent))
            }
        }
    }

    func stored(_ entry: CacheEntry, in tiers: CacheStorage = .all) async {
        store(entry, in: tiers)
        await flush()
    }

    func removed(_ key: String) async {
        remove(key)
        await flush()
    }
}
