import Dispatch
import Foundation

/// Sends requests to one host and returns validated responses.
///
/// ```swift
/// let service = EasyNetworkService(HostConfiguration.shared)
/// let response = try await service.send(PingRequest())
/// ```
///
/// Every request ends exactly once, with a response whose status is accepted or with a ``NetworkError``. All members
/// can be used from any thread. No user code is called on the transport's threads.
public final class EasyNetworkService: Sendable {
    let group: CallGroup

    /// The host that requests are sent to.
    public var configuration: HostConfiguration { group.host }

    /// Creates a service for a host.
    public init(_ configuration: HostConfiguration) {
        group = CallGroup(configuration)
    }

    init(_ group: CallGroup) {
        self.group = group
    }

    /// Sends a request and passes the JSON value of the response to a closure.
    ///
    /// Exactly one of the closures `success` and `failure` is called, once. It runs on the host's
    /// ``HostSettings/callbackQueue``, or, for the service of a ``ServiceOperation``, on the operation's
    /// ``ServiceOperation/callbackQueue``. Such a service calls neither closure if the operation was cancelled and
    /// ``ServiceOperation/silencesCancellation`` is true, nor after ``ResponseDecision/stop``, which ends the
    /// operation. If a call fails and has no `failure`, the operation ends with its error, unless another call of the
    /// operation is running.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - success: Gets the body as `JSONSerialization` reads it; nil if the body is empty. Defaults to `nil`.
    ///   - failure: Gets the error. A body that is not JSON fails with ``NetworkError/Code/cannotParseResponse``.
    ///     Defaults to `nil`.
    ///   - cached: Called at most once before the other closures, on the same queue, with the JSON value of the cached
    ///     body, if the network's response will follow. This happens with ``CachePolicy/Reading/cacheThenNetwork``.
    ///     Defaults to `nil`.
    public func request(
        _ request: some BaseAPIRequest,
        success: (@Sendable (Any?) -> Void)? = nil,
        failure: (@Sendable (NetworkError) -> Void)? = nil,
        cached: (@Sendable (Any?) -> Void)? = nil
    ) {
        let success = success.map { success in { @Sendable (answer: JSONAnswer) in success(answer.json) } }
        let cached = cached.map { cached in { @Sendable (answer: JSONAnswer) in cached(answer.json) } }
        self.request(request, success, failure, cached)
    }

    /// Sends a request, and passes the JSON value of the body and the complete response to a closure. Use the response
    /// to read its headers, its ``NetworkResponse/source`` or values that interceptors attached.
    ///
    /// ```swift
    /// service.request(GetUsers(), successWithResponse: { json, response in
    ///     print(json ?? "no body", response.headers["X-RateLimit-Remaining"] ?? "")
    /// })
    /// ```
    ///
    /// For everything else, see `request(_:success:failure:cached:)`.
    public func request(
        _ request: some BaseAPIRequest,
        successWithResponse: @escaping @Sendable (Any?, NetworkResponse) -> Void,
        failure: (@Sendable (NetworkError) -> Void)? = nil
    ) {
        self.request(request, { successWithResponse($0.json, $0.response) }, failure, nil)
    }

    /// A JSON value and its response. Sendable because one closure makes the value and the next reads it, without other
    /// references.
    private struct JSONAnswer: @unchecked Sendable {
        let json: Any?
        let response: NetworkResponse
    }

