import Foundation

extension EasyNetworkService {
    /// Sends a request and returns as soon as an accepted answer has begun; its body is iterated over as it comes.
    ///
    /// ```swift
    /// let answer = try await service.stream(GetExport())
    /// for try await line in answer.lines() { print(line) }
    /// ```
    ///
    /// Until then all is as with ``send(_:ignoringCache:)``: redirects, authentication, retries. What breaks off afterwards is an error
    /// of the iteration, and nothing is sent again. The cache takes no part; nobody looks at the JSON or at whether the body is
    /// empty; ``ResponseValidation/maximumBodyCount`` counts. ``BaseAPIRequest/timeout`` is for all of the body; the host's
    /// ``TransportDeadlines/idle`` does not count while the server is held back.
    ///
    /// Cancelling the task, or this service, cancels the request, the latter also while the body is iterated over.
    ///
    /// - Throws: what ``send(_:ignoringCache:)`` throws.
    public func stream(_ request: some BaseAPIRequest) async throws(NetworkError) -> StreamedResponse {
        guard !Task.isCancelled else { throw NetworkError(code: .cancelled) }
        // Of its own, so that all that is begun for this request is cancelled with it.
        let service = EasyNetworkService(partOf: self)
        let caller = caller
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { opening in
                let channel = StreamChannel(service, opening: opening)
                service.start(
                    request,
                    sink: StreamSink(channel: channel),
                    map: { $0 },
                    completion: { channel.finish($0) }
                )
            }
        } onCancel: {
            service.cancel()
        }
        caller?.service.noteEnd(of: result.failure)
        return try result.get()
    }
}
