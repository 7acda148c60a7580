import Dispatch
import Foundation

/// Where the work on disk is done: changes one after the other, in the order in which they were added; readings beside
/// them, so that none waits for a row of writes.
final class DiskQueue: Sendable {
    let directory: CacheDirectory
    let limits: NetworkCache.Disk
    private let turns = TurnTaking()
    private let cache: Locked<DiskCache>
    private let changes = DispatchQueue(label: "EasyNetwork.cache.changes", autoreleaseFrequency: .workItem)
    /// A few threads at most, however many ask.
    private let readings = (0..<4).map {
        DispatchQueue(label: "EasyNetwork.cache.readings.\($0)", autoreleaseFrequency: .workItem)
    }

    init(_ directory: CacheDirectory, _ limits: NetworkCache.Disk) {
        self.directory = directory
        self.limits = limits
        cache = Locked(DiskCache(directory: directory, limits: limits))
    }

    /// Adds a change, also under the lock that decides its place in the order. Call ``run()`` when that is open.
    func add(_ change: @escaping @Sendable () -> Void) {
        turns.add(change)
    }

    func run() {
        changes.async { self.turns.run() }
    }

    func read(_ key: String, _ reading: @escaping @Sendable () -> Void) {
        readings[Int(UInt(bitPattern: key.hashValue) % UInt(readings.count))].async(execute: reading)
    }

    /// Works on the files. Only in a change, where nobody else holds the lock.
    func withCache<Value, Failure>(
        _ body: (inout DiskCache) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        try cache.withLock { cache in
            Result { () throws(Failure) in try body(&cache) }
        }.get()
    }
}
