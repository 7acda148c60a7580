// Writes entries to a cache until it is killed: `CacheWriter <directory> <seed> <first version>`.
//
// Prints `begin <key> <version>` before and `done <key> <version>` after each step; version 0 is a removal.

#if DEBUG
import Foundation

@testable import EasyNetwork

final class Writer: Sendable {
    private let cache: NetworkCache
    private let state: Locked<(random: UInt64, version: Int)>

    init(_ directory: URL, seed: UInt64, version: Int) throws {
        let disk = try NetworkCache.Disk(directory: directory)
        cache = NetworkCache(memoryBytes: 0, memoryCount: 0, disk: disk, clock: SystemClock(), files: ChoppedFiles())
        state = Locked((seed, version))
    }

    func step() async {
        let (random, next) = state.withLock { state in
            // Knuth's linear congruential generator, whose upper bits are good.
            state.random = state.random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            state.version += 1
            return (Int(state.random >> 33), state.version)
        }
        let key = "key \(random % 8)"
        let version = random / 8 % 8 == 0 ? 0 : next
        Self.tell("begin \(key) \(version)")
        if version > 0 {
            let body = Data(repeating: UInt8(version % 251), count: random / 64 % 10_000)
            let attributes = ["version": "\(version)", "count": "\(body.count)"]
            let header = NetworkCache.Entry(key: key, requestedAt: Date(), receivedAt: Date(), attributes: attributes)
            cache.store(CacheEntry(header: header, body: body), in: .disk)
        } else {
            cache.remove(key)
        }
        await cache.flush()
        Self.tell("done \(key) \(version)")
    }

    private static func tell(_ line: String) {
        FileHandle.standardOutput.write(Data((line + "\n").utf8))
    }
}

let arguments = CommandLine.arguments
if arguments.count == 4, let seed = UInt64(arguments[2]), let version = Int(arguments[3]) {
    let writer = try Writer(URL(fileURLWithPath: arguments[1], isDirectory: true), seed: seed, version: version)
    while true { await writer.step() }
}
#endif

print("For tests, which build it in debug mode.")
