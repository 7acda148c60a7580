import Foundation

/// The equal jobs of a queue. Their lock is never held together with the lock of the jobs.
extension NetworkQueue {
    /// - Returns: whether the operation can continue. If not, it is being ended.
    func operation(_ operation: NetworkOperation, repeats key: RepeatKey, policy: RepeatPolicy) -> Bool {
        let decision = repeats.withLock {
            $0.registry.enter(operation, key: key, policy: policy, isOver: { $0.hasOutcome })
        }
        let id = ObjectIdentifier(operation)
        operation.whenFinished {
            let released = self.repeats.withLock { $0.registry.leave(id, key: key) }
            // Release the key only now, because it can hold a body of user code.
            withExtendedLifetime((released, key)) {}
        }
        switch decision {
        case .proceed(let older):
            WorkQueue.userCode { for operation in older { operation.cancel() } }
            return true
        case .refuse(let older):
            let message = "the equal job \(older.nameForMessages) already waits or runs"
            operation.finish(NetworkError(code: .refused, message: message))
            return false
        }
    }

    /// Returns the response to a message, which one job sends for all operations that wait for it.
    ///
    /// If the task is cancelled, the operation stops waiting for the response.
    func response(to message: SharedMessage, for operation: NetworkOperation) async -> Call.Conclusion {
        let (carrier, isFirst) = repeats.withLock { repeats in
            if let carrier = repeats.carriers[message.key], carrier.join() { return (carrier, false) }
            let carrier = RequestCarrier(message)
            repeats.carriers[message.key] = carrier
            return (carrier, true)
        }
        if isFirst {
            carrier.tags = operation.tags
            if let trace = operation.trace { carrier.setTraceOrigin(trace.context) }
            carrier.whenFinished {
                self.repeats.withLock { repeats in
                    if repeats.carriers[message.key] === carrier { repeats.carriers[message.key] = nil }
                }
            }
        }
        do throws(NetworkError) {
            var response = try await carrier.valueAsCounted {
                lendPriority(of: operation, to: carrier)
                if isFirst { add(carrier) }
            }
            // The first operation gets the response with its original source.
            if !isFirst {
                response.source = .joined
                // Each operation decodes the response with its own decoder.
                response.decoder = message.snapshot.options.decoder ?? message.snapshot.host.settings.decoder
            }
            return Call.Conclusion(result: .success(response), pendingStore: .shared { carrier.keepAnswer() })
        } catch {
            return Call.Conclusion(result: .failure(error))
        }
    }

    private func lendPriority(of operation: NetworkOperation, to carrier: RequestCarrier) {
        step { state, actions in
            guard let job = operation.job(in: self) else { return }
            let node = node(of: carrier, state) ?? (carrier.isTaken ? nil : Job(carrier))
            guard let node else { return }
            if node.phase == .expected { state.externalJobs[ObjectIdentifier(carrier)] = node }
            state.graph.lendPriority(of: job, to: node, &actions)
        }
    }
}
