import Foundation

/// Whether jobs of one queue have ever waited for those of another. Until then no circle can go over two.
enum SchedulerCrossing {
    private static let hasHappened = Locked(false)

    static func note() {
        hasHappened.withLock { $0 = true }
    }

    static var isPossible: Bool {
        hasHappened.withLock { $0 }
    }
}

extension NetworkOperation {
    /// The circle that the operation waits in, if that goes over more than one queue: none of them sees it whole.
    ///
    /// Every queue looks when it has taken an operation in and watches what that waits for; so whoever comes last
    /// sees all of it. Operations that are on no queue are not looked through: they will be when they are added.
    ///
    /// - Parameter isAwaited: whether others are known to wait for this operation. If nobody does, there is no circle.
    final func cycleAcrossSchedulers(isAwaited: Bool) -> [Operation]? {
        guard SchedulerCrossing.isPossible else { return nil }
        let relations = relations
        guard isAwaited || relations.isAwaited else { return nil }
        var pending = relations.dependencies.map { (operation: $0, origin: self as Operation) }
        var origins: [ObjectIdentifier: Operation] = [:]
        while let (operation, origin) = pending.popLast() {
            guard origins[ObjectIdentifier(operation)] == nil else { continue }
            origins[ObjectIdentifier(operation)] = origin
            guard operation !== self else { return path(backFrom: origin, origins) }
            for other in Self.waits(operation) { pending.append((other, operation)) }
        }
        return nil
    }

    private static func waits(_ operation: Operation) -> [Operation] {
        guard let operation = operation as? NetworkOperation else {
            return operation.isFinished ? [] : operation.dependencies
        }
        let relations = operation.relations
        return relations.isScheduled ? relations.dependencies : []
    }

    private func path(backFrom last: Operation, _ origins: [ObjectIdentifier: Operation]) -> [Operation] {
        var path = [self, last]
        while let last = path.last, last !== self, let before = origins[ObjectIdentifier(last)] { path.append(before) }
        return path.reversed()
    }
}
