import EasyNetwork
import Foundation

/// The request for a resource, by the rules of HTTP for the cache.
struct GetResource: BaseAPIRequest {
    let url: URL

    var api: String { url.absoluteString }
    var options: RequestOptions { RequestOptions(cache: .http) }
}

/// What a load has made of its answer.
package struct LoadedResource<Resource: Sendable>: Sendable {
    /// Nil when no more than the answer in the cache was wanted.
    let resource: Resource?
    /// Its cost in memory.
    let cost: Int
    /// Whether it may be kept there.
    let isStorable: Bool
}

/// A load of a ``ResourceLoader``: a request that can tell what has come of its answer.
package final class ResourceOperation<Resource: Sendable>: ItemOperation<LoadedResource<Resource>>, @unchecked Sendable
{
    // Sendable because everything that changes is in `receivers`, behind its lock.
    private struct Receivers {
        /// Nil while partial resources are not wanted.
        var partial: (@Sendable (Resource) -> Void)?
        /// Nil while the bytes are not wanted.
        var count: (@Sendable (TransferMeter.Count) -> Void)?
        var lastCount = 0
    }

    private let receivers = Locked(Receivers())
    private let decodePartial: (@Sendable (NetworkResponse) throws -> Resource?)?
    private let url: URL
    private let ignoresCache: Bool
    private let makeItem: @Sendable (NetworkResponse) async throws -> LoadedResource<Resource>

    /// - Parameters:
    ///   - ignoresCache: whether it goes past the host's cache.
    ///   - makeItem: makes the resource, when the job has no slot any more.
    init(
        _ request: any BaseAPIRequest,
        _ options: RequestOptions,
        url: URL,
        ignoresCache: Bool,
        service: EasyNetworkService,
        decodePartial: (@Sendable (NetworkResponse) throws -> Resource?)?,
        makeItem: @escaping @Sendable (NetworkResponse) async throws -> LoadedResource<Resource>
    ) {
        self.url = url
        self.ignoresCache = ignoresCache
        self.decodePartial = decodePartial
        self.makeItem = makeItem
        // The loader has one load for each key.
        super.init(request, options.with { $0.repeatPolicy = .allow }, of: service)
    }

    package override func execute() {
        sendRequest(ignoresCache: ignoresCache, makeItem: makeItem)
    }

    /// Passes the bytes on, as often as progress is told.
    func receiveCounts(_ receive: @escaping @Sendable (TransferMeter.Count) -> Void) {
        let old = receivers.withLock { exchange(&$0.count, with: receive) }
        guard old == nil else { return }
        meter.whenPublished { [weak self] count in self?.receivers.withLock { $0.count }?(count) }
    }

    /// Passes on what can be decoded while the answer comes, at most ten times a second, as often as progress is told.
    func receivePartials(_ receive: @escaping @Sendable (Resource) -> Void) {
        guard decodePartial != nil else { return }
        let old = receivers.withLock { exchange(&$0.partial, with: receive) }
        if old == nil { meter.whenPublished { [weak self] _ in self?.passOn() } }
    }

    private func passOn() {
        guard let answer = answerSoFar, 200..<300 ~= answer.head.statusCode, !answer.body.isEmpty, !hasOutcome,
            receivers.withLock({ exchange(&$0.lastCount, with: answer.body.count) != answer.body.count })
        else { return }
        let response = NetworkResponse(
            statusCode: answer.head.statusCode,
            headers: answer.head.headers,
            body: answer.body,
            url: url
        )
        // Bytes that make no partial resource yet are no failure.
        let resource = try? WorkQueue.userCode { try decodePartial?(response) }
        if let resource { receivers.withLock { $0.partial }?(resource) }
    }
}
