import Foundation

/// A ``NetworkQueue`` as an `OperationQueue`, which forwards all calls to it. Foundation's part is to start operations
/// that are not of this package, without a limit.
///
/// On Linux, `operations` and `operationCount` are members of an extension, which cannot be overridden.
final class ExecutorQueue: OperationQueue, @unchecked Sendable {
    // Sendable because `owner` is written once, before the queue is shared.
    weak var owner: NetworkQueue?

    /// Values of a queue that can be observed.
    enum Observable {
        case jobs, limit, isSuspended

        fileprivate var keys: [String] {
            switch self {
            case .jobs: ["operations", "operationCount"]
            case .limit: ["maxConcurrentOperationCount"]
            case .isSuspended: ["suspended"]
            }
        }
    }

    #if canImport(Darwin)
    /// Notifies KVO observers that a value is about to change. Called without a lock. Linux has no observers.
    ///
    /// - Returns: whether there are observers, so that ``didChange(_:)`` must follow.
    func willChange(_ value: Observable) -> Bool {
        guard observationInfo != nil else { return false }
        WorkQueue.userCode { for key in value.keys { willChangeValue(forKey: key) } }
        return true
    }

    /// Notifies KVO observers that a value has changed. Called without a lock.
    func didChange(_ value: Observable) {
        WorkQueue.userCode { for key in value.keys.reversed() { didChangeValue(forKey: key) } }
    }
    #endif

    /// Starts an operation.
    func execute(_ operation: Operation) {
        Self.addReliably(operation) { super.addOperation($0) }
    }

    override func addOperation(_ operation: Operation) {
        if let owner { owner.addOperation(operation) } else { super.addOperation(operation) }
    }

    override func addOperation(_ block: @escaping @Sendable () -> Void) {
        if let owner { owner.addOperation(block) } else { super.addOperation(block) }
    }

    override func addOperations(_ operations: [Operation], waitUntilFinished wait: Bool) {
        guard let owner else { return super.addOperations(operations, waitUntilFinished: wait) }
        owner.addOperations(operations, waitUntilFinished: wait)
    }

    override func addBarrierBlock(_ barrier: @escaping @Sendable () -> Void) {
        if let owner { owner.addBarrierBlock(barrier) } else { super.addBarrierBlock(barrier) }
    }

    override func cancelAllOperations() {
        if let owner { owner.cancelAllOperations() } else { super.cancelAllOperations() }
    }

    override func waitUntilAllOperationsAreFinished() {
        if let owner { owner.waitUntilAllOperationsAreFinished() } else { super.waitUntilAllOperationsAreFinished() }
    }

    override var isSuspended: Bool {
        get { owner?.isSuspended ?? super.isSuspended }
        set { if let owner { owner.isSuspended = newValue } else { super.isSuspended = newValue } }
    }

    override var maxConcurrentOperationCount: Int {
        get { owner?.maxConcurrentOperationCount ?? super.maxConcurrentOperationCount }
        set {
            guard let owner else { return super.maxConcurrentOperationCount = newValue }
            owner.maxConcurrentOperationCount = newValue
        }
    }

    override var description: String { owner?.description ?? super.description }

    #if canImport(Darwin)
    override var operations: [Operation] { owner?.operations ?? super.operations }
    override var operationCount: Int { owner?.operationCount ?? super.operationCount }

    // Foundation would announce the setters above a second time.
    override class func automaticallyNotifiesObservers(forKey key: String) -> Bool {
        let isOurs = ["maxConcurrentOperationCount", "suspended"].contains(key)
        return isOurs ? false : super.automaticallyNotifiesObservers(forKey: key)
    }
    #endif
}
