#if os(Linux) || os(macOS)
import EasyNetwork
import Foundation

/// A `DownloadOperation` or an `UploadOperation` on a `NetworkQueue`.
final class QueueCarrier: Carrier {
    private let service: EasyNetworkService
    private let queue = NetworkQueue()

    init(_ transport: any NetworkTransport) {
        service = EasyNetworkService(HostConfiguration(baseURL: nil, transport: transport))
    }

    func download(_ url: URL, to file: URL) throws {
        let request = BigFile(api: url.absoluteString)
        _ = try item(of: DownloadOperation(request, to: file, service: service))
    }

    func upload(_ file: URL, to url: URL) throws -> Data {
        let request = BigFile(api: url.absoluteString, method: .put)
        return try item(of: UploadOperation(request, from: .file(file), service: service))
    }

    private func item<Item>(of operation: ItemOperation<Item>) throws -> Item {
        queue.addOperation(operation)
        queue.waitUntilAllOperationsAreFinished()
        guard let result = operation.result else { throw NetworkError(code: .cancelled) }
        return try result.get()
    }
}

private struct BigFile: APIRequest {
    typealias Item = Data
    var api: String
    var method = NetworkService.Method.get
}
#endif
