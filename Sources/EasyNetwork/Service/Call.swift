import Foundation

/// A call: the task that gets the answer to one request, and its one end.
///
/// The task ends the call with ``end()``. ``fail(_:)`` ends it from outside, at once, whatever the task does.
final class Call: Sendable {
    /// Told on the transport's thread of the bytes that a message and its answer have moved, and of the length of their
    /// bodies together, nil while that is not known.
    typealias Watcher = @Sendable (_ counts: BodyStream.Counts, _ total: Int64?) -> Void

    /// The message under way.
    private struct Message {
        let method: NetworkService.Method
        let body: TransportBody
        let answer: BodyStream

        func tell(_ watcher: @escaping Watcher) {
            // A body without length because it cannot be read ends the message.
            let length = (try? body.length()).map(Int64.init)
            answer.watch { [method] counts in
                let answerLength = counts.head?.bodyLength(answering: method)
                watcher(counts, length.flatMap { length in answerLength.map { length + $0 } })
            }
        }
    }

    private struct State {
        /// Called when the call is ended from outside; nil once it is over.
        var failed: (@Sendable (Call, NetworkError) -> Void)?
        var task: Task<Void, Never>?
        var deadline: (any ClockTimer)?
        /// The messages sent so far.
        var history: [NetworkAttempt] = []
        var number: UInt64?
        var message: Message?
        var watcher: Watcher?
    }

    private static let lastNumber = Locked<UInt64>(0)

    /// The span of the job, or of the call itself if it has none; nil without traces.
    let trace: TraceSpan?

    private let state: Locked<State>

    /// - Parameters:
    ///   - trace: see ``trace``. Default nil.
    ///   - failed: called at most once, on ``WorkQueue``, with the error that ended the call from outside.
    init(trace: TraceSpan? = nil, failed: @escaping @Sendable (Call, NetworkError) -> Void) {
        self.trace = trace
        state = Locked(State(failed: failed))
    }

    /// The number of the call in this process, given when it is first asked for.
    var number: UInt64 {
        state.withLock { state in
            if let number = state.number { return number }
            let number = Self.lastNumber.withLock { last in
                last += 1
                return last
            }
            state.number = number
            return number
        }
    }

    /// Whether the call has ended, by itself or from outside.
    var isOver: Bool { state.withLock { $0.failed == nil } }

    /// The messages sent so far.
    var history: [NetworkAttempt] { state.withLock { $0.history } }

    /// Starts the task, unless the call is over.
    ///
    /// - Returns: false when it is over.
    func begin(_ body: @escaping @Sendable () async -> Void) -> Bool {
        // Under the lock, so that the task is cancelled when an end from outside returns.
        state.withLock { state in
            guard state.failed != nil else { return false }
            state.task = WorkQueue.task(body)
            return true
        }
    }

    /// Limits the time of the whole call, in seconds.
    func setDeadline(_ timeout: TimeInterval, _ clock: any NetworkClock) {
        let timer = clock.schedule(after: timeout) { [weak self] in
            self?.fail(NetworkError(code: .timedOut, message: "all attempts together took \(timeout) seconds"))
        }
        // A second round of attempts has the deadline of the first, unless that has ended.
        let isWanted = state.withLock { state in
            guard state.failed != nil, state.deadline == nil else { return false }
            state.deadline = timer
            return true
        }
        if !isWanted { timer.cancel() }
    }

    /// Ends the time of the call: its last byte has come.
    func endDeadline() {
        state.withLock { $0.deadline.take() }?.cancel()
    }

    /// Records the end of the message sent last.
    ///
    /// - Returns: the messages sent so far.
    func noteEnd(_ change: (inout NetworkAttempt) -> Void) -> [NetworkAttempt] {
        state.withLock { state in
            change(&state.history[state.history.count - 1])
            return state.history
        }
    }

    /// Records the message that is sent next.
    ///
    /// - Parameters:
    ///   - history: ends with that message. The call alone should hold it, as ``noteEnd(_:)`` changes it in place.
    ///   - answer: is started afterwards, and cancelled when the call is ended from outside.
    func note(_ history: consuming [NetworkAttempt], _ message: TransportRequest, _ answer: BodyStream) {
        let next = Message(method: message.method, body: message.body, answer: answer)
        let (isOver, old, watcher) = state.withLock { state in
            state.history = history
            return (state.failed == nil, exchange(&state.message, with: next), state.watcher)
        }
        withExtendedLifetime(old) {}
        if isOver { answer.cancel() }
        if let watcher { next.tell(watcher) }
    }

    /// Tells of the bytes of the message under way, and of each later one.
    func watch(_ watcher: @escaping Watcher) {
        let (message, old) = state.withLock { ($0.message, exchange(&$0.watcher, with: watcher)) }
        withExtendedLifetime(old) {}
        message?.tell(watcher)
    }

    /// The received part of the answer under way; nil before the first message and after the end.
    var unreadAnswer: BodyStream.Collected? { state.withLock { $0.message }?.answer.unread }

    /// Ends the call by itself.
    ///
    /// - Returns: false when the call has been ended from outside.
    func end() -> Bool {
        var old = State()
        guard close(&old) else { return false }
        old.deadline?.cancel()
        return true
    }

    /// Ends the call from outside; later results of its task are ignored.
    func fail(_ error: NetworkError) {
        var old = State()
        guard close(&old), let failed = old.failed else { return }
        old.deadline?.cancel()
        old.task?.cancel()
        old.message?.answer.cancel()
        var error = error
        if !old.history.isEmpty { error.adopt(old.history) }
        WorkQueue.shared.add { [error] in failed(self, error) }
    }

    func cancel() {
        fail(NetworkError(code: .cancelled))
    }

    /// - Parameter old: becomes the state before.
    /// - Returns: false when the call was over.
    private func close(_ old: inout State) -> Bool {
        state.withLock { state in
            guard state.failed != nil else { return false }
            (old.number, old.history) = (state.number, state.history)
            swap(&state, &old)
            return true
        }
    }
}
