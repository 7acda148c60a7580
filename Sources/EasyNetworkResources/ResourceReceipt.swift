import EasyNetwork
import Foundation

/// The interface of a loader that its receipts use.
protocol ResourceReceiptHolder: AnyObject, Sendable {
    var callbackQueue: DispatchQueue { get }

    func rankHasChanged(_ receipt: ObjectIdentifier, _ key: String)
    func leave(_ receipt: ObjectIdentifier, _ key: String)
    /// Makes the loader report byte counts to the receipt.
    ///
    /// - Returns: the counts that are already known.
    func wantsCounts(_ receipt: ObjectIdentifier, _ key: String) -> TransferMeter.Count?
}

/// One caller's share in a load of a ``ResourceLoader``.
///
/// ```swift
/// func show(_ loader: ResourceLoader<Data>, _ url: URL) async throws {
///     let receipt = loader.load(url)
///     receipt.priority = .high
///     print(try await receipt.value.count)
/// }
/// ```
///
/// A receipt ends once: with the resource, with the error of the load, or with
/// ``/EasyNetwork/NetworkError/Code/cancelled``. The load stops when its last receipt is cancelled. If you release a
/// receipt without cancelling it, its load continues, as a task does. You can use all members from any thread.
public final class ResourceReceipt<Resource: Sendable>: Sendable {
    typealias Partials = AsyncThrowingStream<Resource, any Error>.Continuation

    private struct State {
        var rank: ResourceOrder.Rank
        /// The completion; `nil` after the end.
        var completion: (@Sendable (Result<Resource, NetworkError>) -> Void)?
        var partials: Partials?
        var count: TransferMeter.Count?
        var isOver = false
        /// The listeners of ``updates``; `nil` until there is one.
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

    /// The resource or the error; `nil` until the load has ended. The result is set before the completion is called.
    public var result: Result<Resource, NetworkError>? { outcome.value }

    /// The resource, as soon as it is available. Several tasks can wait. Cancelling one of them cancels the receipt.
    ///
    /// - Throws: the error of the load; ``/EasyNetwork/NetworkError/Code/cancelled`` after ``cancel()``.
    public var value: Resource {
        get async throws(NetworkError) {
            await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in outcome.whenSet { continuation.resume() } }
            } onCancel: {
                cancel()
            }
            // The result is set whenever the continuation resumes.
            guard let result else { throw NetworkError(code: .cancelled) }
            return try result.get()
        }
    }

    /// The number of bytes of the response that have arrived, and the response's length, `nil` if unknown. The sequence
    /// starts with the latest value, continues at most ten times a second, and ends with the receipt. A slow reader
    /// misses values in between.
    ///
    /// ```swift
    /// func show(_ receipt: ResourceReceipt<Data>) async {
    ///     for await (completed, total) in receipt.updates { print(completed, "of", total ?? 0) }
    /// }
    /// ```
    ///
    /// All receipts of a load report the same bytes, even a receipt that was added later or is for a variant. The
    /// counts start again with each message, as after a retry. A resource from memory, or a response from the cache,
    /// produces no counts.
    public var updates: AsyncStream<(completedBytes: Int64, totalBytes: Int64?)> {
        let stream = state.withLock { state in
            let counts = state.counts ?? Multicast()
            // The sequence of an ended receipt ends after the last count.
            if !state.isOver { state.counts = counts }
            return counts.stream(first: state.count)
        }
        if result == nil, let count = loader.wantsCounts(ObjectIdentifier(self), key) { note(count, isLatest: false) }
        return stream
    }

    /// The receipt's priority for the load, which gets the highest priority of its receipts. The initial value is the
    /// priority passed to ``ResourceLoader/load(_:variant:ignoresCache:priority:completion:)``. A prefetch has
    /// `.veryLow`, and setting any value makes it an ordinary load.
    public var priority: Operation.QueuePriority {
        get { rank.priority }
        set {
            let rank = ResourceOrder.Rank(newValue)
            state.withLock { $0.rank = rank }
            loader.rankHasChanged(ObjectIdentifier(self), key)
        }
    }

    /// Ends the receipt with ``/EasyNetwork/NetworkError/Code/cancelled``, and stops its load if no other receipt is
    /// left. Does nothing after the receipt has ended.
    public func cancel() {
        guard result == nil else { return }
        loader.leave(ObjectIdentifier(self), key)
        end(.failure(NetworkError(code: .cancelled)))
    }

    // MARK: - For the loader

    var rank: ResourceOrder.Rank { state.withLock { $0.rank } }

    var wantsPartials: Bool { state.withLock { $0.partials != nil } }

    func receive(_ partial: Resource) {
        // The lock ensures that no partial resource follows the whole one. Yielding calls no user code.
        state.withLock { _ = $0.partials?.yield(partial) }
    }

    /// - Parameter isLatest: false if a later count may already have been stored.
    func note(_ count: TransferMeter.Count, isLatest: Bool = true) {
        // The lock keeps the counts in order.
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
        // The completion runs on another queue, because a blocking completion would delay other receipts and the next
        // load.
        loader.callbackQueue.add { completion(result) }
    }
}
