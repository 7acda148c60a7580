#if os(Linux) || os(macOS)
import EasyNetwork
import Foundation

/// A transport without queue and operation.
final class TransportCarrier: Carrier {
    private let transport: any NetworkTransport

    init(_ transport: any NetworkTransport) {
        self.transport = transport
    }

    func download(_ url: URL, to file: URL) throws {
        try FileSink(file).fill(TransportRequest(url: url), over: transport)
    }

    func upload(_ file: URL, to url: URL) throws -> Data {
        try Answer().wait(for: TransportRequest(method: .put, url: url, body: .file(file)), over: transport)
    }
}

/// Waits for a short answer.
private final class Answer: @unchecked Sendable {
    // Sendable because the lock guards all variables.
    private let lock = NSLock()
    private var statusCode: Int?
    private var body = Data()
    private var failure: NetworkError?
    private let ended = DispatchSemaphore(value: 0)

    /// - Returns: the body of the answer.
    func wait(for request: TransportRequest, over transport: any NetworkTransport) throws -> Data {
        let exchange = transport.start(request) { self.receive($0) }
        ended.wait()
        withExtendedLifetime(exchange) {}
        return try lock.withLock {
            if let failure { throw failure }
            guard statusCode == 200 else { throw NetworkError(code: .unacceptableStatus) }
            return body
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
