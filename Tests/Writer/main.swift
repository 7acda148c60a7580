// Writes until it is killed:
//
// - entries to a cache: `Writer cache <directory> <seed> <first version>`. Prints `begin <key> <version>` before and
//   `done <key> <version>` after each step; version 0 is a removal. `<key>/<n>` is the variant for `Foo: n`; its
//   removal is that of all variants.
// - calls to a recording of traffic: `Writer recording <file> <seed>`. Prints the number of the calls that have been
//   written.
// - requests to an outbox, which delivers them meanwhile: `Writer outbox <directory> <seed> <first number> <server>`.
//   Prints `<number> <id> <lane> <number of the one that comes first, or 0>` when one is safe.
// - files to a server, until all are there: `Writer upload <directory> <number at once> <tus or http> <server>`. The files
//   are in `<directory>/files`, the journals in `<directory>/journals`.
// - chains of bookings, which an outbox undoes: `Writer bookings <directory> <seed> <first number> <server>`. Prints
//   `whole <number>` and `undone <number>` at the end of each, and `undoing <number>` before a whole one is undone.
//
// Or runs a chain of plain operations, which may overflow the stack: `Writer chain <NetworkQueue or OperationQueue> <count>`.
// Or prints statuses of the system's network until there were so many, or for a minute: `Writer network - <count>`.

#if DEBUG
import Foundation

@testable import EasyNetwork
@testable import EasyNetworkDiagnostics

final class Writer: Sendable {
    private let cache: NetworkCache
    private let state: Locked<(random: UInt64, version: Int)>

    init(_ directory: URL, seed: UInt64, version: Int) throws {
        let disk = NetworkCache.Disk(directory: directory)
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
        let index = random % 8
        // From 4 on, a URL with ten variants, of which eight are kept.
        let variant = index < 4 ? nil : random / 512 % 10
        let key = "key \(index)"
        let version = random / 8 % 8 == 0 ? 0 : next
        let place = variant.map { "\(key)/\($0)" } ?? key
        Self.tell("begin \(place) \(version)")
        if version > 0 {
            let body = Data(repeating: UInt8(version % 251), count: random / 64 % 10_000)
            let attributes = ["version": "\(version)", "count": "\(body.count)"]
            var header = NetworkCache.Entry(key: key, requestedAt: Date(), receivedAt: Date(), attributes: attributes)
            header.nominated = variant.map { NominatedFields(vary: ["Vary": "Foo"], of: ["Foo": "\($0)"]) }
            cache.store(CacheEntry(header: header, body: body), in: .disk)
        } else {
            cache.remove(key)
        }
        await cache.flush()
        Self.tell("done \(place) \(version)")
    }

    static func tell(_ line: String) {
        FileHandle.standardOutput.write(Data((line + "\n").utf8))
    }
}

/// Answers at once, with a body of as many bytes as the path says.
struct Answers: NetworkTransport {
    private struct Exchange: TransportExchange {
        func cancel() {}
    }

    func start(
        _ request: TransportRequest,
        events: @escaping @Sendable (TransportEvent) -> Void
    ) -> any TransportExchange {
        let count = Int(request.url.lastPathComponent) ?? 0
        events(.head(TransportHead(statusCode: 200, headers: ["Content-Type": "text/plain"])))
        events(.body(Data(repeating: UInt8(ascii: "a"), count: count)))
        events(.end(TransportEnd()))
        return Exchange()
    }
}

struct Call: APIRequest {
    typealias Item = NetworkResponse
    var api: String
}

func record(_ file: URL, seed: UInt64) async throws {
    let recorder = try TrafficRecorder(file: file, maximumBodyCount: .max)
    Writer.tell("0")
    let host = HostConfiguration(baseURL: URL(string: "http://localhost"), transport: Answers())
    recorder.record(host)
    let service = EasyNetworkService(host)
    var count = seed
    for number in 1... {
        count = (count &* 2_862_933_555_777_941_757 &+ 3_037_000_493) % 60_000
        _ = try await service.send(Call(api: "\(number)/\(count)"))
        // Several at once, so that entries are written one after the other.
        guard number.isMultiple(of: 8) else { continue }
        try await recorder.settled()
        Writer.tell("\(number)")
    }
}

/// Runs a chain of plain operations and releases it, on the small stack of a thread of Dispatch.
func chain(_ kind: String, _ count: Int) async {
    await withCheckedContinuation { continuation in
        DispatchQueue.global().async {
            var operations: [Operation] = []
            for _ in 0..<count {
                let operation = BlockOperation {}
                if let last = operations.last { operation.addDependency(last) }
                operations.append(operation)
            }
            if kind == "NetworkQueue" {
                NetworkQueue().addOperations(operations, waitUntilFinished: true)
            } else {
                OperationQueue().addOperations(operations, waitUntilFinished: true)
            }
            operations = []
            continuation.resume()
        }
    }
}

/// Prints so many statuses of the system's network.
func watchNetwork(_ count: Int) async {
    DispatchQueue.global().asyncAfter(deadline: .now() + 60) { exit(EXIT_FAILURE) }
    var left = count
    for await status in NetworkReachability.system.statuses where status != .unknown {
        Writer.tell("\(status)")
        left -= 1
        if left == 0 { return }
    }
}

let arguments = CommandLine.arguments
if arguments.count > 3, let seed = UInt64(arguments[3]) {
    let place = URL(fileURLWithPath: arguments[2])
    switch arguments[1] {
    case "chain":
        await chain(arguments[2], Int(seed))
        exit(EXIT_SUCCESS)
    case "network":
        await watchNetwork(Int(seed))
        exit(EXIT_SUCCESS)
    case "upload":
        guard let server = URL(string: arguments[5]) else { exit(EXIT_FAILURE) }
        try await upload(place, atOnce: Int(seed), arguments[4], to: server)
        exit(EXIT_SUCCESS)
    case "recording": try await record(place, seed: seed)
    case "cache":
        let writer = try Writer(place, seed: seed, version: Int(arguments[4]) ?? 0)
        while true { await writer.step() }
    case "bookings":
        try await book(place, seed: seed, first: Int(arguments[4]) ?? 0, server: URL(string: arguments[5]))
    default: try fill(place, seed: seed, first: Int(arguments[4]) ?? 0, server: URL(string: arguments[5]))
    }
}
#endif

print("For tests, which build it in debug mode.")
