extension EasyNetworkService {
    /// Waits for an answer that another service fetches for several requests.
    ///
    /// Cancelling this service, or the one it is part of, ends the waiting and not the fetching.
    ///
    /// - Parameters:
    ///   - map: makes the item from the accepted answer, on ``WorkQueue``.
    ///   - join: asks for the answer; it calls the closure it is given once.
    ///   - leave: gives the answer up; called at the end in any case, possibly twice.
    ///   - completion: called exactly once, on ``WorkQueue``.
    func share<Item>(
        map: @escaping @Sendable (NetworkResponse) throws -> Item,
        join: (@escaping AnswerReceiver) -> Void,
        leave: @escaping @Sendable () -> Void,
        completion: @escaping @Sendable (Result<Item, NetworkError>) -> Void
    ) -> Call {
        let call = Call { call, error in
            self.forget(call)
            leave()
            completion(.failure(error))
        }
        if let refusal = remember(call).refusal {
            call.fail(refusal)
            return call
        }
        join { result in
            guard call.end() else { return }
            self.forget(call)
            leave()
            WorkQueue.shared.async { completion(result.flatMap { $0.item(map) }) }
        }
        // The call was cancelled before it joined.
        if call.isOver { leave() }
        return call
    }
}

/// Receives a shared answer, or the error.
typealias AnswerReceiver = @Sendable (Result<NetworkResponse, NetworkError>) -> Void
