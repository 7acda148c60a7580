import EasyNetworkTesting
import Foundation

@testable import EasyNetwork
@testable import EasyNetworkTesting
@testable import TestSupport

/// A file, and a server that takes it with a protocol for resumable uploads.
struct UploadFixture: Sendable {
    struct Post: APIRequest {
        typealias Item = NetworkResponse
        var api = "files"
        var method = NetworkService.Method.post
        var headers: [String: String]?
        var options = RequestOptions()
    }

    static let kinds = [ResumableUpload.Kind.tus, .http]

    let folder = TestFolder()
    let journals = TestFolder()
    let server: MockServer
    let uploads: MockUploads
    let host: HostConfiguration
    let bytes: Data
    let kind: ResumableUpload.Kind

    init(
        _ kind: ResumableUpload.Kind,
        _ count: Int = 100_000,
        retries: Int = 3,
        over wire: Wire = .standard,
        limits: String? = nil,
        change: (inout HostSettings) -> Void = { _ in }
    ) throws {
        self.kind = kind
        bytes = RangedFile.bytes(count)
        server = try MockServer()
        uploads = server.routeUploads("/files", kind == .tus ? .tus : .http, limits: limits) { _, data in
            .text("\(data.count)")
        }
        host = server.host(transport: wire.transport) { settings in
            settings.retry = RetryPolicy(maximumRetryCount: retries, baseDelay: 0)
            change(&settings)
        }
        try bytes.write(to: file)
    }

    var file: URL { folder.file("film.mp4") }
    var service: EasyNetworkService { EasyNetworkService(host) }

    func settings(partSize: Int = 10_000, item: (@Sendable (URL) -> String)? = nil) -> ResumableUpload {
        kind == .tus
            ? .tus(partSize: partSize, directory: journals.url, item: item)
            : .http(partSize: partSize, directory: journals.url, item: item)
    }

    func operation(
        partSize: Int = 10_000,
        data: Data? = nil,
        method: NetworkService.Method = .post,
        api: String = "files",
        headers: [String: String]? = nil,
        change: (inout RequestOptions) -> Void = { _ in }
    ) -> UploadOperation<Post> {
        var options = RequestOptions(resuming: settings(partSize: partSize))
        change(&options)
        let request = Post(api: api, method: method, headers: headers, options: options)
        return UploadOperation(request, from: data.map { .data($0) } ?? .file(file), service: service)
    }

    /// Runs the operation to its end.
    @discardableResult
    func run(_ operation: UploadOperation<Post>) async -> Result<NetworkResponse, NetworkError> {
        NetworkQueue(name: "uploads").addOperation(operation)
        await operation.ended()
        return operation.result ?? .failure(NetworkError(code: .invalidRequest, message: "no result"))
    }

    /// The methods of the requests, in order.
    var methods: [String] { server.requests.map(\.method) }

    /// The offsets of the parts, in order.
    var offsets: [Int] {
        server.requests.filter { $0.method == "PATCH" }.compactMap { $0.headers["Upload-Offset"].flatMap { Int($0) } }
    }

    /// Adds an operation, and returns when the server has that many bytes and holds back its response.
    func begin(_ operation: UploadOperation<Post>, on queue: NetworkQueue, upTo count: Int) async {
        let faultCount = server.faultCount
        uploads.hold(after: count)
        queue.addOperation(operation)
        await server.waitForFaults(faultCount + 1)
    }

    /// Runs an operation that is cancelled when the server has that many bytes.
    func breakOff(after count: Int) async {
        let operation = operation()
        await begin(operation, on: NetworkQueue(name: "uploads"), upTo: count)
        operation.cancel()
        await operation.ended()
    }
}
