import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork

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
        let service = EasyNetworkService(server.host(transport: DefaultTransport.shared) { $0.clock = clock })
        let folder = TestFolder()
        let limit = BandwidthLimit(bytesPerSecond: 1_000_000, clock: clock)
        let queue = NetworkQueue(name: "downloads")
        var options = DownloadOptions()
        options.segmentCount = segments
        if isOfQueue { queue.bandwidthLimit = limit } else { options.bandwidthLimit = limit }
        let operation = DownloadOperation(FileRequest(), to: folder.file("out"), options: options, service: service)
        let start = clock.now
        queue.addOperation(operation)
        var steps = 0
        while operation.result == nil, steps < 600_000 {
            steps += 1
            // Not to synchronise: time passes for the limit, and what it lets through takes some of its own.
            if !file.requests.isEmpty { clock.advance(by: 0.01) }
            try await Task.sleep(nanoseconds: 100_000)
        }
        await operation.finished()
        #expect(operation.error == nil)
        #expect(folder.data("out") == file.data)
        // What had been promised when it was held back, and what came while it was, need not be waited for.
        let slack = TimeInterval(segments) * 0.7
        #expect(clock.now - start >= TimeInterval(count) / 1_000_000 - slack, "\(clock.now - start) seconds")
    }
}
