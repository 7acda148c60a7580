extension EasyNetworkService {
    /// Waits for an answer that another service fetches for several.
    ///
    /// Cancelling this service, or the one that it is a part of, ends the waiting and not the fetching.
    ///
    /// - Parameters:
    ///   - map: makes the item from the answer, which has been accepted, on ``WorkQueue``.
    ///   - join: asks for the answer; what it is given is to be called once.
    ///   - leave: does not want it any more; called whenever all is over, possibly twice.
    ///   - completion: called exactly once, on ``WorkQueue``.
    func share<Item>(
        map: @escaping @Sendable (NetworkResponse) throws -> Item,
        join: (@escaping AnswerReceiver) -> Void,
        leave: @escaping @Sendable () -> Void,
        completion: @escaping @Sendable (Result<Item, NetworkError>) -> Void
    ) {
        let call = Call { call, error in
            self.forget(call)
            leave()
            completion(.failure(error))
        }
        if let refusal = remember(call).refusal { return call.fail(refusal) }
        join { result in
            guard call.end() else { return }
            self.forget(call)
            leave()
            WorkQueue.shared.async { completion(result.flatMap { $0.item(map) }) }
        }
        // Cancelled before there was anything to leave.
        if call.isOver { leave() }
    }
}

/// Gets an answer that several share, or why there is none.
typealias AnswerReceiver = @Sendable (Result<NetworkResponse, NetworkError>) -> Void
