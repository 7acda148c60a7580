import Foundation

extension CallGroup {
    /// Makes a call, waits for its end, and notes that for the operation. Cancelling the task cancels the call.
    ///
    /// - Parameter map: see ``start(_:map:completion:)``.
    func result<Item: Sendable>(
        of request: CallRequest,
        map: @escaping @Sendable (NetworkResponse) throws -> Item
    ) async -> Result<Item, NetworkError> {
        // A group of its own, which is cancelled with the task.
        let group = CallGroup(partOf: self)
        let caller = caller
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                group.start(request, map: map) { continuation.resume(returning: $0) }
            }
        } onCancel: {
            group.cancel()
        }
        caller?.callGroup.noteEnd(of: result.failure)
        return result
    }

    /// Makes a call.
    ///
    /// - Parameters:
    ///   - map: makes the item from an accepted response, on ``WorkQueue``.
    ///   - completion: called exactly once, on ``WorkQueue``.
    func start<Item: Sendable>(
        _ request: CallRequest,
        map: @escaping @Sendable (NetworkResponse) throws -> Item,
        completion: @escaping @Sendable (Result<Item, NetworkError>) -> Void
    ) {
        var request = request
        request.map = { try map($0) }
        begin(request) { _, result, keep in
            keep?()
            completion(result.map(Self.typed))
        }
    }

    /// An item of a call, in which its type is erased.
    ///
    /// - Parameter item: made by the call's `map`, which makes such items: the cast holds.
    static func typed<Item: Sendable>(_ item: any Sendable) -> Item {
        // swift-format-ignore: NeverForceUnwrap
        item as! Item
    }

    /// Makes a call for an item of any type. It is not generic, as reading a type's layout at run time costs each
    /// request.
    ///
    /// - Parameters:
    ///   - created: gets the call before it begins.
    ///   - completion: called exactly once, on ``WorkQueue``.
    func begin(
        _ request: CallRequest,
        created: (Call) -> Void = { _ in },
        completion: @escaping Call.Completion
    ) {
        Call(request, in: self, completion).start(created)
    }
}
