#if os(Linux) || os(macOS)
import EasyNetwork
import Foundation

/// Writes the body of an answer to a file in constant memory, with back-pressure on the sender.
final class FileSink: @unchecked Sendable {
    // Sendable because the lock guards `state`, and the file is used on the queue only.
    private struct State {
        var exchange: (any TransportExchange)?
        var waitingBytes = 0
        var isPaused = false
        var failure: (any Error)?
    }

    private static let mostWaiting = 4 << 20
    private static let fewWaiting = 1 << 20

    private let lock = NSLock()
    private var state = State()
    private let file: OpenFile
    private let queue = DispatchQueue(label: "Benchmark.FileSink")
    private let written = DispatchSemaphore(value: 0)

    init(_ file: URL) throws {
        self.file = try OpenFile(writing: file)
    }

    /// Downloads the body, and waits until it has been written.
    func fill(_ request: TransportRequest, over transport: any NetworkTransport) throws {
        let exchange = transport.start(request) { self.receive($0) }
        lock.withLock {
            state.exchange = exchange
            changePause()
        }
        written.wait()
        let failure = lock.withLock {
            // The exchange holds a closure that holds the sink.
            state.exchange = nil
            return state.failure
        }
        if let failure { throw failure }
    }

    private func receive(_ event: TransportEvent) {
        switch event {
        case .sent: break
        case .head(let head):
            guard head.statusCode != 200 else { return }
            lock.withLock { state.failure = NetworkError(code: .unacceptableStatus) }
        case .body(let data):
            lock.withLock {
                state.waitingBytes += data.count
                changePause()
            }
            queue.async { self.write(data) }
        case .end(let end):
            queue.async {
                if let error = end.error { self.lock.withLock { self.state.failure = error } }
                self.written.signal()
            }
        }
    }

    private func write(_ data: Data) {
        do {
            try data.withUnsafeBytes { try file.write($0) }
        } catch {
            lock.withLock { state.failure = error }
        }
        lock.withLock {
            state.waitingBytes -= data.count
            changePause()
        }
    }

    /// Called under the lock, so that pause and resume stay in order; neither calls back.
    private func changePause() {
        guard let exchange = state.exchange else { return }
        if !state.isPaused && state.waitingBytes > Self.mostWaiting {
            state.isPaused = true
            exchange.pause()
        } else if state.isPaused && state.waitingBytes < Self.fewWaiting {
            state.isPaused = false
            exchange.resume()
        }
    }
}
#endif
