import Foundation

extension CallGroup {
    /// Makes a call, waits for its end, and notes the end for the operation. Cancelling the task cancels the call.
    ///
    /// - Parameters:
    ///   - created: Gets the call before it begins. Defaults to nothing.
    ///   - map: Makes the item from an accepted response, on ``WorkQueue``.
    func result<Item: Sendable>(
        of request: CallRequest,
        created: (Call) -> Void = { _ in },
        map: @escaping @Sendable (NetworkResponse) throws -> Item
    ) async -> Result<Item, NetworkError> {
        // The call gets its own group, which is cancelled with the task.
        let group = CallGroup(partOf: self)
        let job = job
        let result: Result<Item, NetworkError> = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                // The copy is made here, so that it is not held while the call runs.
                var request = request
                request.map = { try map($1) }
                let call = Call(request, in: group) { _, result, keep in
                    keep?()
                    continuation.resume(returning: result.map(Self.typed))
                }
                call.start(created)
            }
        } onCancel: {
            group.cancel()
        }
        job?.group.noteEnd(of: result.failure)
        return result
    }

    /// Restores the type of a call's item. A ``Call`` is not generic, because reading a type's layout at run time slows
    /// down each request.
    ///
    /// - Parameter item: The item, made by the call's `map`, which returns this type. The cast therefore succeeds.
    static func typed<Item: Sendable>(_ item: any Sendable) -> Item {
        // swift-format-ignore: NeverForceUnwrap
        item as! Item
    }
}
