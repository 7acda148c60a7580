import Foundation

extension EasyNetworkService {
    /// Sends a request and returns as soon as an accepted response has begun. Its body is read as it arrives.
    ///
    /// ```swift
    /// let answer = try await service.stream(GetExport())
    /// for try await line in answer.lines() { print(line) }
    /// ```
    ///
    /// Redirects, authentication and retries work as with ``send(_:ignoringCache:)``. If a response breaks off later,
    /// the iteration throws an error, and the request is not sent again. The cache is not used. Neither the shape of
    /// JSON nor an empty body is checked, but ``ResponseValidation/maximumBodyCount`` is. ``RequestOptions/timeout``
    /// limits the complete body. The host's ``TransportDeadlines/idle`` does not count while the sender is paused.
    ///
    /// Cancelling the task cancels the request. Cancelling this service does too, even while you iterate over the body.
    ///
    /// - Throws: The errors of ``send(_:ignoringCache:)``.
    public func stream(_ request: some BaseAPIRequest) async throws(NetworkError) -> StreamedResponse {
        try await stream(CallRequest(request))
    }

    func stream(_ request: CallRequest) async throws(NetworkError) -> StreamedResponse {
        guard !Task.isCancelled else { throw NetworkError(code: .cancelled) }
        // The group has only the call for this request, so cancelling it cancels nothing else.
        let group = CallGroup(partOf: group)
        let job = group.job
        // The first accepted response; nil if the call has ended without one.
        let beginning = Promise<(head: TransportHead, url: URL, body: BodyStream)?>()
        var request = request
        request.consumer = { message in
            let url = message.url
            let read: BodyReading = { head, isAccepted, body in
                guard isAccepted else { return .collect }
                guard beginning.value == nil else {
                    let reason = "the beginning of an earlier response has already been delivered"
                    let error = NetworkError(code: .cannotSendAgain, message: reason)
                    return .failed(error, hasProgressed: false, mayBeginAgain: false)
                }
                // An iteration that stops early is not a failure.
                job?.group.noteEnd(of: nil)
                beginning.set((head, url, body))
                await body.waitForEnd()
                guard let error = body.failure else { return .used }
                return .failed(error, hasProgressed: false, mayBeginAgain: false)
            }
            return (message, read)
        }
        let call = WorkQueue.task { [request] in
            defer { beginning.set(nil) }
            return await group.result(of: request) { $0 }
        }
        let answer = await withTaskCancellationHandler {
            await beginning.wait()
        } onCancel: {
            group.cancel()
        }
        if let (head, url, body) = answer ?? nil {
            let source = StreamedResponse.Source(body, call, group)
            return StreamedResponse(statusCode: head.statusCode, headers: head.headers, url: url, source: source)
        }
        // The network has sent no response, or the call was cancelled.
        let response = try await call.value.get()
        let (statusCode, headers, url) = (response.statusCode, response.headers, response.url)
        let source = StreamedResponse.Source(nil, rest: response.body, call, group)
        return StreamedResponse(statusCode: statusCode, headers: headers, url: url, source: source)
    }
}
