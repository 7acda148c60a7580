import EasyNetworkTesting
import Foundation

@testable import EasyNetwork
@testable import TestSupport

/// A folder, and a server with a file.
struct DownloadFixture: Sendable {
    let folder = TestFolder()
    let server: MockServer
    let file: RangedFile
    let service: EasyNetworkService

    init(
        _ count: Int = 300_000,
        tag: String? = "\"one\"",
        retries: Int = 0,
        over wire: Wire = .standard,
        clock: any NetworkClock = SystemClock()
    ) throws {
        let file = RangedFile(RangedFile.bytes(count), tag: tag)
        server = try MockServer()
        server.route("*", "/file") { file.answer($0) }
        self.file = file
        let host = server.host(transport: wire.transport) { settings in
            settings.retry = RetryPolicy(maximumRetryCount: retries, baseDelay: 0)
            settings.clock = clock
        }
        service = EasyNetworkService(host)
    }

    var destination: URL { folder.file("out") }

    func operation(
        _ request: FileRequest = FileRequest(),
        to destination: URL? = nil,
        calls: FileCalls = FileCalls(),
        _ change: (DownloadOperation) -> Void = { _ in }
    ) -> DownloadOperation {
        let operation = DownloadOperation(request, to: destination ?? self.destination, service: service)
        operation.calls.exchange(calls)
        change(operation)
        return operation
    }

    /// Runs the operation to its end.
    @discardableResult
    func run(_ operation: DownloadOperation) async -> Result<URL, NetworkError> {
        NetworkQueue(name: "downloads").addOperation(operation)
        await operation.ended()
        return operation.result ?? .failure(NetworkError(code: .invalidRequest, message: "no result"))
    }

    /// Runs an operation whose answer breaks off after that many bytes of its body.
    func breakOff(after count: Int, _ change: (DownloadOperation) -> Void = { _ in }) async {
        file.change { _, _, response in response.fault = .truncate(after: count) }
        await run(operation(FileRequest(), change))
        file.change { _, _, _ in }
        await partIsReleased()
    }

    /// Returns when no download holds the part. A download that has ended still syncs the part and writes the journal.
    private func partIsReleased() async {
        guard let key = try? DownloadLocation(destination, resource: "").key else { return }
        _ = await eventually { NetworkOperation.claims.withLock { $0[key] == nil } }
    }
}

/// A disk that blocks writes until ``goOn()``.
final class HeldDisk: Sendable {
    /// Opens at the first write.
    let isWriting = Gate()
    private let gate = DispatchSemaphore(value: 0)

    var calls: FileCalls {
        var calls = FileCalls()
        let write = calls.write
        calls.write = { [isWriting, gate] descriptor, bytes, count, offset in
            isWriting.open()
            // Blocks the download's own queue, like a slow disk.
            gate.wait()
            gate.signal()
            return write(descriptor, bytes, count, offset)
        }
        return calls
    }

    func goOn() {
        gate.signal()
    }
}
