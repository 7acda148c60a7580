#if os(Linux) || os(macOS)
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Plain `URLSession`: download tasks, whose file is moved, and upload tasks from a file, with completion handlers.
final class SessionCarrier: Carrier {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    private let session = URLSession(configuration: .uncached)

    deinit {
        session.finishTasksAndInvalidate()
    }

    func download(_ url: URL, to file: URL) throws {
        try Outcome().wait { outcome in
            session.downloadTask(with: url) { temporary, response, error in
                outcome.end {
                    // The file exists only until the completion handler returns.
                    let temporary = try Self.checked(temporary, response, error)
                    try FileManager.default.moveItem(at: temporary, to: file)
                }
            }
        }
    }

    func upload(_ file: URL, to url: URL) throws -> Data {
        var request = URLRequest(url: url)
        request.httpMethod = "PUT"
        return try Outcome().wait { outcome in
            session.uploadTask(with: request, fromFile: file) { data, response, error in
                outcome.end { try Self.checked(data, response, error) }
            }
        }
    }

    private static func checked<Body>(_ body: Body?, _ response: URLResponse?, _ error: (any Error)?) throws -> Body {
        if let error { throw error }
        let status = (response as? HTTPURLResponse)?.statusCode ?? 0
        guard status == 200, let body else { throw Failure(description: "status \(status)") }
        return body
    }
}

/// The outcome of a task; may be used on any thread.
private final class Outcome<Value: Sendable>: @unchecked Sendable {
    // Sendable because the lock guards the result.
    private let lock = NSLock()
    private var result: Result<Value, any Error>?
    private let ended = DispatchSemaphore(value: 0)

    func end(_ value: () throws -> Value) {
        let result = Result { try value() }
        lock.withLock { self.result = result }
        ended.signal()
    }

    /// Starts a task and waits for its end, with a limit because `URLSession` may lose an answer.
    func wait(for makeTask: (Outcome) -> URLSessionTask) throws -> Value {
        let task = makeTask(self)
        task.resume()
        let seconds = 120
        _ = ended.wait(timeout: .now() + .seconds(seconds))
        guard let result = lock.withLock({ result }) else {
            task.cancel()
            throw SessionCarrier.Failure(description: "no end in \(seconds) s")
        }
        return try result.get()
    }
}
#endif