    /// Sends a request, and delivers its results to the closures that exist.
    ///
    /// - Parameter onMain: Whether the closures are called on the main actor. Defaults to `false`.
    private func request(
        _ request: some BaseAPIRequest,
        onMain: Bool = false,
        _ success: (@Sendable (JSONAnswer) -> Void)?,
        _ failure: (@Sendable (NetworkError) -> Void)?,
        _ cached: (@Sendable (JSONAnswer) -> Void)?
    ) {
        let job = group.job
        let queue = job?.actions.deliveryQueue() ?? group.lastCallbackQueue ?? configuration.deliveryQueue
        @Sendable func deliver(
            inPlace: Bool,
            _ code: @escaping @Sendable () -> Void,
            then done: @escaping @Sendable () -> Void
        ) {
            if onMain { return WorkQueue.callOnMain(code, then: done) }
            WorkQueue.call(on: queue, inPlace: inPlace) {
                WorkQueue.userCode(code)
                done()
            }
        }
        job?.group.noteCallbackPending()
        // The end waits until the closure `cached` has returned. `cached` is not called after the end.
        let cachedDelivery = cached == nil ? nil : Locked<(delivery: Promise<Void>?, isOver: Bool)>((nil, false))
        var call = CallRequest(request)
        if let cached, let cachedDelivery {
            call.cached = { item in
                let delivery = Promise<Void>()
                let isWanted = cachedDelivery.withLock { state in
                    if !state.isOver { state.delivery = delivery }
                    return !state.isOver
                }
                if isWanted { deliver(inPlace: false, { cached(CallGroup.typed(item)) }, then: delivery.set) }
            }
        }
        call.map = { JSONAnswer(json: $1.body.isEmpty ? nil : try $1.json(), response: $1) }
        Call(call, in: group) { _, result, keep in
            let end = { @Sendable in
                let error = result.failure
                if let error, job?.actions.endsSilently(error) ?? self.group.isSilenced(error) {
                    job?.noteCallbackReturned()
                } else if error == nil ? success != nil : failure != nil {
                    deliver(inPlace: true) {
                        // Note the end here and not earlier, so that a `finish()` in the closure finds this end.
                        job?.group.noteEnd(of: error)
                        switch result {
                        case .success(let item): success?(CallGroup.typed(item))
                        case .failure(let error): failure?(error)
                        }
                    } then: {
                        keep?()
                        job?.noteCallbackReturned()
                    }
                } else {
                    keep?()
                    job?.group.noteEnd(of: error, isReported: false)
                    job?.noteCallbackReturned()
                }
            }
            let delivery = cachedDelivery?.withLock { state in
                state.isOver = true
                return state.delivery
            }
            if let delivery { delivery.whenSet(end) } else { end() }
        }.start()
    }

    /// Sends a request like `request(_:success:failure:cached:)`, for a handler that takes an `NSError`, such as
    /// `failure: handleFailure`.
    ///
    /// A closure that does not name the type of its parameter gets a ``NetworkError``.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - success: Gets the body as `JSONSerialization` reads it; nil if the body is empty. Defaults to `nil`.
    ///   - failure: Gets the error in ``NetworkError/errorDomain``, with the number of its ``NetworkError/code``.
    ///   - cached: Gets the JSON value of the cached body, if the network's response will follow. Defaults to `nil`.
    // Without the attribute, a closure with an untyped parameter would match both methods.
    @_disfavoredOverload
    public func request(
        _ request: some BaseAPIRequest,
        success: (@Sendable (Any?) -> Void)? = nil,
        failure: (@Sendable (NSError) -> Void)?,
        cached: (@Sendable (Any?) -> Void)? = nil
    ) {
        let typed = failure.map { failure in { @Sendable (error: NetworkError) in failure(error.bridged) } }
        self.request(request, success: success, failure: typed, cached: cached)
    }

    /// Sends a request like `request(_:success:failure:cached:)`. The closures run on the main actor, whatever the
    /// callback queue is. Use it in operations for a user interface. The main queue must be running, as it is in an
    /// app.
    ///
    /// ```swift
    /// final class SignOut: ServiceOperation, @unchecked Sendable {
    ///     // Sendable because it is set before the operation is added to a queue.
    ///     var done: (@MainActor () -> Void)?
    ///
    ///     override func execute() {
    ///         service.requestOnMain(SignOutRequest(), success: handleSuccess, failure: { self.finish($0) })
    ///     }
    ///
    ///     @MainActor private func handleSuccess(_ response: Any?) {
    ///         done?()
    ///         finish()
    ///     }
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - success: Gets the body as `JSONSerialization` reads it; nil if the body is empty. Pass `nil` for no closure.
    ///   - failure: Gets the error. A body that is not JSON fails with ``NetworkError/Code/cannotParseResponse``.
    ///     Defaults to `nil`.
    ///   - cached: Gets the JSON value of the cached body, if the network's response will follow. Defaults to `nil`.
    public func requestOnMain(
        _ request: some BaseAPIRequest,
        success: (@MainActor (Any?) -> Void)?,
        failure: (@MainActor (NetworkError) -> Void)? = nil,
        cached: (@MainActor (Any?) -> Void)? = nil
    ) {
        let success = success.map { success in { @MainActor (answer: JSONAnswer) in success(answer.json) } }
        let cached = cached.map { cached in { @MainActor (answer: JSONAnswer) in cached(answer.json) } }
        self.request(request, onMain: true, Self.isolated(success), Self.isolated(failure), Self.isolated(cached))
    }

