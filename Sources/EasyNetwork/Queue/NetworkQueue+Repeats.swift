import Foundation

/// The jobs of a queue that are like one another. Its lock is never held together with the one of the jobs.
extension NetworkQueue {
    /// - Returns: whether the operation may go on; if not, it is being ended.
    func operation(_ operation: NetworkOperation, repeats key: RepeatKey, policy: RepeatPolicy) -> Bool {
        let decision = repeats.withLock {
            $0.registry.enter(operation, key: key, policy: policy, isOver: { $0.hasOutcome })
        }
        if case .known(let mayGoOn) = decision { return mayGoOn }
        let id = ObjectIdentifier(operation)
        operation.whenFinished {
            let released = self.repeats.withLock { $0.registry.leave(id) }
            // The key too, which may hold a body of the user's, goes only now.
            withExtendedLifetime((released, key)) {}
        }
        if case .proceed(let older) = decision {
            for operation in older { operation.cancel() }
            return true
        }
        if case .refuse(let older) = decision {
            let message = "\(older.nameForMessages) waits or runs already, and is the same"
            operation.finish(NetworkError(code: .refused, message: message))
        }
        return false
    }

    /// Makes a job share a message: the first one has a carrier added, which sends it.
    ///
    /// - Parameter receive: called with the answer, unless the operation leaves before.
    @discardableResult
    func operation(
        _ operation: NetworkOperation,
        shares message: SharedMessage,
        receive: @escaping AnswerReceiver
    ) -> RequestCarrier {
        let id = ObjectIdentifier(operation)
        let (carrier, isNew) = repeats.withLock { repeats in
            if let carrier = repeats.carriers[message.key], carrier.join(id, receive) { return (carrier, false) }
            let carrier = RequestCarrier(message) { carrier in
                self.repeats.withLock { repeats in
                    if repeats.carriers[message.key] === carrier { repeats.carriers[message.key] = nil }
                }
            }
            _ = carrier.join(id, receive)
            repeats.carriers[message.key] = carrier
            return (carrier, true)
        }
        operation.setOption(carrier) { swap(&$0.carrier, &$1) }
        operation.whenFinished { carrier.leave(id) }
        // An end before it had the carrier has not left it, and nothing may be sent for it any more.
        if operation.hasOutcome { carrier.leave(id) }
        step { state, _ in
            guard let job = operation.job(in: self) else { return }
            let place = place(of: carrier, state) ?? (carrier.isTaken ? nil : Job(carrier))
            guard let place else { return }
            if place.phase == .expected { state.outside[ObjectIdentifier(carrier)] = place }
            state.graph.lendPriority(of: job, to: place)
        }
        if isNew {
            carrier.tags = operation.tags
            // It is the message that excludes others.
            carrier.mutualExclusionCategories = message.key.categories
            add(carrier)
        }
        return carrier
    }
}
