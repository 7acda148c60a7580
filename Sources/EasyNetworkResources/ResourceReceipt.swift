import EasyNetwork
import Foundation

/// What the receipts of a loader need of it.
protocol ResourceReceiptHolder: AnyObject, Sendable {
    var callbackQueue: DispatchQueue { get }

    func rankHasChanged(_ receipt: ObjectIdentifier, _ key: String)
    func leave(_ receipt: ObjectIdentifier, _ key: String)
    /// The receipt is to be told of the bytes.
    ///
    /// - Returns: those that are known already.
    func wantsCounts(_ receipt: ObjectIdentifier, _ key: String) -> TransferMeter.Count?
}

/// The share of one caller in a load of a ``ResourceLoader``.
///
/// ```swift
/// func show(_ loader: ResourceLoader<Data>, _ url: URL) async throws {
///     let receipt = loader.load(url)
///     receipt.priority = .high
///     print(try await receipt.value.count)
/// }
/// ```
///
/// It ends once: with the resource, with the error of the load, or with ``/EasyNetwork/NetworkError/Code/cancelled``.
/// The load stops when its last receipt is cancelled. A receipt that is released without having been cancelled leaves
/// its load going on, as a task does. All members may be used from any thread.
public final class ResourceReceipt<Resource: Sendable>: Sendable {
    typealias Partials = AsyncThrowingStream<Resource, any Error>.Continuation

    private struct State {
        var rank: ResourceOrder.Rank
        /// Nil after the end.
        var completion: (@Sendable (Result<Resource, NetworkError>) -> Void)?
        var partials: Partials?
        var count: TransferMeter.Count?
        var isOver = false
        /// Nil until somebody wants them.
        var counts: Multicast<TransferMeter.Count>?
    }

    /// The key of the load.
    let key: String
    private let loader: any ResourceReceiptHolder
    private let state: Locked<State>
    private let outcome = Promise<Result<Resource, NetworkError>>()

    init(
        _ key: String,
        _ rank: ResourceOrder.Rank,
        _ loader: any ResourceReceiptHolder,
        completion: (@Sendable (Result<Resource, NetworkError>) -> Void)? = nil,
        partials: Partials? = nil
    ) {
        self.key = key
        self.loader = loader
        state = Locked(State(rank: rank, completion: completion, partials: partials))
    }

    /// The resource or the error; nil while the load goes on. Known before the completion is called.
    public var result: Result<Resource, NetworkError>? { outcome.value }

    /// The resource, when it is there. Several tasks may wait. Cancelling one of them cancels the receipt.
    ///
    /// - Throws: the error of the load; ``/EasyNetwork/NetworkError/Code/cancelled`` after ``cancel()``.
    public var value: Resource {
        get async throws(NetworkError) {
            await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in outcome.whenSet { continuation.resume() } }
            } onCancel: {
                cancel()
            }
            // A task waits until there is one.
            guard let result else { throw NetworkError(code: .cancelled) }
            return try result.get()
        }
    }

    /// The bytes of the answer that have come, and its length, nil when that is not known: the latest value now, the
    /// next ones at most ten times a second, until the receipt ends. A slow reader misses the values between.
    ///
    /// ```swift
    /// func show(_ receipt: ResourceReceipt<Data>) async {
    ///     for await (completed, total) in receipt.updates { print(completed, "of", total ?? 0) }
    /// }
    /// ```
    ///
    /// Each receipt of a load tells of the same bytes, also one that has come later, or is for a variant. They begin
    /// again with each message, as after a retry. A resource from memory has none, and an answer from the cache
    /// neither.
    public var updates: AsyncStream<(completedBytes: Int64, totalBytes: Int64?)> {
        let stream = state.withLock { state in
            let counts = state.counts ?? Multicast()
            // Otherwise the sequence ends after the last count.
            if !state.isOver { state.counts = counts }
            return counts.stream(first: state.count)
        }
        if result == nil, let count = loader.wantsCounts(ObjectIdentifier(self), key) { note(count, isLatest: false) }
        return stream
    }

    /// The priority of the load, as far as this receipt goes: the highest of all receipts counts. Default that of
    /// ``ResourceLoader/load(_:variant:ignoresCache:priority:completion:)``; a prefetch has `veryLow`, and any value
    /// that is set makes it an ordinary load.
    public var priority: Operation.QueuePriority {
        get { rank.priority }
        set {
            let rank = ResourceOrder.Rank(newValue)
            state.withLock { $0.rank = rank }
            loader.rankHasChanged(ObjectIdentifier(self), key)
        }
    }

    /// Ends the receipt with ``/EasyNetwork/NetworkError/Code/cancelled``, and its load if no other receipt is left.
    /// After the end it does nothing.
    public func cancel() {
        guard result == nil else { return }
        loader.leave(ObjectIdentifier(self), key)
        end(.failure(NetworkError(code: .cancelled)))
    }

    // MARK: - For the loader

    var rank: ResourceOrder.Rank { state.withLock { $0.rank } }

    var wantsPartials: Bool { state.withLock { $0.partials != nil } }

    func receive(_ partial: Resource) {
        // Under the lock, so that it does not replace the whole resource. It calls nobody.
        state.withLock { _ = $0.partials?.yield(partial) }
    }

    /// - Parameter isLatest: false for a count that a later one may have overtaken.
    func note(_ count: TransferMeter.Count, isLatest: Bool = true) {
        // Under the lock, as above.
        state.withLock { state in
            guard isLatest || state.count == nil else { return }
            state.count = count
            state.counts?.send(count)
        }
    }

    func end(_ result: Result<Resource, NetworkError>) {
        guard outcome.set(result) else { return }
        let (completion, partials, counts) = state.withLock { state in
            state.isOver = true
            return (state.completion.take(), state.partials.take(), state.counts.take())
        }
        counts?.finish()
        switch result {
        case .success(let resource):
            partials?.yield(resource)
            partials?.finish()
        case .failure(let error): partials?.finish(throwing: error)
        }
        guard let completion else { return }
        // Not in place: a completion that blocks would hold up the other receipts and the next load.
        loader.callbackQueue.add { completion(result) }
    }
}
