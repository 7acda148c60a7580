import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension EasyNetworkService {
    /// Returns the events that a server sends (HTML Living Standard, section 9.2), over as many connections as
    /// necessary.
    ///
    /// ```swift
    /// for try await event in service.events(GetNews()) { show(event.data) }
    /// ```
    ///
    /// The first connection is made when the first event is requested. Each iterator has its own connections. The
    /// messages have `Accept: text/event-stream` and `Cache-Control: no-store`. A response of another type is an error.
    ///
    /// When the stream ends, breaks off, or fails with one of the ``RetryPolicy/errorCodes`` of the request's policy,
    /// another connection is made with `Last-Event-ID`, any number of times. The time before that is the last one that
    /// the server sent with `retry`, but at least 0.1 seconds and at most one hour. Until the server sends one, it is
    /// `reconnectionTime`. The time doubles after each connection that received no bytes. After 20 connections in a row
    /// without an event, it doubles after each connection. An ID that a header field cannot contain is not sent.
    ///
    /// A request that must not be sent twice (``RetryPolicy/methods``: a POST without
    /// ``RequestOptions/idempotencyKey``) is sent once, and its events end with its connection. Status 204 ends the
    /// events, too.
    ///
    /// ``RequestOptions/timeout`` and ``RequestOptions/overallTimeout`` apply to one connection. If a server sends
    /// nothing, not even a comment, for longer than ``TransportDeadlines/idle`` of the host, another connection is
    /// made.
    ///
    /// Cancelling the task that iterates, cancelling this service, or releasing the iterator ends the connection. The
    /// iteration throws errors that another connection cannot fix: ``NetworkError/Code/unauthorized`` for a 401,
    /// ``NetworkError/Code/unacceptableStatus`` for another status than 200, and
    /// ``NetworkError/Code/cannotParseResponse`` for another media type.
    ///
    /// - Parameters:
    ///   - request: The request of each connection.
    ///   - lastEventID: The ID of the event after which to begin, saved from an earlier run. Defaults to an empty
    ///     string: the server decides.
    ///   - reconnectionTime: The time before the next connection, in seconds, until the server sends another time.
    ///     Defaults to 3.
    ///   - maximumReconnectionTime: The limit of doubling, in seconds. Defaults to 60.
    ///   - maximumEventByteCount: The maximum length of the type, ID and data of an event together, and of a line, in
    ///     bytes. A longer one ends the sequence with ``NetworkError/Code/bodyTooLong``. Defaults to 1 MiB.
    public func events(
        _ request: some BaseAPIRequest,
        lastEventID: String = "",
        reconnectionTime: TimeInterval = 3,
        maximumReconnectionTime: TimeInterval = 60,
        maximumEventByteCount: Int = 1_048_576
    ) -> StreamedSequence<ServerSentEvent> {
        StreamedSequence {
            let events = ServerSentEvents(
                service: self,
                request: request,
                parser: ServerSentEventParser(maximumByteCount: maximumEventByteCount, lastEventID: lastEventID),
                reconnection: EventReconnection(time: reconnectionTime, maximumTime: maximumReconnectionTime)
            )
            return StreamedSequence.reading(events) { try await $0.next() }
        }
    }

    /// Waits by the host's clock. Cancelling the task or this service ends the wait.
    ///
    /// - Parameters:
    ///   - delay: The time to wait, in seconds.
    ///   - request: The request that is sent afterwards.
    fileprivate func wait(_ delay: TimeInterval, before request: any BaseAPIRequest) async throws(NetworkError) {
        let woken = Promise<Void>()
        // The pause is a call that is never sent, so that it is cancelled with the service.
        var pause = CallRequest(request)
        (pause.isTold, pause.isAnnounced) = (false, false)
        let call = Call(pause, in: group) { _, _, _ in woken.set() }
        if let refusal = group.enter(call).refusal {
            group.leave(call)
            throw refusal
        }
        let timer = configuration.settings.clock.schedule(after: delay) { woken.set() }
        await woken.wait()
        timer.cancel()
        group.leave(call)
        guard call.end(), !Task.isCancelled else { throw NetworkError(code: .cancelled) }
    }
}

/// The events of successive connections.
private struct ServerSentEvents {
    let service: EasyNetworkService
    let request: any BaseAPIRequest
    var parser: ServerSentEventParser
    var reconnection: EventReconnection
    /// The request as it was read for the last connection; nil before the first.
    var snapshot: RequestSnapshot?
    /// The body of the current connection; nil between connections.
    var chunks: StreamedResponse.AsyncIterator?

