import Foundation

/// The request for a resource, by the rules of HTTP for the cache.
struct GetResource: BaseAPIRequest {
    let url: URL

    var api: String { url.absoluteString }
    var options: RequestOptions { RequestOptions(cache: .http) }
}

/// How the answer to a request is decoded as a resource.
struct ResourceDecoder<Resource: Sendable>: Sendable {
    /// A decoded resource, its cost in memory, and whether it may be kept there.
    typealias Item = (resource: Resource, cost: Int, isStorable: Bool)

    let decode: @Sendable (NetworkResponse) throws -> Resource
    let cost: (@Sendable (Resource) -> Int)?
    /// Whether nobody wants the resource any more. A call whose answer has come maps it although it was cancelled.
    let isCancelled = Locked(false)

    func item(from response: NetworkResponse) throws -> Item {
        guard !isCancelled.withLock({ $0 }) else { throw NetworkError(code: .cancelled) }
        let resource = try decode(response)
        let cost = max(0, cost?(resource) ?? response.body.count)
        return (resource, cost, !CacheControl(response: response.headers).noStore)
    }
}

/// A load of a ``ResourceLoader``: a request that can tell what has come of its answer.
final class ResourceOperation<Resource: Sendable>: ItemOperation<ResourceDecoder<Resource>.Item>, @unchecked Sendable {
    // Sendable because everything that changes is in `partials`, behind its lock.
    private struct Partials {
        /// Nil while nobody wants partial resources.
        var receive: (@Sendable (Resource) -> Void)?
        var isDecoding = false
        var nextTime: TimeInterval = 0
        var lastCount = 0
    }

    /// Between two partial resources, in seconds.
    private static var interval: TimeInterval { 0.1 }

    private let partials = Locked(Partials())
    private let decodePartial: (@Sendable (NetworkResponse) throws -> Resource?)?
    private let url: URL
    private let decoder: ResourceDecoder<Resource>

    init(
        _ request: any BaseAPIRequest,
        decoder: ResourceDecoder<Resource>,
        url: URL,
        service: EasyNetworkService,
        decodePartial: (@Sendable (NetworkResponse) throws -> Resource?)?
    ) {
        self.url = url
        self.decoder = decoder
        self.decodePartial = decodePartial
        // The loader has one load for each key.
        super.init(request, request.options.with { $0.repeatPolicy = .allow }, of: service)
    }

    override func cancel() {
        decoder.isCancelled.exchange(true)
        super.cancel()
    }

    override func execute() {
        guard let source = takeRequest() else { return }
        send(source, order: .standard) { [decoder] in try decoder.item(from: $0) }
    }

    /// Passes on what can be decoded while the answer comes, at most ten times a second.
    func receivePartials(_ receive: @escaping @Sendable (Resource) -> Void) {
        guard decodePartial != nil else { return }
        partials.withLock { $0.receive = receive }
        // From now on the bytes are noted.
        _ = meter
    }

    override func note(_ counts: BodyStream.Counts, _ total: Int64?, in meter: TransferMeter) {
        super.note(counts, total, in: meter)
        guard let head = counts.head, 200..<300 ~= head.statusCode else { return }
        let now = service.configuration.settings.clock.now
        let isDue = partials.withLock { partials in
            guard partials.receive != nil, !partials.isDecoding, now >= partials.nextTime,
                counts.received != partials.lastCount
            else { return false }
            (partials.isDecoding, partials.nextTime, partials.lastCount) = (true, now + Self.interval, counts.received)
            return true
        }
        guard isDue else { return }
        WorkQueue.shared.async { [weak self] in self?.passOn() }
    }

    private func passOn() {
        let answer = state.withLock { $0.call }?.unreadAnswer
        if let answer, let head = answer.head, !answer.body.isEmpty, !hasOutcome {
            let response = NetworkResponse(
                statusCode: head.statusCode,
                headers: head.headers,
                body: answer.body,
                url: url
            )
            // Bytes that make no partial resource yet are no failure.
            let resource = try? WorkQueue.userCode { try decodePartial?(response) }
            if let resource { partials.withLock { $0.receive }?(resource) }
        }
        partials.withLock { $0.isDecoding = false }
    }
}
