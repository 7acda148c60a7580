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
        join: (@escaping SharedAnswer.Receiver) -> Void,
        leave: @escaping @Sendable () -> Void,
        completion: @escaping @Sendable (Result<Item, NetworkError>) -> Void
    ) {
        let answer = Locked<SharedAnswer?>(nil)
        let isOver = Locked(false)
        let landing = Landing { landing, result in
            self.forget(landing)
            isOver.withLock { $0 = true }
            leave()
            completion(
                result.flatMap { _ in
                    answer.withLock { $0 }.map { $0.item(map) } ?? .failure(NetworkError(code: .cancelled))
                }
            )
        }
        if let refusal = remember(landing) { return landing.fail(refusal) }
        join { result in
            answer.withLock { $0 = try? result.get() }
            landing.complete(result.map(\.response))
        }
        // Cancelled before there was anything to leave.
        if isOver.withLock({ $0 }) { leave() }
    }
}
