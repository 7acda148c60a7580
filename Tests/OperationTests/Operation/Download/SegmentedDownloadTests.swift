import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("DownloadOperation in segments")
struct SegmentedDownloadTests {
    private static let count = 5_000_001

    private func run(_ fixture: DownloadFixture, _ change: (DownloadOperation) -> Void = { _ in }) async
        -> Result<URL, NetworkError>
    {
        await fixture.run(
            fixture.operation { options in
                options.segmentCount = 4
                change(options)
            }
        )
    }

    @Test("TRF-2: a file in four ranges is one file")
    func four() async throws {
        let fixture = try DownloadFixture(Self.count)
        let digest = SHA256.digest(of: fixture.file.data).hexadecimal
        await expect(run(fixture) { $0.sha256 = digest }.code == nil)
        expect(fixture.folder.data("out"), equals: fixture.file.data)
        expect(fixture.folder.names, equals: ["out"])
        let quarter = Self.count / 4
        let ranges = fixture.file.ranges
        expect(ranges.first, equals: .some(nil))
        expect(
            Set(ranges.compactMap { $0 }),
            equals: [
                "bytes=\(quarter)-\(2 * quarter - 1)", "bytes=\(2 * quarter)-\(3 * quarter - 1)",
                "bytes=\(3 * quarter)-",
            ]
        )
        expect(fixture.file.requests.dropFirst().allSatisfy { $0.headers["If-Range"] == "\"one\"" })
    }

    @Test("TRF-2: without ranges, length or a strong validator it comes in one", arguments: 0..<3)
    func one(_ what: Int) async throws {
        let fixture = try DownloadFixture(Self.count, tag: what == 0 ? "W/\"one\"" : "\"one\"")
        let data = fixture.file.data
        fixture.file.change { _, _, response in
            if what == 1 { response.headers["Accept-Ranges"] = "none" }
            if what == 2 { response.body = .chunks([data]) }
        }
        await expect(run(fixture).code == nil)
        expect(fixture.folder.data("out"), equals: data)
        expect(fixture.file.requests.count, equals: 1)
    }

    @Test("TRF-2: a slow disk holds back each sender, and lets each go on")
    func slowDisk() async throws {
        let fixture = try DownloadFixture(24_000_000)
        var calls = FileCalls()
        let write = calls.write
        calls.write = { descriptor, bytes, count, offset in
            // Simulates the time of a disk; nothing waits for it.
            usleep(500)
            return write(descriptor, bytes, count, offset)
        }
        await expect(fixture.run(fixture.operation(calls: calls) { $0.segmentCount = 4 }).code == nil)
        expect(fixture.folder.data("out"), equals: fixture.file.data)
    }

    @Test("TRF-3: the bytes of a segment are not fetched again", arguments: UInt64(1)...3)
    func resumed(seed: UInt64) async throws {
        let fixture = try DownloadFixture(Self.count, retries: 2)
        let generator = Locked(SeededGenerator(seed: seed))
        let cuts = Locked(0)
        fixture.file.change { _, number, response in
            guard number < 12 else { return }
            let cut = generator.withLock { Int.random(in: 1..<600_000, using: &$0) }
            cuts.withLock { $0 += cut }
            response.fault = .truncate(after: cut)
        }
        var result = await run(fixture)
        var count = 1
        while result.code != nil, count < 20 {
            result = await run(fixture)
            count += 1
        }
        expect(result.code == nil, "seed \(seed)")
        expect(fixture.folder.data("out"), equals: fixture.file.data, "seed \(seed)")
        // Every range begins at missing bytes, so no range begins twice.
        let lowers = fixture.file.ranges.compactMap { $0?.dropFirst(6).split(separator: "-").first.flatMap { Int($0) } }
        expect(Set(lowers).count, equals: lowers.count, "seed \(seed): \(lowers)")
    }

    @Test("TRF-3: a file that changes between its segments comes from its beginning, in one segment")
    func changed() async throws {
        let fixture = try DownloadFixture(Self.count)
        let other = RangedFile.bytes(3_000_000, seed: 9)
        let file = fixture.file
        fixture.file.change { request, number, _ in
            if number == 0 { file.replace(other, tag: "\"two\"") }
        }
        await expect(run(fixture).code == nil)
        expect(fixture.folder.data("out"), equals: other)
        expect(fixture.folder.names, equals: ["out"])
    }

    @Test("TRF-3: paused and resumed, and cancelled and begun again, it has each byte once")
    func paused() async throws {
        let fixture = try DownloadFixture(Self.count)
        fixture.file.change { _, number, response in
            if number < 8 { response.fault = .stall(at: .responseBody(after: 200_000)) }
        }
        let operation = fixture.operation { $0.segmentCount = 4 }
        NetworkQueue(name: "downloads").addOperation(operation)
        await expect(eventually { operation.progress.completedUnitCount == 800_000 })
        operation.pause()
        operation.resume()
        await expect(eventually { operation.progress.completedUnitCount == 1_600_000 })
        operation.cancel()
        await operation.ended()
        await expect(run(fixture).code == nil)
        expect(fixture.folder.data("out"), equals: fixture.file.data)
        expect(fixture.file.requests.count, equals: 12)
    }
}
