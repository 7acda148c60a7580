import Foundation

extension EasyNetworkService {
    /// Sends a request and returns as soon as an accepted answer has begun; its body is read as it arrives.
    ///
    /// ```swift
    /// let answer = try await service.stream(GetExport())
    /// for try await line in answer.lines() { print(line) }
    /// ```
    ///
    /// Redirects, authentication and retries are those of ``send(_:ignoringCache:)``. An answer that breaks off later
    /// is an error of the iteration, and the request is not sent again. The cache is not used; neither the shape of
    /// JSON nor an empty body is checked; ``ResponseValidation/maximumBodyCount`` is. ``RequestOptions/timeout`` is for
    /// the whole body; the host's ``TransportDeadlines/idle`` does not count while the sender is paused.
    ///
    /// Cancelling the task or this service cancels the request, this service also while the body is iterated over.
    ///
    /// - Throws: what ``send(_:ignoringCache:)`` throws.
    public func stream(_ request: some BaseAPIRequest) async throws(NetworkError) -> StreamedResponse {
        try await stream(CallRequest(request))
    }

    func stream(_ request: CallRequest) async throws(NetworkError) -> StreamedResponse {
        guard !Task.isCancelled else { throw NetworkError(code: .cancelled) }
        // Cancelling it cancels the call for this request only.
        let group = CallGroup(partOf: group)
        let caller = group.caller
        // Holds at most one response, see `hasBegun`.
        let (answers, began) = AsyncStream<(head: TransportHead, url: URL, body: BodyStream)>.makeStream()
        let hasBegun = Locked(false)
        var request = request
        request.consumer = { message in
            let url = message.url
            let read: BodyReading = { head, isAccepted, body in
                guard isAccepted else { return .collect }
                guard !hasBegun.exchange(true) else {
                    let reason = "the beginning of an earlier response has already been delivered"
                    let error = NetworkError(code: .cannotSendAgain, message: reason)
                    return .failed(error, hasProgressed: false, mayBeginAgain: false)
                }
                // An iteration that stops early is no failure.
                caller?.callGroup.noteEnd(of: nil)
                began.yield((head, url, body))
                await body.waitForEnd()
                guard let error = body.failure else { return .used }
                return .failed(error, hasProgressed: false, mayBeginAgain: false)
            }
            return (message, read)
        }
        let call = WorkQueue.task { [request] in
            defer { began.finish() }
            return await group.result(of: request) { $0 }
        }
        let answer = await withTaskCancellationHandler {
            await answers.first { _ in true }
        } onCancel: {
            group.cancel()
        }
        if let (head, url, body) = answer {
            return StreamedResponse(
                statusCode: head.statusCode,
                headers: head.headers,
                url: url,
                source: StreamedResponse.Source(body, call, group)
            )
        }
        // Without an answer from the network, or cancelled.
        let response = try await call.value.get()
        return StreamedResponse(
            statusCode: response.statusCode,
            headers: response.headers,
            url: response.url,
            source: StreamedResponse.Source(nil, rest: response.body, call, group)
        )
    }
}
