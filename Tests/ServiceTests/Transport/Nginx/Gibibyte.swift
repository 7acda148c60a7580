#if os(Linux)
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

/// Transfers a gibibyte over one listener, in a process that runs nothing else.
struct Gibibyte {
    private let listener: NginxServer.Listener

    private static let byteCount = NginxServer.bigCount
    private static let memoryLimit = 64 << 20

    init(_ listener: NginxServer.Listener) {
        self.listener = listener
    }

    /// Runs `body` after a first exchange, and checks the growth of memory.
    private func inFlatMemory(
        _ body: (NginxClient) async throws -> Void
    ) async throws {
        let client = try await NginxClient()
        await expect(client.outcome(listener, "/small").isSmall)
        let before = try PeakMemory.now()
        try await body(client)
        let growth = try PeakMemory.now() - before
        expect(growth < Self.memoryLimit || Sanitizer.isThere, "\(growth >> 20) MiB more")
    }

    private func request(
        _ client: NginxClient,
        _ path: String,
        _ method: NetworkService.Method = .get,
        _ body: TransportBody = .none
    ) -> TransportRequest {
        client.request(.init(listener: listener, ipv6: false), path, method, body)
    }

    func download() async throws {
        try await inFlatMemory { client in
            let contents = await CountedExchange(request(client, "/big"), over: client.transport).end()
            expect(contents.status == 200 && contents.byteCount == Self.byteCount)
            expect(contents.end?.error == nil)
            expect(contents.end?.metrics?.bytesReceived ?? 0 > Self.byteCount)
        }
    }

    func uploadFile() async throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try Data().write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let handle = try FileHandle(forWritingTo: file)
        // A sparse file takes no space on the disk.
        try handle.truncate(atOffset: UInt64(Self.byteCount))
        try handle.close()
        try await upload(.file(file))
    }

    func uploadPieces() async throws {
        let piece = Data(repeating: 5, count: 1 << 20)
        let stream = TransportBodyStream {
            let left = Locked(Self.byteCount / piece.count)
            return AsyncStream<Data> {
                let isLeft = left.withLock { left in
                    left -= 1
                    return left >= 0
                }
                return isLeft ? piece : nil
            }
        }
        try await upload(.stream(stream))
    }

    private func upload(_ body: TransportBody) async throws {
        try await inFlatMemory { client in
            let contents = await client.outcome(request(client, "/upload", .put, body))
            let arrived = Int(contents.text) ?? 0
            // The chunk sizes are counted, too.
            expect((Self.byteCount..<Self.byteCount + (4 << 20)).contains(arrived), "\(contents)")
            expect(contents.end?.error == nil && contents.metrics?.bytesSent ?? 0 > Self.byteCount)
        }
    }

    /// Reads a few bytes, pauses while other exchanges use the transport, then reads the rest or cancels.
    func backPressure(cancels: Bool) async throws {
        try await inFlatMemory { client in
            let held = CountedExchange(request(client, "/big"), over: client.transport, isHeld: true)
            await held.begun()
            for _ in 0..<100 {
                await expect(client.outcome(listener, "/small").isSmall)
            }
            let contents = held.contents
            expect(contents.end == nil && (1..<4 << 20).contains(contents.byteCount), "\(contents)")
            if cancels {
                held.cancel()
                let end = await held.end()
                expect(end.end?.error?.code == .cancelled && end.byteCount == contents.byteCount)
                let received = end.end?.metrics?.bytesReceived ?? 0
                expect(received < 48 << 20, "\(received >> 20) MiB came in")
            } else {
                held.letGo()
                let end = await held.end()
                expect(end.byteCount == Self.byteCount && end.end?.error == nil, "\(end)")
            }
            await expect(client.outcome(listener, "/small").isSmall)
        }
    }
}
#endif
