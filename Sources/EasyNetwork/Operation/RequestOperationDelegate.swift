/// The delegate of ``ItemOperation``s. It is notified of their end, before their closures. Its methods are called on
/// the operation's callback queue. Every method does nothing by default.
///
/// ```swift
/// func requestOperationDidSucceed(_ operation: ServiceOperation) {
///     if let profile = operation as? RequestOperation<GetProfile> { show(try? profile.result?.get()) }
/// }
/// ```
public protocol RequestOperationDelegate: AnyObject, Sendable {
    /// Called when the operation has its ``RequestOperation/cachedItem``, and the network's item will follow.
    func requestOperationDidLoadFromCache(_ operation: ServiceOperation)
    /// Called when the operation has succeeded, and its ``ItemOperation/result`` has the item.
    func requestOperationDidSucceed(_ operation: ServiceOperation)
    /// Called when the operation has failed or was cancelled.
    func requestOperation(_ operation: ServiceOperation, didFailWith error: NetworkError)
}

extension RequestOperationDelegate {
    public func requestOperationDidLoadFromCache(_ operation: ServiceOperation) {}
    public func requestOperationDidSucceed(_ operation: ServiceOperation) {}
    public func requestOperation(_ operation: ServiceOperation, didFailWith error: NetworkError) {}
}
