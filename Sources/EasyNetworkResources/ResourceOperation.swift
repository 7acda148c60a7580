import EasyNetwork
import Foundation

/// A GET request for a resource that uses the cache by the rules of HTTP.
struct GetResource: BaseAPIRequest {
    let url: URL

    var api: String { url.absoluteString }
    var options: RequestOptions { RequestOptions(cache: .http) }
}

/// A resource that a load has made from its response.
package struct LoadedResource<Resource: Sendable>: Sendable {
    /// The resource; `nil` if only the response in the cache was needed.
    let resource: Resource?
    /// The resource's cost in memory.
    let cost: Int
    /// Whether the resource may be kept in memory.
    let isStorable: Bool
}

/// The job of a ``ResourceLoader``'s load, which can report its bytes and partial resources as the response arrives.
package final class ResourceOperation<Resource: Sendable>: ItemOperation<LoadedResource<Resource>>, @unchecked Sendable
{
    // Sendable because all mutable state is in `receivers`, which has a lock.
    private struct Receivers {
        /// Receives partial resources; `nil` while no receipt needs them.
        var partial: (@Sendable (Resource) -> Void)?
        /// Receives the byte counts; `nil` while no receipt needs them.
        var count: (@Sendable (TransferMeter.Count) -> Void)?
        var lastCount = 0
    }

    private let receivers = Locked(Receivers())
    private let decodePartial: (@Sendable (NetworkResponse) throws -> Resource?)?
    private let url: URL
    private let ignoresCache: Bool
    private let makeItem: @Sendable (NetworkResponse) async throws -> LoadedResource<Resource>

    /// - Parameters:
    ///   - ignoresCache: whether to skip the host's cache.
    ///   - makeItem: makes the resource, after the job has freed its slot.
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

    /// Reports the byte counts whenever progress is published.
    func receiveCounts(_ receive: @escaping @Sendable (TransferMeter.Count) -> Void) {
        let old = receivers.withLock { exchange(&$0.count, with: receive) }
        guard old == nil else { return }
        meter.whenPublished { [weak self] count in self?.receivers.withLock { $0.count }?(count) }
    }

    /// Reports what can be decoded while the response arrives, whenever progress is published: at most ten times a
    /// second.
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
        // An error only means that the bytes make no partial resource yet.
        let resource = try? WorkQueue.userCode { try decodePartial?(response) }
        if let resource { receivers.withLock { $0.partial }?(resource) }
    }
}
