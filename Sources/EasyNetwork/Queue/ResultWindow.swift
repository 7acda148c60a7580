/// The operations of one iteration that run, and the results that nobody has fetched.
///
/// When it goes, the operations are cancelled.
final class ResultWindow<Request: APIRequest>: Sendable {
    typealias Landed = (index: Int, result: Result<Request.Item, NetworkError>)

    private struct State {
        var running: [Int: RequestOperation<Request>] = [:]
        var landed = Row<Landed>()
        var waiter: CheckedContinuation<Void, Never>?
        var isCancelled = false
    }

    private let queue: NetworkQueue
    private let room: Int
    private let state = Locked(State())

    init(queue: NetworkQueue, room: Int) {
        self.queue = queue
        self.room = room
    }

    deinit {
        cancel()
    }

    var hasRoom: Bool {
        state.withLock { !$0.isCancelled && $0.running.count + $0.landed.count < room }
    }

    func run(_ operation: RequestOperation<Request>, at index: Int) {
        state.withLock { $0.running[index] = operation }
        queue.addOperation(operation)
        operation.whenFinished { [weak self] in self?.land(index) }
        // The task may have been cancelled just before.
        if state.withLock({ $0.isCancelled }) { operation.cancel() }
    }

    /// - Returns: the next result, when there is one; nil when nothing runs any more or the task was cancelled.
    func next() async -> Landed? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let mustWait = state.withLock { state in
                    guard !state.isCancelled, state.landed.count == 0, !state.running.isEmpty else { return false }
                    state.waiter = continuation
                    return true
                }
                if !mustWait { continuation.resume() }
            }
        } onCancel: {
            cancel()
        }
        return state.withLock { $0.isCancelled ? nil : $0.landed.popFirst() }
    }

    private func land(_ index: Int) {
        let (operation, waiter) = state.withLock { state in
            let operation = state.running.removeValue(forKey: index)
            if let result = operation?.result { state.landed.append((index, result)) }
            return (operation, state.waiter.take())
        }
        waiter?.resume()
        withExtendedLifetime(operation) {}
    }

    private func cancel() {
        let (operations, landed, waiter) = state.withLock { state in
            state.isCancelled = true
            defer {
                state.running = [:]
                state.landed = Row()
            }
            return (state.running, state.landed, state.waiter.take())
        }
        waiter?.resume()
        for operation in operations.values { operation.cancel() }
        // What the results hold is let go of outside the lock.
        withExtendedLifetime(landed) {}
    }
}

/// First in, first out, at a constant cost.
private struct Row<Element> {
    private var incoming: [Element] = []
    /// The other way round.
    private var outgoing: [Element] = []

    var count: Int { incoming.count + outgoing.count }

    mutating func append(_ element: Element) {
        incoming.append(element)
    }

    mutating func popFirst() -> Element? {
        if outgoing.isEmpty { outgoing = incoming.take().reversed() }
        return outgoing.popLast()
    }
}
