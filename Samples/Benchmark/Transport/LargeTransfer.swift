#if os(Linux) || os(macOS)
import EasyNetwork
import Foundation

/// A gigabyte one way or the other.
enum LargeTransfer: CaseIterable {
    case download, upload

    var name: String {
        switch self {
        case .download: "download to a file"
        case .upload: "upload from a file"
        }
    }

    /// The transport's own way.
    ///
    /// - Returns: how many seconds it took.
    func seconds(over transport: any NetworkTransport, _ server: LocalServer, _ file: URL) throws -> Double {
        let start = DispatchTime.now().uptimeNanoseconds
        switch self {
        case .download:
            try FileSink(file).fill(TransportRequest(url: try server.url("/big")), over: transport)
        case .upload:
            let answer = Answer()
            let request = TransportRequest(method: .put, url: try server.url("/upload"), body: .file(file))
            try answer.wait(for: request, over: transport)
        }
        return Double(DispatchTime.now().uptimeNanoseconds - start) / 1_000_000_000
    }

    /// That of a job on a queue.
    ///
    /// - Returns: how many seconds it took.
    func seconds(
        on queue: NetworkQueue,
        _ service: EasyNetworkService,
        _ server: LocalServer,
        _ file: URL
    ) throws -> Double {
        let start = DispatchTime.now().uptimeNanoseconds
        let operation: NetworkOperation
        switch self {
        case .download:
            let request = BigFile(api: try server.url("/big").absoluteString)
            operation = DownloadOperation(request, to: file, service: service)
        case .upload:
            let request = BigFile(api: try server.url("/upload").absoluteString, method: .put)
            operation = UploadOperation(request, from: .file(file), service: service)
        }
        queue.addOperation(operation)
        queue.waitUntilAllOperationsAreFinished()
        if let error = operation.error { throw error }
        return Double(DispatchTime.now().uptimeNanoseconds - start) / 1_000_000_000
    }

    /// The curl program's.
    ///
    /// - Returns: how many seconds it says it took, without its own start.
    func seconds(with curl: Program, _ server: LocalServer, _ file: URL) throws -> Double {
        var arguments = ["--silent", "--show-error", "--fail", "--noproxy", "*", "--write-out", "%{time_total}"]
        switch self {
        case .download: arguments += ["-o", file.path, try server.url("/big").absoluteString]
        case .upload: arguments += ["-T", file.path, "-o", "/dev/null", try server.url("/upload").absoluteString]
        }
        let output = try curl.output(arguments)
        // Whatever the language of the machine, it writes a point or a comma.
        guard let seconds = Double(output.replacingOccurrences(of: ",", with: ".")) else {
            throw Program.Failure(description: "curl wrote: \(output)")
        }
        return seconds
    }
}

private struct BigFile: APIRequest {
    typealias Item = Data
    var api: String
    var method = NetworkService.Method.get
}

/// Waits for a short answer.
private final class Answer: @unchecked Sendable {
    // Sendable because what changes is touched only under the lock.
    private let lock = NSLock()
    private var statusCode: Int?
    private var body = Data()
    private var failure: NetworkError?
    private let ended = DispatchSemaphore(value: 0)

    /// - Throws: unless the server has had the whole file.
    func wait(for request: TransportRequest, over transport: any NetworkTransport) throws {
        let exchange = transport.start(request) { self.receive($0) }
        ended.wait()
        withExtendedLifetime(exchange) {}
        try lock.withLock {
            if let failure { throw failure }
            let count = Int(String(decoding: body, as: UTF8.self)) ?? 0
            if statusCode != 200 || count < LocalServer.bigCount {
                let message = "status \(statusCode ?? 0), \(count) bytes at the server"
                throw NetworkError(code: .badServerResponse, message: message)
            }
        }
    }

    private func receive(_ event: TransportEvent) {
        switch event {
        case .sent: break
        case .head(let head): lock.withLock { statusCode = head.statusCode }
        case .body(let data): lock.withLock { body += data }
        case .end(let end):
            lock.withLock { failure = end.error }
            ended.signal()
        }
    }
}
#endif
