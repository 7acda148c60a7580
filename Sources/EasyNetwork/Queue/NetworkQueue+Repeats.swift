import Foundation

/// The repeated and shared requests of a queue.
struct RepeatTable {
    var registry = RepeatRegistry<NetworkOperation>()
    var calls = SharedCalls<RequestCarrier, AnswerReceiver>()
}

/// The jobs of a queue that are like one another. Its lock is never held together with the one of the jobs.
extension NetworkQueue {
    func operation(_ operation: NetworkOperation, repeats key: RepeatKey, policy: RepeatPolicy) -> Bool {
        let id = ObjectIdentifier(operation)
        var released: [NetworkOperation?] = []
        let (decision, isNew) = repeats.withLock { repeats in
            let isNew = !repeats.registry.contains(id)
            while true {
                let decision = repeats.registry.enter(id, operation, key: key, policy: policy)
                // A job with an outcome no longer counts, though its callbacks still run.
                guard case .refuse(let older) = decision, older.hasOutcome, isNew else { return (decision, isNew) }
                released.append(repeats.registry.leave(ObjectIdentifier(older)))
                released.append(repeats.registry.leave(id))
            }
        }
        if isNew {
            operation.whenFinished {
                let released = self.repeats.withLock { $0.registry.leave(id) }
                // The key too, which may hold a body of the user's, goes only now.
                withExtendedLifetime((released, key)) {}
            }
        }
        switch decision {
        case .proceed(let older):
            for operation in older { operation.cancel() }
            return true
        case .refuse(let older):
            let message = "\(older.nameForMessages) waits or runs already, and is the same"
            operation.finish(NetworkError(code: .refused, message: message))
            return false
        case .superseded:
            operation.cancel()
            return false
        }
    }

    // MARK: - Sharing

    func operation(
        _ operation: NetworkOperation,
        shares message: SharedMessage,
        receive: @escaping AnswerReceiver
    ) {
        let id = ObjectIdentifier(operation)
        let priority = JobPriority(operation.queuePriority)
        let (call, carrier, isNew) = repeats.withLock { repeats in
            repeats.calls.join(id, receive, key: message.key, priority: priority) { call in
                RequestCarrier(message) { self.repeats.withLock { $0.calls.close(call) } }
            }
        }
        operation.whenFinished { self.stopSharing(id) }
        if isNew {
            carrier.tags = operation.tags
            // It is the message that excludes others.
            carrier.mutualExclusionCategories = message.key.categories
        }
        adjustPriority(of: carrier, call)
        if isNew { add(carrier) }
        // A change between the look and the joining was not reported.
        if JobPriority(operation.queuePriority) != priority { operationDidChangePriorityOfShare(operation) }
    }

    func operationDidStopSharing(_ operation: NetworkOperation) {
        stopSharing(ObjectIdentifier(operation))
    }

    private func stopSharing(_ id: ObjectIdentifier) {
        guard let departure = repeats.withLock({ $0.calls.leave(id) }) else { return }
        if departure.wasLast {
            departure.carrier.cancel()
        } else {
            adjustPriority(of: departure.carrier, departure.call)
        }
    }

    func operationDidChangePriorityOfShare(_ operation: NetworkOperation) {
        let id = ObjectIdentifier(operation)
        var priority: JobPriority
        repeat {
            priority = JobPriority(operation.queuePriority)
            guard let share = repeats.withLock({ $0.calls.setPriority(priority, of: id) }) else { return }
            adjustPriority(of: share.carrier, share.call)
            // The later of two simultaneous changes counts.
        } while priority != JobPriority(operation.queuePriority)
    }

    /// Gives the carrier the highest priority of those that share it; again when that changes meanwhile.
    private func adjustPriority(of carrier: RequestCarrier, _ call: UInt64) {
        while let priority = repeats.withLock({ $0.calls.priority(of: call) }),
            JobPriority(carrier.queuePriority) != priority
        {
            carrier.queuePriority = Operation.QueuePriority(priority)
        }
    }
}
