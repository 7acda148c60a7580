import Dispatch
import Foundation

/// Sends requests to one host and brings back checked answers.
///
/// ```swift
/// let service = EasyNetworkService(HostConfiguration.shared)
/// let response = try await service.send(PingRequest())
/// ```
///
/// Every request ends exactly once, with an answer whose status is accepted or with a ``NetworkError``. All members may
/// be used from any thread. No user code is called on the transport's threads.
public final class EasyNetworkService: Sendable {
    private struct State {
        /// Why nothing is sent any more.
        var refusal: NetworkError?
        var landings: [ObjectIdentifier: Landing] = [:]
    }

    /// The host that requests go to.
    public let configuration: HostConfiguration

    /// The service that this one is a part of: cancelling that one cancels this one too.
    let parent: EasyNetworkService?

    private let state = Locked(State())

    public init(_ configuration: HostConfiguration) {
        self.configuration = configuration
        parent = nil
    }

    /// A service of its own for one operation, so that cancelling the operation leaves its neighbours alone.
    init(partOf parent: EasyNetworkService) {
        configuration = parent.configuration
        self.parent = parent
    }

    /// Sends a request and hands over the JSON value of the answer.
    ///
    /// One of the two closures is called, once, on the host's `callbackQueue`.
    ///
    /// - Parameters:
    ///   - success: gets the body as `JSONSerialization` reads it, nil when the body is empty.
    ///   - failure: gets the error; a body that is not JSON is ``NetworkError/Code/cannotParseResponse``.
    public func request(
        _ request: some BaseAPIRequest,
        success: (@Sendable (Any?) -> Void)?,
        failure: (@Sendable (NetworkError) -> Void)?
    ) {
        let callbackQueue = configuration.deliveryQueue
        start(request) { (response) throws(NetworkError) in
            JSONValue(response.body.isEmpty ? nil : try response.json())
        } completion: { result in
            switch result {
            case .success(let json):
                if let success { callbackQueue.async { success(json.value) } }
            case .failure(let error):
                if let failure { callbackQueue.async { failure(error) } }
            }
        }
    }

    /// Sendable because the value is made by one closure and read by the next, and nobody else has it.
    private struct JSONValue: @unchecked Sendable {
        let value: Any?

        init(_ value: Any?) {
            self.value = value
        }
    }

    /// Sends a request and returns the answer.
    ///
    /// Cancelling the task cancels the request.
    ///
    /// - Parameter ignoringCache: see ``RequestOperation/ignoresCache``. Default false.
    /// - Throws: ``NetworkError/Code/invalidRequest`` for what cannot be sent, an error of the transport,
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
    /// - Parameter ignoringCache: see ``RequestOperation/ignoresCache``. Default false.
    /// - Throws: what ``send(_:ignoringCache:)`` throws, and what making the item throws, as a ``NetworkError``.
    public func perform<Request: APIRequest>(
        _ request: Request,
        ignoringCache: Bool = false
    ) async throws(NetworkError) -> Request.Item {
        try await perform(request, ignoringCache, map: request.item)
    }

