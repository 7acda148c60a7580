import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension EasyNetworkService {
    /// The events that a server sends (HTML Living Standard, section 9.2), over as many connections as necessary.
    ///
    /// ```swift
    /// for try await event in service.events(GetNews()) { show(event.data) }
    /// ```
    ///
    /// The first connection is made when the first event is asked for; each iterator has its own connections. The request has
    /// `Accept: text/event-stream` and `Cache-Control: no-store`; an answer of another type is an error.
    ///
    /// When the stream ends, breaks off, or fails with one of the ``RetryPolicy/errorCodes`` of the request's policy, another
    /// connection is made with `Last-Event-ID`, without end. The time before that is what the server said last with `retry`,
    /// from 0.1 seconds to an hour, else `reconnectionTime`. It doubles after each connection that brought no byte, and,
    /// after 20 connections in a row without an event, after each. An ID that no header field can hold is not sent.
    ///
    /// A request that must not be sent twice (``RetryPolicy/methods``: a POST without ``BaseAPIRequest/idempotencyKey``) is
    /// sent once: its events end with its connection.
    ///
    /// ``BaseAPIRequest/timeout`` and ``BaseAPIRequest/overallTimeout`` are for one connection. A server that is silent
    /// for longer than ``TransportDeadlines/idle`` of the host, without even a comment, is connected again.
    ///
    /// Cancelling the task that iterates, cancelling this service, or releasing the iterator ends the connection.
    ///
    /// - Parameters:
    ///   - lastEventID: the event after which to begin, kept from an earlier run. Default empty: the server decides.
    ///   - reconnectionTime: in seconds, as long as the server does not say. Default 3.
    ///   - maximumReconnectionTime: the limit of doubling, in seconds. Default 60.
    ///   - maximumEventByteCount: of type, ID and data of an event, and of a line. A longer one ends the sequence with
    ///     ``NetworkError/Code/bodyTooLong``. Default 1 MiB.
    public func events(
        _ request: some BaseAPIRequest,
        lastEventID: String = "",
        reconnectionTime: TimeInterval = 3,
        maximumReconnectionTime: TimeInterval = 60,
        maximumEventByteCount: Int = 1_048_576
    ) -> ServerSentEvents {
        let reconnection = EventReconnection(
            lastEventID: lastEventID,
            reconnectionTime: reconnectionTime,
            maximumReconnectionTime: maximumReconnectionTime
        )
        return ServerSentEvents(
            service: self,
            request: request,
            reconnection: reconnection,
            maximumEventByteCount: maximumEventByteCount
        )
    }

    /// Waits by the host's clock. Cancelling the task or this service ends it.
    ///
    /// - Parameter delay: in seconds.
    fileprivate func wait(_ delay: TimeInterval) async throws(NetworkError) {
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

/// Events of a server; see ``EasyNetworkService/events(_:lastEventID:reconnectionTime:maximumReconnectionTime:maximumEventByteCount:)``.
public struct ServerSentEvents: AsyncSequence, Sendable {
    public typealias Element = ServerSentEvent

    let service: EasyNetworkService
    let request: any BaseAPIRequest
    let reconnection: EventReconnection
    let maximumEventByteCount: Int

    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(self)
    }

    /// Iterates over the events of one connection after the other.
    public struct AsyncIterator: AsyncIteratorProtocol {
        /// A connection whose answer has begun.
        private struct Connection {
            var chunks: StreamedResponse.AsyncIterator
            var parser: ServerSentEventParser
        }

        private let service: EasyNetworkService
        private let request: any BaseAPIRequest
        private let maximumEventByteCount: Int
        private var reconnection: EventReconnection
        private var connection: Connection?
        private var isOver = false

        init(_ events: ServerSentEvents) {
            service = events.service
            request = events.request
            reconnection = events.reconnection
            maximumEventByteCount = events.maximumEventByteCount
        }

        /// - Returns: the next event; nil when the server wants no more connections, which it says with status 204, or when
        ///   the request must not be sent again; and after an error.
        /// - Throws: a ``NetworkError`` that another connection cannot mend: a status that is not accepted,
        ///   ``NetworkError/Code/cannotParseResponse`` for another media type, ``NetworkError/Code/bodyTooLong`` for an event;
        ///   ``NetworkError/Code/cancelled``.
        public mutating func next() async throws -> ServerSentEvent? {
            guard !isOver else { return nil }
            do {
                if let event = try await nextEvent() { return event }
                end()
                return nil
            } catch {
                end()
                throw error
            }
        }

        private mutating func nextEvent() async throws -> ServerSentEvent? {
            while true {
                guard !Task.isCancelled else { throw NetworkError(code: .cancelled) }
                if let event = try read() { return event }
                do {
                    if connection == nil, try await !connect() { return nil }
                    if let data = try await connection?.chunks.next() {
                        reconnection.receivedBytes()
                        connection?.parser.append(data)
                        continue
                    }
                    connection = nil
                    guard try mayBeSentAgain() else { return nil }
                } catch let error as NetworkError where policy.errorCodes.contains(error.code) {
                    connection = nil
                    guard try mayBeSentAgain() else { throw error }
                }
                try await service.wait(reconnection.delay())
            }
        }

        private mutating func read() throws -> ServerSentEvent? {
            let event = try connection?.parser.next()
            if event != nil { reconnection.receivedEvent() }
            if let parser = connection?.parser {
                reconnection.adopt(lastEventID: parser.lastEventID, retry: parser.retry)
            }
            return event
        }

        private mutating func end() {
            isOver = true
            connection = nil
        }

        // MARK: - Connections

        private var policy: RetryPolicy { request.retry ?? service.configuration.settings.retry }

        private var nextRequest: EventStreamRequest {
            EventStreamRequest(wrapped: request, lastEventID: reconnection.lastEventID)
        }

        private func mayBeSentAgain() throws(NetworkError) -> Bool {
            let message = try RequestBuilder.build(nextRequest, for: service.configuration)
            return message.body.isReplayable && policy.isRepeatable(message)
        }

        /// - Returns: false when the server wants no more connections.
        private mutating func connect() async throws(NetworkError) -> Bool {
            let answer: StreamedResponse
            do throws(NetworkError) {
                answer = try await service.stream(nextRequest)
            } catch {
                if error.statusCode == 204 { return false }
                throw error
            }
            guard answer.statusCode != 204 else { return false }
            guard MediaType(answer.headers["Content-Type"] ?? "")?.essence == "text/event-stream" else {
                let type = answer.headers["Content-Type"] ?? "none"
                let beginning = NetworkResponse(statusCode: answer.statusCode, headers: answer.headers, url: answer.url)
                throw beginning.error(
                    .cannotParseResponse,
                    message: "the media type is \(type.prefix(80)), not text/event-stream"
                )
            }
            connection = Connection(
                chunks: answer.makeAsyncIterator(),
                parser: ServerSentEventParser(
                    maximumByteCount: maximumEventByteCount,
                    lastEventID: reconnection.lastEventID
                )
            )
            return true
        }
    }
}

/// A request for events after the last one that came.
private struct EventStreamRequest: RequestWrapper {
    let wrapped: any BaseAPIRequest
    /// Empty when no event came.
    let lastEventID: String

    var headers: [String: String]? {
        var headers = wrapped.headers ?? [:]
        for (name, value) in added {
            headers = headers.filter { !$0.key.isEqualIgnoringASCIICase(to: name) }
            headers[name] = value
        }
        return headers
    }

    var customURLRequest: URLRequest? {
        guard var custom = wrapped.customURLRequest else { return nil }
        for (name, value) in added { custom.setValue(value, forHTTPHeaderField: name) }
        return custom
    }

    /// HTML Living Standard, sections 9.2.2 and 9.2.4.
    private var added: [String: String] {
        var added = ["Accept": "text/event-stream", "Cache-Control": "no-store"]
        if !lastEventID.isEmpty, HTTPSyntax.isFieldValue(lastEventID.utf8) { added["Last-Event-ID"] = lastEventID }
        return added
    }
}

/// Decides when a stream of events is connected again, and after which event: a value.
struct EventReconnection {
    /// The shortest time that a server may ask for, in seconds; avoids connecting again without a pause.
    static let shortestRetry: TimeInterval = 0.1

    /// The longest time that a server may ask for, in seconds; a larger value would end the stream in practice.
    static let longestRetry: TimeInterval = 3_600

    /// After so many connections in a row without an event, bytes alone do not reset the waiting time.
    static let eventlessLimit = 20

    /// The time in seconds, as long as the server does not say.
    private let reconnectionTime: TimeInterval
    private let maximumReconnectionTime: TimeInterval
    /// The number of connections in a row that count as failed.
    private var failureCount = 0
    /// The number of connections in a row without an event.
    private var eventlessCount = 0

    /// The next connection asks for the events after this one.
    private(set) var lastEventID: String
    private var retry: TimeInterval?

    init(lastEventID: String, reconnectionTime: TimeInterval, maximumReconnectionTime: TimeInterval) {
        self.lastEventID = lastEventID
        self.reconnectionTime = reconnectionTime >= 0 ? reconnectionTime : 0
        self.maximumReconnectionTime = maximumReconnectionTime
    }

    mutating func receivedBytes() {
        if eventlessCount < Self.eventlessLimit { failureCount = 0 }
    }

    mutating func receivedEvent() {
        failureCount = 0
        eventlessCount = 0
    }

    /// Takes over the state of the parser.
    mutating func adopt(lastEventID: String, retry: TimeInterval?) {
        self.lastEventID = lastEventID
        if let retry { self.retry = min(max(retry, Self.shortestRetry), Self.longestRetry) }
    }

    /// Records that a connection has ended or failed.
    ///
    /// - Returns: the seconds to wait before the next.
    mutating func delay() -> TimeInterval {
        let base = retry ?? reconnectionTime
        defer {
            failureCount += 1
            eventlessCount += 1
        }
        guard failureCount > 0 else { return base }
        let doubled = max(base, Self.shortestRetry) * pow(2, Double(min(failureCount, 64)))
        return max(base, min(doubled, maximumReconnectionTime))
    }
}
