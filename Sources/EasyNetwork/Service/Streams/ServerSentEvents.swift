import Foundation

/// Events of a server; see ``EasyNetworkService/events(_:lastEventID:reconnectionTime:maximumReconnectionTime:maximumEventByteCount:)``.
public struct ServerSentEvents: AsyncSequence, Sendable {
    public typealias Element = ServerSentEvent

    let service: EasyNetworkService
    let request: any BaseAPIRequest
    let course: EventStreamCourse
    let maximumEventByteCount: Int

    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(self)
    }

    /// Goes from event to event, and from connection to connection.
    public struct AsyncIterator: AsyncIteratorProtocol {
        /// A connection whose answer has begun.
        private struct Connection {
            var chunks: StreamedResponse.AsyncIterator
            var parser: ServerSentEventParser
        }

        private let service: EasyNetworkService
        private let request: any BaseAPIRequest
        private let maximumEventByteCount: Int
        private var course: EventStreamCourse
        private var connection: Connection?
        private var isOver = false

        init(_ events: ServerSentEvents) {
            service = events.service
            request = events.request
            course = events.course
            maximumEventByteCount = events.maximumEventByteCount
        }

        /// - Returns: the next event. nil when the server wants no more connections, which it says with status 204, or
        ///   when the request may not be sent again; and after an error.
        /// - Throws: a ``NetworkError`` that another connection cannot mend: a status that is not accepted,
        ///   ``NetworkError/Code/cannotParseResponse`` when the answer is no stream of events,
        ///   ``NetworkError/Code/bodyTooLong`` for an event; ``NetworkError/Code/cancelled``.
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
                        course.receivedBytes()
                        connection?.parser.append(data)
                        continue
                    }
                    connection = nil
                    guard try mayBeSentAgain() else { return nil }
                } catch let error as NetworkError where policy.errorCodes.contains(error.code) {
                    connection = nil
                    guard try mayBeSentAgain() else { throw error }
                }
                try await service.wait(course.delay())
            }
        }

        private mutating func read() throws -> ServerSentEvent? {
            let event = try connection?.parser.next()
            if event != nil { course.receivedEvent() }
            if let parser = connection?.parser { course.adopt(lastEventID: parser.lastEventID, retry: parser.retry) }
            return event
        }

        // MARK: - Connections

        private var policy: RetryPolicy { request.retry ?? service.configuration.settings.retry }

        private var nextRequest: EventStreamRequest {
            EventStreamRequest(wrapped: request, lastEventID: course.lastEventID)
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
                    message: "the media type is \(type.prefix(80)), and not text/event-stream"
                )
            }
            connection = Connection(
                chunks: answer.makeAsyncIterator(),
                parser: ServerSentEventParser(
                    maximumByteCount: maximumEventByteCount,
                    lastEventID: course.lastEventID
                )
            )
            return true
        }

        private mutating func end() {
            isOver = true
            connection = nil
        }
    }
}