    private func perform<Item: Sendable>(
        _ request: some BaseAPIRequest,
        _ ignoringCache: Bool,
        map: @escaping @Sendable (NetworkResponse) throws -> Item
    ) async throws(NetworkError) -> Item {
        guard !Task.isCancelled else { throw NetworkError(code: .cancelled) }
        // Of its own, so that all that is begun for this request is cancelled with the task.
        let service = EasyNetworkService(partOf: self)
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let order: CacheUse.Order = ignoringCache ? .ignore : .standard
                service.start(request, order: order, map: map, completion: { continuation.resume(returning: $0) })
            }
        } onCancel: {
            service.cancel()
        }
        return try result.get()
    }

    /// Cancels everything under way, and refuses what is asked for later: that ends with
    /// ``NetworkError/Code/cancelled``, and nothing is sent.
    public func cancel() {
        refuse(NetworkError(code: .cancelled))
    }

    /// Ends everything under way and everything that is asked for later with this error; the first one stays.
    func refuse(_ error: NetworkError) {
        let (landings, refusal) = state.withLock { state in
            let refusal = state.refusal ?? error
            state.refusal = refusal
            return (Array(state.landings.values), refusal)
        }
        for landing in landings { landing.fail(refusal) }
    }

    /// Sends a request.
    ///
    /// - Parameters:
    ///   - slot: the operation that gives its slot back while the request waits; default nil, none.
    ///   - order: how the cache is asked. Default ``CacheUse/Order/standard``.
    ///   - sink: where an accepted body goes; the answer is without it then, and the cache is not asked. Default nil.
    ///   - cached: called at most once before the completion, on ``WorkQueue``, with the item from the cache that the
    ///     network's will follow.
    ///   - map: makes the item from an accepted answer, on ``WorkQueue``.
    ///   - isMapped: whether an answer may be stored, for one that others map. Default true.
    ///   - completion: called exactly once, on ``WorkQueue``.
    @discardableResult
    func start<Item>(
        _ request: some BaseAPIRequest,
        slot: NetworkOperation? = nil,
        order: CacheUse.Order = .standard,
        sink: (any BodySink)? = nil,
        cached: (@Sendable (Item) -> Void)? = nil,
        map: @escaping @Sendable (NetworkResponse) throws -> Item,
        isMapped: @escaping @Sendable (NetworkResponse) -> Bool = { _ in true },
        completion: @escaping @Sendable (Result<Item, NetworkError>) -> Void
    ) -> Landing {
        tellOfStart(request)
        return begin(request, slot, order, sink, cached, map, isMapped) { response, result in
            self.tellOfEnd(request, response, result.failure)
            completion(result)
        }
    }

    /// - Parameters: those of ``start(_:slot:order:sink:cached:map:isMapped:completion:)``.
    ///   - order: how the cache is asked.
    ///   - completion: gets the answer too, if there is one, even when it could not be mapped.
    @discardableResult
    func begin<Item>(
        _ request: some BaseAPIRequest,
        _ slot: NetworkOperation?,
        _ order: CacheUse.Order,
        _ sink: (any BodySink)?,
        _ cached: (@Sendable (Item) -> Void)?,
        _ map: @escaping @Sendable (NetworkResponse) throws -> Item,
        _ isMapped: @escaping @Sendable (NetworkResponse) -> Bool,
        _ completion: @escaping @Sendable (NetworkResponse?, Result<Item, NetworkError>) -> Void
    ) -> Landing {
        let landing = Landing { response in
            // One that cannot be read is passed over; the network's will take its place.
            if let cached, case .success(let item) = response.item(map) { cached(item) }
        } _: { landing, end in
            self.forget(landing)
            let response = try? end.result.get()
            let mapped = end.result.flatMap { $0.item(map) }
            if case .failure(let error) = mapped, let unusable = end.unusableEntry(after: error) {
                unusable.cache.remove(unusable.key)
                self.begin(request, slot, .pass(.unreadable), sink, nil, map, isMapped, completion)
                return
            }
            // First, as what it makes wrong is older than its own answer.
            if case .success = mapped { self.perform(end, request, map, isMapped) }
            self.forgetStored(after: end.result)
            completion(response, mapped)
        }
        if let refusal = remember(landing) {
            landing.fail(refusal)
            return landing
        }
        do throws(NetworkError) {
            let message = try RequestBuilder.build(request, for: configuration)
            let site = try LandingSite(configuration, request, message, slot: slot, order: order, sink: sink)
            configuration.payForRetries()
            landing.begin(LandingCourse(message, site.rules), at: site)
        } catch {
            landing.fail(error)
        }
        return landing
    }

    // MARK: - Under way

    /// - Returns: why it is refused, when this service, or one that it is a part of, has been cancelled.
    func remember(_ landing: Landing) -> NetworkError? {
        let refusal = state.withLock { state in
            if state.refusal == nil { state.landings[ObjectIdentifier(landing)] = landing }
            return state.refusal
        }
        return refusal ?? parent?.remember(landing)
    }

    func forget(_ landing: Landing) {
        _ = state.withLock { $0.landings.removeValue(forKey: ObjectIdentifier(landing)) }
        parent?.forget(landing)
    }

    // MARK: - Notifications

    private func tellOfStart(_ request: some BaseAPIRequest) {
        guard configuration.settings.postsNotifications else { return }
        let key = NetworkNotification.requestKey
        NetworkNotification.post(NetworkNotification.requestDidStart, configuration, [key: request.asMade])
    }

    private func tellOfEnd(_ request: some BaseAPIRequest, _ response: NetworkResponse?, _ error: NetworkError?) {
        if let error, error.code == .unauthorized {
            NetworkNotification.post(
                NetworkNotification.unauthorized,
                configuration,
                [NetworkNotification.errorKey: error]
            )
        }
        guard configuration.settings.postsNotifications else { return }
        var information: [String: Any] = [NetworkNotification.requestKey: request.asMade]
        if let error { information[NetworkNotification.errorKey] = error }
        if error == nil, let response { information[NetworkNotification.responseKey] = response }
        NetworkNotification.post(NetworkNotification.requestDidFinish, configuration, information)
    }
}

extension Result {
    var failure: Failure? {
        guard case .failure(let error) = self else { return nil }
        return error
    }
}
