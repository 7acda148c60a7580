import Foundation

extension CallGroup {
    /// Makes a call, waits for its end, and notes the end for the operation. Cancelling the task cancels the call.
    ///
    /// - Parameters:
    ///   - created: Gets the call before it begins. Defaults to nothing.
    ///   - map: See ``start(_:map:completion:)``.
    func result<Item: Sendable>(
        of request: CallRequest,
        created: (Call) -> Void = { _ in },
        map: @escaping @Sendable (NetworkResponse) throws -> Item
    ) async -> Result<Item, NetworkError> {
        // The call gets its own group, which is cancelled with the task.
        let group = CallGroup(partOf: self)
        let job = job
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                group.start(request, created: created, map: map) { continuation.resume(returning: $0) }
            }
        } onCancel: {
            group.cancel()
        }
        job?.group.noteEnd(of: result.failure)
        return result
    }

    /// Makes a call.
    ///
    /// - Parameters:
    ///   - created: Gets the call before it begins. Defaults to nothing.
    ///   - map: Makes the item from an accepted response, on ``WorkQueue``.
    ///   - completion: Called exactly once, on ``WorkQueue``.
    func start<Item: Sendable>(
        _ request: CallRequest,
        created: (Call) -> Void = { _ in },
        map: @escaping @Sendable (NetworkResponse) throws -> Item,
        completion: @escaping @Sendable (Result<Item, NetworkError>) -> Void
    ) {
        var request = request
        request.map = { try map($1) }
        begin(request, created: created) { _, result, keep in
            keep?()
            completion(result.map(Self.typed))
        }
    }

    /// Restores the type of a call's item.
    ///
    /// - Parameter item: The item, made by the call's `map`, which returns this type. The cast therefore succeeds.
    static func typed<Item: Sendable>(_ item: any Sendable) -> Item {
        // swift-format-ignore: NeverForceUnwrap
        item as! Item
    }

    /// Makes a call for an item of any type. The method is not generic, because reading a type's layout at run time
    /// slows down each request.
    ///
    /// - Parameters:
    ///   - created: Gets the call before it begins.
    ///   - completion: Called exactly once, on ``WorkQueue``.
    func begin(
        _ request: consuming CallRequest,
        created: (Call) -> Void = { _ in },
        completion: @escaping Call.Completion
    ) {
        Call(consume request, in: self, completion).start(created)
    }
}
