import EasyNetwork
import Foundation

/// The two that are measured side by side, each with its own kind of job.
enum Contender: CaseIterable {
    case networkQueue, operationQueue

    /// As many as a ``NetworkQueue`` runs unless it is told otherwise.
    static let limit = NetworkQueue.defaultMaxConcurrentOperationCount

    func makeQueue() -> any JobQueue {
        switch self {
        case .networkQueue:
            return NetworkQueue(maxConcurrentOperationCount: Self.limit)
        case .operationQueue:
            let queue = OperationQueue()
            queue.maxConcurrentOperationCount = Self.limit
            return queue
        }
    }

    func makeJob() -> Operation {
        switch self {
        case .networkQueue: TrivialJob()
        case .operationQueue: PlainJob()
        }
    }
}

/// What both queues can do.
protocol JobQueue: AnyObject {
    var isSuspended: Bool { get set }
    func addOperation(_ operation: Operation)
    func waitUntilAllOperationsAreFinished()
}

extension NetworkQueue: JobQueue {}
extension OperationQueue: JobQueue {}

/// A job that has nothing to do.
final class TrivialJob: NetworkOperation, @unchecked Sendable {
    // Sendable because it has no state of its own.
    override func execute() {
        finish()
    }
}

/// The least that an asynchronous `Operation` must do to be right, with nothing to do.
final class PlainJob: Operation, @unchecked Sendable {
    // Sendable because `phase` is touched only under the lock.
    private enum Phase {
        case waiting, executing, finished
    }

    private let lock = NSLock()
    private var phase = Phase.waiting

    override var isAsynchronous: Bool { true }
    override var isExecuting: Bool { lock.withLock { phase == .executing } }
    override var isFinished: Bool { lock.withLock { phase == .finished } }

    override func start() {
        willChangeValue(forKey: "isExecuting")
        lock.withLock { phase = .executing }
        didChangeValue(forKey: "isExecuting")
        // Whether it was cancelled or has nothing to do.
        finish()
    }

    private func finish() {
        willChangeValue(forKey: "isExecuting")
        willChangeValue(forKey: "isFinished")
        lock.withLock { phase = .finished }
        didChangeValue(forKey: "isExecuting")
        didChangeValue(forKey: "isFinished")
    }
}
