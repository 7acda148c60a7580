import Dispatch
import Foundation

/// The notification posted when a server answers 401, before the failure of the request is delivered.
///
/// It is posted on a background queue. Its object is the ``HostConfiguration``; its user info has the ``NetworkError``
/// under the key `"error"`.
public let DidPerformUnauthorizedOperation = "DidPerformUnauthorizedOperation"

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
    /// - Throws: ``NetworkError/Code/invalidRequest`` for what cannot be sent, an error of the transport,
    ///   ``NetworkError/Code/unacceptableStatus``, ``NetworkError/Code/unauthorized``, or
    ///   ``NetworkError/Code/cancelled``.
    public func send(_ request: some BaseAPIRequest) async throws(NetworkError) -> NetworkResponse {
        guard !Task.isCancelled else { throw NetworkError(code: .cancelled) }
        let landing = Locked<Landing?>(nil)
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let started = start(request, map: { $0 }, completion: { continuation.resume(returning: $0) })
                landing.withLock { $0 = started }
                // The task may have been cancelled before there was anything to cancel.
                if Task.isCancelled { started.cancel() }
            }
        } onCancel: {
            landing.withLock { $0 }?.cancel()
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
    ///   - map: makes the item from an accepted answer, on ``WorkQueue``.
    ///   - completion: called exactly once, on ``WorkQueue``.
    @discardableResult
    func start<Item>(
        _ request: some BaseAPIRequest,
        map: @escaping @Sendable (NetworkResponse) throws -> Item,
        completion: @escaping @Sendable (Result<Item, NetworkError>) -> Void
    ) -> Landing {
        let validation = request.validation ?? configuration.validation
        let landing = Landing { landing, result in
            self.forget(landing)
            let checked = result.flatMap { Self.check($0, validation, map) }
                .mapError { landing.annotate($0) }
            if case .failure(let error) = checked, error.code == .unauthorized { self.postUnauthorized(error) }
            completion(checked)
        }
        if let refusal = remember(landing) {
            landing.fail(refusal)
            return landing
        }
        do throws(NetworkError) {
            let message = try RequestBuilder.build(
                request,
                base: configuration.baseURL,
                headers: configuration.headers,
                deadlines: configuration.deadlines
            )
            landing.send(message, over: configuration.transport)
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

    // MARK: - The answer

    private static func check<Item>(
        _ response: NetworkResponse,
        _ validation: ResponseValidation,
        _ map: (NetworkResponse) throws -> Item
    ) -> Result<Item, NetworkError> {
        if let error = validation.error(for: response) { return .failure(error) }
        do {
            return .success(try map(response))
        } catch {
            return .failure(response.mappingError(error))
        }
    }

    private func postUnauthorized(_ error: NetworkError) {
        NotificationCenter.default.post(
            name: Notification.Name(DidPerformUnauthorizedOperation),
            object: configuration,
            userInfo: ["error": error]
        )
    }
}
