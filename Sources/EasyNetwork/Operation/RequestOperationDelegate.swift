/// Hears of the end of ``ItemOperation``s, before their closures. Called on the operation's callback queue. Every
/// method does nothing by default.
///
/// ```swift
/// func requestOperationDidSucceed(_ operation: ServiceOperation) {
///     if let profile = operation as? RequestOperation<GetProfile> { show(try? profile.result?.get()) }
/// }
/// ```
public protocol RequestOperationDelegate: AnyObject, Sendable {
    /// Its ``RequestOperation/cachedItem`` is there, and the network's will follow.
    func requestOperationDidLoadFromCache(_ operation: ServiceOperation)
    /// Its ``ItemOperation/result`` has the item.
    func requestOperationDidSucceed(_ operation: ServiceOperation)
    /// It has failed, or was cancelled.
    func requestOperation(_ operation: ServiceOperation, didFailWith error: NetworkError)
}

extension RequestOperationDelegate {
    public func requestOperationDidLoadFromCache(_ operation: ServiceOperation) {}
    public func requestOperationDidSucceed(_ operation: ServiceOperation) {}
    public func requestOperation(_ operation: ServiceOperation, didFailWith error: NetworkError) {}
}
