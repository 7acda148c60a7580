import EasyNetwork
import Foundation

/// The request for a resource, by the rules of HTTP for the cache.
struct GetResource: BaseAPIRequest {
    let url: URL

    var api: String { url.absoluteString }
    var options: RequestOptions { RequestOptions(cache: .http) }
}

/// How the answer to a request is decoded as a resource.
package struct ResourceDecoder<Resource: Sendable>: Sendable {
    /// A decoded resource, its cost in memory, and whether it may be kept there.
    package typealias Item = (resource: Resource, cost: Int, isStorable: Bool)

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
package final class ResourceOperation<Resource: Sendable>: ItemOperation<ResourceDecoder<Resource>.Item>,
    @unchecked Sendable
{
    // Sendable because everything that changes is in `partials`, behind its lock.
    private struct Partials {
        /// Nil while nobody wants partial resources.
        var receive: (@Sendable (Resource) -> Void)?
        var lastCount = 0
    }

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

    package override func cancel() {
        decoder.isCancelled.exchange(true)
        super.cancel()
    }

    package override func execute() {
        sendRequest { [decoder] in try decoder.item(from: $0) }
    }

    /// Passes on what can be decoded while the answer comes, at most ten times a second, as often as progress is told.
    func receivePartials(_ receive: @escaping @Sendable (Resource) -> Void) {
        guard decodePartial != nil else { return }
        let old = partials.withLock { exchange(&$0.receive, with: receive) }
        if old == nil { meter.whenPublished { [weak self] _ in self?.passOn() } }
    }

    private func passOn() {
        guard let answer = answerSoFar, 200..<300 ~= answer.head.statusCode, !answer.body.isEmpty, !hasOutcome,
            partials.withLock({ exchange(&$0.lastCount, with: answer.body.count) != answer.body.count })
        else { return }
        let response = NetworkResponse(
            statusCode: answer.head.statusCode,
            headers: answer.head.headers,
            body: answer.body,
            url: url
        )
        // Bytes that make no partial resource yet are no failure.
        let resource = try? WorkQueue.userCode { try decodePartial?(response) }
        if let resource { partials.withLock { $0.receive }?(resource) }
    }
}
