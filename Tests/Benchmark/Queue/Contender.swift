import EasyNetwork
import Foundation

/// The two queues of the comparison, each with its own kind of job.
enum Contender: CaseIterable {
    case networkQueue, operationQueue

    /// The default limit of a ``NetworkQueue``.
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

/// The common interface of both queues.
protocol JobQueue: AnyObject {
    var isSuspended: Bool { get set }
    func addOperation(_ operation: Operation)
    func waitUntilAllOperationsAreFinished()
}

extension NetworkQueue: JobQueue {}
extension OperationQueue: JobQueue {}

/// A job without work.
final class TrivialJob: NetworkOperation, @unchecked Sendable {
    // Sendable because it has no state.
    override func execute() {
        finish()
    }
}

/// A minimal correct asynchronous `Operation` without work.
final class PlainJob: Operation, @unchecked Sendable {
    // Sendable because the lock guards `phase`.
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
        // Cancelled or not, there is no work.
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
