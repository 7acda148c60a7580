import EasyNetwork
import Foundation

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
    }

    /// The key of the load.
    let key: String
    private let loader: ResourceLoader<Resource>
    private let state: Locked<State>
    private let outcome = SharedResult<Result<Resource, NetworkError>>()

    init(
        _ key: String,
        _ rank: ResourceOrder.Rank,
        _ loader: ResourceLoader<Resource>,
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

    /// The priority of the load, as far as this receipt goes: the highest of all receipts counts. Default that of
    /// ``ResourceLoader/load(_:priority:completion:)``; a prefetch has `veryLow`, and any value that is set makes it an
    /// ordinary load.
    public var priority: Operation.QueuePriority {
        get { rank.priority }
        set {
            let rank = ResourceOrder.Rank(newValue)
            state.withLock { $0.rank = rank }
            loader.rankHasChanged(self)
        }
    }

    /// Ends the receipt with ``/EasyNetwork/NetworkError/Code/cancelled``, and its load if no other receipt is left.
    /// After the end it does nothing.
    public func cancel() {
        guard result == nil else { return }
        loader.leave(self)
        end(.failure(NetworkError(code: .cancelled)))
    }

    // MARK: - For the loader

    var rank: ResourceOrder.Rank { state.withLock { $0.rank } }

    var wantsPartials: Bool { state.withLock { $0.partials != nil } }

    func receive(_ partial: Resource) {
        // Under the lock, so that it does not replace the whole resource. It calls nobody.
        state.withLock { _ = $0.partials?.yield(partial) }
    }

    func end(_ result: Result<Resource, NetworkError>) {
        guard outcome.set(result) else { return }
        let (completion, partials) = state.withLock { ($0.completion.take(), $0.partials.take()) }
        switch result {
        case .success(let resource):
            partials?.yield(resource)
            partials?.finish()
        case .failure(let error): partials?.finish(throwing: error)
        }
        guard let completion else { return }
        // Not in place: a completion that blocks would hold up the other receipts and the next load.
        loader.callbackQueue.async { completion(result) }
    }
}
