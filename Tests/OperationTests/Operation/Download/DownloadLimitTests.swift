import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("DownloadOperation and bandwidth limits", .timeLimit(.minutes(10)))
struct DownloadLimitTests {
    @Test(
        "TRF-1: a file takes as long as its limit says, that of the operation or of the queue",
        arguments: [true, false],
        [1, 3]
    )
    func limited(isOfQueue: Bool, segments: Int) async throws {
        let count = 4_000_000
        let file = RangedFile(RangedFile.bytes(count))
        let server = try MockServer()
        server.route("*", "/file") { file.answer($0) }
        let clock = ManualClock()
        let service = EasyNetworkService(
            server.host(transport: TransportConfiguration.sharedTransport) { $0.clock = clock }
        )
        let folder = TestFolder()
        let queue = NetworkQueue(name: "downloads", clock: clock)
        let operation = DownloadOperation(FileRequest(), to: folder.file("out"), service: service)
        operation.segmentCount = segments
        if isOfQueue { queue.bandwidthLimit = 1_000_000 } else { operation.bandwidthLimit = 1_000_000 }
        let start = clock.now
        queue.addOperation(operation)
        var steps = 0
        while operation.result == nil, steps < 600_000 {
            steps += 1
            // Advances the limit's clock, and gives the transfer real time; it does not synchronise.
            if !file.requests.isEmpty { clock.advance(by: 0.01) }
            try await Task.sleep(nanoseconds: 100_000)
        }
        await operation.ended()
        expect(operation.error == nil)
        expect(folder.data("out"), equals: file.data)
        // Bytes that were granted before a pause or arrived during it are not delayed.
        let slack = TimeInterval(segments) * 0.7
        expect(clock.now - start >= TimeInterval(count) / 1_000_000 - slack, "\(clock.now - start) seconds")
    }
}