    /// Returns the next event. Nil if the server refuses further connections with status 204, or if the request must
    /// not be sent again.
    mutating func next() async throws -> ServerSentEvent? {
        while true {
            guard !Task.isCancelled else { throw NetworkError(code: .cancelled) }
            if let event = try parser.next() {
                reconnection.receivedEvent()
                return event
            }
            do {
                if chunks == nil { try await connect() }
                if let data = try await chunks?.next() {
                    reconnection.receivedBytes()
                    parser.append(data)
                    continue
                }
                chunks = nil
                guard mayBeSentAgain else { return nil }
            } catch let error as NetworkError where chunks == nil && error.statusCode == 204 {
                return nil
            } catch let error as NetworkError where snapshot?.retry.errorCodes.contains(error.code) == true {
                chunks = nil
                guard mayBeSentAgain else { throw error }
            }
            try await service.wait(reconnection.delay(retry: parser.retry), before: request)
        }
    }

    private var mayBeSentAgain: Bool {
        guard let snapshot else { return true }
        return snapshot.message.body.isReplayable && snapshot.retry.isRepeatable(snapshot.message)
    }

    /// Adds the fields of an event stream (HTML Living Standard, sections 9.2.2 and 9.2.4), after the filters and
    /// before the interceptors.
    private func addFields(to message: inout TransportRequest) {
        message.headers["Accept"] = "text/event-stream"
        message.headers["Cache-Control"] = "no-store"
        let id = parser.lastEventID
        if !id.isEmpty, HTTPSyntax.isFieldValue(id.utf8) { message.headers["Last-Event-ID"] = id }
    }

    /// Makes a connection.
    private mutating func connect() async throws(NetworkError) {
        let snapshot = try RequestSnapshot(request, request.options, for: service.configuration, change: addFields)
        self.snapshot = snapshot
        let answer = try await service.stream(CallRequest(snapshot))
        let beginning = NetworkResponse(statusCode: answer.statusCode, headers: answer.headers, url: answer.url)
        // HTML Living Standard, section 9.2.3, requires status 200 and this media type.
        guard answer.statusCode == 200 else {
            throw beginning.error(.unacceptableStatus, message: "the status of a stream of events must be 200")
        }
        guard MediaType(answer.headers)?.essence == "text/event-stream" else {
            let type = answer.headers["Content-Type"] ?? "none"
            throw beginning.error(
                .cannotParseResponse,
                message: "the media type must be text/event-stream, but is \(type.prefix(80))"
            )
        }
        parser.restart()
        chunks = answer.makeAsyncIterator()
    }
}

/// The rules for the time between the connections of a stream of events. A value.
struct EventReconnection {
    /// The times that a server can request, in seconds. A shorter time would be no pause, and a longer one would
    /// practically end the stream.
    static let retryTimes: ClosedRange<TimeInterval> = 0.1...3_600

    /// The number of connections in a row without an event after which bytes alone no longer reset the waiting time.
    static let eventlessLimit = 20

    /// The time before the next connection, in seconds, until the server sends another time.
    private let time: TimeInterval
    private let maximumTime: TimeInterval
    /// The number of connections in a row that count as failed.
    private var failureCount = 0
    /// The number of connections in a row without an event.
    private var eventlessCount = 0

    init(time: TimeInterval, maximumTime: TimeInterval) {
        self.time = time >= 0 ? time : 0
        self.maximumTime = maximumTime
    }

    mutating func receivedBytes() {
        if eventlessCount < Self.eventlessLimit { failureCount = 0 }
    }

    mutating func receivedEvent() {
        failureCount = 0
        eventlessCount = 0
    }

    /// Records that a connection has ended or failed.
    ///
    /// - Parameter retry: The time that the server requests, in seconds; nil if it has requested none.
    /// - Returns: The number of seconds to wait before the next connection.
    mutating func delay(retry: TimeInterval?) -> TimeInterval {
        let shortest = Self.retryTimes.lowerBound
        let base = retry.map { min(max($0, shortest), Self.retryTimes.upperBound) } ?? time
        defer {
            failureCount += 1
            eventlessCount += 1
        }
        guard failureCount > 0 else { return base }
        return max(base, Backoff(base: max(base, shortest), maximum: maximumTime).bound(after: failureCount))
    }
}
