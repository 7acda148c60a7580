import Foundation

extension EasyNetworkService {
    /// The events that a server sends (HTML Living Standard, section 9.2), over as many connections as it takes.
    ///
    /// ```swift
    /// for try await event in service.events(GetNews()) { show(event.data) }
    /// ```
    ///
    /// The first connection is made when the first event is asked for; each iterator has connections of its own. The
    /// request goes out with `Accept: text/event-stream` and `Cache-Control: no-store`, the answer has to be of that type.
    ///
    /// When the stream ends, breaks off, or cannot be had for a failure among the ``RetryPolicy/errorCodes`` of the
    /// request's policy, another connection is made, with `Last-Event-ID`, without end. Before that it waits as long as
    /// the server said last with `retry`, from 0.1 seconds to an hour, else `reconnectionTime`; twice as long each time
    /// after a connection that brought no byte, and after the 20th in a row that brought no event. An ID that no header
    /// field can hold is not sent.
    ///
    /// A request that must not be sent twice (``RetryPolicy/methods``: a POST without ``BaseAPIRequest/idempotencyKey``) is
    /// not: its events end where its connection ends.
    ///
    /// ``BaseAPIRequest/timeout`` and ``BaseAPIRequest/overallTimeout`` are for one connection; a server that may be silent
    /// for longer than ``TransportDeadlines/idle`` of the host sends comments, or is asked anew.
    ///
    /// Cancelling the task that iterates, cancelling this service, or dropping the iterator ends the connection.
    ///
    /// - Parameters:
    ///   - lastEventID: after which event to begin, kept from an earlier run. Default empty: from where the server likes.
    ///   - reconnectionTime: in seconds, as long as the server does not say. Default 3.
    ///   - maximumReconnectionTime: what doubling does not exceed, in seconds. Default 60.
    ///   - maximumEventByteCount: of type, ID and data of an event, and of a line. A longer one ends the sequence with
    ///     ``NetworkError/Code/bodyTooLong``. Default 1 MiB.
    public func events(
        _ request: some BaseAPIRequest,
        lastEventID: String = "",
        reconnectionTime: TimeInterval = 3,
        maximumReconnectionTime: TimeInterval = 60,
        maximumEventByteCount: Int = 1_048_576
    ) -> ServerSentEvents {
        let course = EventStreamCourse(
            lastEventID: lastEventID,
            reconnectionTime: reconnectionTime,
            maximumReconnectionTime: maximumReconnectionTime
        )
        return ServerSentEvents(
            service: self,
            request: request,
            course: course,
            maximumEventByteCount: maximumEventByteCount
        )
    }

    /// Waits by the host's clock. Cancelling the task, or this service, ends it.
    ///
    /// - Parameter delay: in seconds.
    func wait(_ delay: TimeInterval) async throws(NetworkError) {
        guard !Task.isCancelled else { throw NetworkError(code: .cancelled) }
        let service = EasyNetworkService(partOf: self)
        let clock = configuration.settings.clock
        let timer = Locked<(any ClockTimer)?>(nil)
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                service.share(
                    map: { _ in },
                    join: { end in
                        let set = clock.schedule(after: delay) { end(.success(NetworkResponse())) }
                        timer.withLock { $0 = set }
                    },
                    leave: { timer.withLock { $0.take() }?.cancel() },
                    completion: { continuation.resume(returning: $0) }
                )
            }
        } onCancel: {
            service.cancel()
        }
        try result.get()
    }
}