    /// Sends a request like `request(_:successWithResponse:failure:)`. The closures run on the main actor, whatever the
    /// callback queue is.
    public func requestOnMain(
        _ request: some BaseAPIRequest,
        successWithResponse: @escaping @MainActor (Any?, NetworkResponse) -> Void,
        failure: (@MainActor (NetworkError) -> Void)? = nil
    ) {
        let success = { @MainActor (answer: JSONAnswer) in successWithResponse(answer.json, answer.response) }
        self.request(request, onMain: true, Self.isolated(success), Self.isolated(failure), nil)
    }

    /// Returns a closure that calls another one. It must be called on the main actor.
    private static func isolated<Value: Sendable>(
        _ closure: (@MainActor (Value) -> Void)?
    ) -> (@Sendable (Value) -> Void)? {
        guard let closure else { return nil }
        return { value in MainActor.assumeIsolated { closure(value) } }
    }

    /// Sends a request like `requestOnMain(_:success:failure:cached:)`, for a handler that takes an `NSError`.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - success: Gets the body as `JSONSerialization` reads it; nil if the body is empty. Pass `nil` for no closure.
    ///   - failure: Gets the error in ``NetworkError/errorDomain``, with the number of its ``NetworkError/code``.
    ///   - cached: Gets the JSON value of the cached body, if the network's response will follow. Defaults to `nil`.
    // Without the attribute, a closure with an untyped parameter would match both methods.
    @_disfavoredOverload
    public func requestOnMain(
        _ request: some BaseAPIRequest,
        success: (@MainActor (Any?) -> Void)?,
        failure: (@MainActor (NSError) -> Void)?,
        cached: (@MainActor (Any?) -> Void)? = nil
    ) {
        let typed = failure.map { failure in { @MainActor (error: NetworkError) in failure(error.bridged) } }
        requestOnMain(request, success: success, failure: typed, cached: cached)
    }

    /// Sends a request and returns the response.
    ///
    /// Cancelling the task cancels the request.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - ignoringCache: See ``RequestOperation/ignoresCache``. Defaults to `false`.
    /// - Throws: ``NetworkError/Code/invalidRequest`` for a request that cannot be sent, an error of the transport,
    ///   ``NetworkError/Code/unacceptableStatus``, ``NetworkError/Code/unauthorized``, or
    ///   ``NetworkError/Code/cancelled``.
    public func send(
        _ request: some BaseAPIRequest,
        ignoringCache: Bool = false
    ) async throws(NetworkError) -> NetworkResponse {
        try await perform(request, ignoringCache) { $0 }
    }

    /// Sends a request and returns its item.
    ///
    /// Cancelling the task cancels the request.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - ignoringCache: See ``RequestOperation/ignoresCache``. Defaults to `false`.
    /// - Throws: The errors of ``send(_:ignoringCache:)``, and errors of making the item, as a ``NetworkError``.
    public func perform<Request: APIRequest>(
        _ request: Request,
        ignoringCache: Bool = false
    ) async throws(NetworkError) -> Request.Item {
        try await perform(request, ignoringCache, map: request.item)
    }

    /// Sends a request and returns its item and its response, with its body.
    ///
    /// ```swift
    /// let (users, response) = try await service.performWithResponse(GetUsers())
    /// print(users.count, response.headers["X-RateLimit-Remaining"] ?? "")
    /// ```
    ///
    /// For everything else, see ``perform(_:ignoringCache:)``.
    public func performWithResponse<Request: APIRequest>(
        _ request: Request,
        ignoringCache: Bool = false
    ) async throws(NetworkError) -> (item: Request.Item, response: NetworkResponse) {
        try await perform(request, ignoringCache) { (try request.item(from: $0), $0) }
    }

    private func perform<Item: Sendable>(
        _ request: some BaseAPIRequest,
        _ ignoringCache: Bool,
        map: @escaping @Sendable (NetworkResponse) throws -> Item
    ) async throws(NetworkError) -> Item {
        guard !Task.isCancelled else { throw NetworkError(code: .cancelled) }
        var call = CallRequest(request)
        if ignoringCache { call.order = .ignore }
        return try await group.result(of: call, map: map).get()
    }

    /// Cancels all calls, and refuses later ones with ``NetworkError/Code/cancelled``.
    public func cancel() {
        group.cancel()
    }
}

extension Result {
    package var failure: Failure? {
        guard case .failure(let error) = self else { return nil }
        return error
    }
}
