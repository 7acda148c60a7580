// Writes entries into a cache until it is killed: `CacheWriter <directory> <seed> <first version>`.
//
// A line tells each step: `begin <key> <version>`, and when it is done `done <key> <version>`; version 0 is a removal.

#if DEBUG
import Foundation

@testable import EasyNetwork

final class Writer: Sendable {
    private let cache: NetworkCache
    private let state: Locked<(random: UInt64, version: Int)>

    init(_ directory: URL, seed: UInt64, version: Int) throws {
        let disk = try NetworkCache.Disk(directory: directory)
        cache = NetworkCache(memory: .init(count: 0), disk: disk, clock: SystemClock(), files: ChoppedFiles())
        state = Locked((seed, version))
    }

    func step() {
        let (random, next) = state.withLock { state in
            // Knuth's linear congruential generator, of which the upper bits are good.
            state.random = state.random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            state.version += 1
            return (Int(state.random >> 33), state.version)
        }
        let key = "key \(random % 8)"
        let version = random / 8 % 8 == 0 ? 0 : next
        Self.tell("begin \(key) \(version)")
        let done: @Sendable (Result<Void, CacheFailure>) -> Void = { result in
            guard case .success = result else { return Self.tell("failed \(result)") }
            Self.tell("done \(key) \(version)")
            self.step()
        }
        guard version > 0 else { return cache.remove(key, completion: done) }
        let body = Data(repeating: UInt8(version % 251), count: random / 64 % 10_000)
        let attributes = ["version": "\(version)", "count": "\(body.count)"]
        let header = CacheHeader(key: key, requestedAt: Date(), receivedAt: Date(), attributes: attributes)
        cache.store(CacheEntry(header: header, body: body), in: .disk, completion: done)
    }

    private static func tell(_ line: String) {
        FileHandle.standardOutput.write(Data((line + "\n").utf8))
    }
}

let arguments = CommandLine.arguments
if arguments.count == 4, let seed = UInt64(arguments[2]), let version = Int(arguments[3]) {
    try Writer(URL(fileURLWithPath: arguments[1], isDirectory: true), seed: seed, version: version).step()
    dispatchMain()
}
#endif

print("For tests, which build it in debug mode.")
