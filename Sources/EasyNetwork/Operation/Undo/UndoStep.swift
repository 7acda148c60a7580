import Foundation

/// How a job has ended that is to be undone. See ``RequestOperation/undo``.
///
/// ```swift
/// booking.undo = { outcome in
///     switch outcome {
///     case .succeeded(let booking): CancelBooking(id: booking.id)
///     case .unknown(let key): CancelBooking(key: key)
///     }
/// }
/// ```
public enum StepOutcome<Item: Sendable>: Sendable {
    /// The job has succeeded with this item.
    case succeeded(Item)
    /// The job has failed or was cancelled, but the server may have processed its request. The value is the
    /// `Idempotency-Key` of the request.
    case unknown(String)

    func map<Other>(_ change: (Item) -> Other) -> StepOutcome<Other> {
        switch self {
        case .succeeded(let item): .succeeded(change(item))
        case .unknown(let key): .unknown(key)
        }
    }
}

/// How one job is undone, and what is known about its messages.
final class UndoStep: Sendable {
    /// The end of an undo: its error, and whether nothing is left to do in this process.
    typealias Ended = @Sendable (NetworkError?, _ isDone: Bool) -> Void
    typealias MakeRequest = @Sendable (StepOutcome<any Sendable>) -> (any APIRequest)?

    private struct State {
        var key = ""
        var mayHaveActed = false
        var journal: (any UndoJournal)?
        /// The request in the journal.
        var request: (any APIRequest)?
        var isSettled = false
        /// Called when the undo has ended. There is one as long as it runs.
        var waiters: [Ended] = []
        var isUndone = false
    }

    let makeRequest: MakeRequest
    /// The identifier of the undo, and its `Idempotency-Key`.
    let id = UUID.make()
    private let state = Locked(State())

    init(_ makeRequest: @escaping MakeRequest) {
        self.makeRequest = makeRequest
    }

    /// The outcome of a job that did not succeed; `nil` if the server has not processed its request.
    var outcomeOfFailure: StepOutcome<any Sendable>? {
        state.withLock { $0.mayHaveActed ? .unknown($0.key) : nil }
    }

    /// Whether the undo request is in a journal.
    var isJournaled: Bool { state.withLock { $0.journal != nil } }

    /// Notes that the job is about to be sent.
    ///
    /// - Parameters:
    ///   - key: the `Idempotency-Key` of the job's request.
    ///   - journal: stores the undo request before this method returns; `nil` for none.
    func begin(_ key: String, in journal: (any UndoJournal)?) throws(NetworkError) {
        state.withLock { ($0.key, $0.journal) = (key, journal) }
        guard let journal else { return }
        let request = try requestOfUnknown(key)
        try journal.keep(request, id: id)
        state.withLock { $0.request = request }
    }

    /// Returns the undo request of a job that may have reached the server.
    func requestOfUnknown(_ key: String) throws(NetworkError) -> any APIRequest {
        guard let request = makeRequest(.unknown(key)) else {
            let message = "undo must return a request for .unknown, which undoneBy stores before the job is sent"
            throw .invalidRequest(message)
        }
        return request
    }

    /// Notes that the job has failed, and the messages that it has sent.
    func noteFailure(_ history: [NetworkAttempt]) {
        state.withLock { $0.mayHaveActed = history.contains(where: \.mayHaveActed) }
    }

    /// Brings the journal up to date when the job has ended. The job can be in several groups.
    func settle(_ outcome: StepOutcome<any Sendable>?) {
        guard let journal = state.withLock({ exchange(&$0.isSettled, with: true) ? nil : $0.journal }) else { return }
        if case .unknown? = outcome { return }
        guard let request = outcome.flatMap(makeRequest) else {
            state.withLock { $0.request = nil }
            return journal.forget(id)
        }
        // If it cannot be stored, the earlier request stays, which undoes the job as well.
        if (try? journal.keep(request, id: id)) != nil { state.withLock { $0.request = request } }
    }

    /// Removes the undo request from the journal.
    func forget() {
        state.withLock { $0.journal }?.forget(id)
    }

    /// Begins to undo the job, or waits for the end if another group has begun this.
    ///
    /// - Returns: the request to send, whose end is passed to ``noteUndone(_:)``; `nil` if there is none to send.
    func undo(_ outcome: StepOutcome<any Sendable>, _ ended: @escaping Ended) -> (any APIRequest)? {
        let (isUndone, isFirst, isJournaled, request) = state.withLock { state in
            let isFirst = !state.isUndone && state.waiters.isEmpty
            if !state.isUndone { state.waiters.append(ended) }
            return (state.isUndone, isFirst, state.journal != nil, state.request)
        }
        if isUndone { ended(nil, true) }
        guard isFirst else { return nil }
        // A server can refuse a key that comes with another request, so the stored one is sent.
        if let request = isJournaled ? request : makeRequest(outcome) { return request }
        end(nil, isDone: true)
        return nil
    }

    /// Notes the end of the undo.
    func noteUndone(_ error: NetworkError?) {
        var isDone = error == nil
        if let journal = state.withLock({ $0.journal }) {
            if isDone { journal.forget(id) } else { isDone = (try? journal.handOver(id)) != nil }
        }
        end(error, isDone: isDone)
    }

    private func end(_ error: NetworkError?, isDone: Bool) {
        let waiters = state.withLock { state in
            state.isUndone = isDone
            return state.waiters.take()
        }
        for ended in waiters { ended(error, isDone) }
    }
}
