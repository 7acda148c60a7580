import Foundation

/// An answer whose body is read as it arrives.
///
/// ```swift
/// let answer = try await service.stream(GetExport())
/// for try await data in answer { try file.write(contentsOf: data) }
/// ```
///
/// The head has arrived; the body comes as fast as it is read. While more than 256 KiB are unread, the sender is
/// paused, if ``TransportExchange/pause()`` of the transport can do that.
///
/// The body can be iterated over once, in chunks or in ``lines(maximumByteCount:)``; a second iteration throws
/// ``NetworkError/Code/invalidRequest``. The exchange is cancelled when this value and its iterators are gone. Cancelling
/// the task that iterates cancels it at once, and unread bytes are dropped.
public struct StreamedResponse: AsyncSequence, Sendable {
    public typealias Element = Data

    /// The status code, which is accepted.
    public let statusCode: Int

    /// The header fields, in order and with repeats if the transport keeps them.
    public let headers: HTTPHeaders

    /// The URL that answered, after redirects; nil when it is not known.
    public let url: URL?

    let source: Source

    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(source)
    }

    /// Iterates over the body, chunk by chunk as they come.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private let source: Source
        private let isFirst: Bool
        private var isOver = false

        fileprivate init(_ source: Source) {
            self.source = source
            isFirst = !source.isClaimed.exchange(true)
        }

        /// - Returns: the next bytes, at least one; nil at the end, and after an error.
        /// - Throws: a ``NetworkError``, after all bytes that came before it: why the exchange broke off;
        ///   ``NetworkError/Code/cancelled`` when the task was cancelled; ``NetworkError/Code/invalidRequest`` for a second
        ///   iteration.
        public mutating func next() async throws -> Data? {
            guard !isOver else { return nil }
            // Unless a chunk comes.
            isOver = true
            guard isFirst else {
                throw NetworkError(
                    code: .invalidRequest,
                    message: "a streamed body can be iterated over once: send the request again, or keep what came"
                )
            }
            let data = try await source.next()
            isOver = data == nil
            return data
        }

        /// Drops the rest, and cancels the exchange.
        mutating func cancel() {
            isOver = true
            if isFirst { source.cancel() }
        }
    }

    /// The body, and the call that brings it. Its release cancels the call.
    final class Source: Sendable {
        typealias Call = Task<Result<NetworkResponse, NetworkError>, Never>

        let body: BodyStream?
        /// The body of an answer that did not come from the network.
        private let rest: Locked<Data?>
        let isClaimed = Locked(false)
        private let call: Call
        private let service: EasyNetworkService

        /// - Parameter service: has one call under way, this one.
        init(_ body: BodyStream?, rest: Data? = nil, _ call: Call, _ service: EasyNetworkService) {
            self.body = body
            self.rest = Locked(rest?.isEmpty == true ? nil : rest)
            self.call = call
            self.service = service
        }

        deinit {
            cancel()
        }

        func cancel() {
            body?.cancel(keepingUnread: false)
            service.cancel()
        }

        func next() async throws(NetworkError) -> Data? {
            if let rest = rest.exchange(nil) { return rest }
            do throws(NetworkError) {
                if let data = try await body?.next() { return data }
            } catch {
                if Task.isCancelled {
                    service.cancel()
                    throw error
                }
                // The error of the call is the same, with the messages that were sent.
            }
            let result = await withTaskCancellationHandler {
                await call.value
            } onCancel: {
                service.cancel()
            }
            _ = try result.get()
            return nil
        }
    }

    // MARK: - Lines

    /// The body as lines: of newline-delimited JSON, of a log, of CSV.
    ///
    /// ```swift
    /// for try await line in answer.lines() { rows.append(try decoder.decode(Row.self, from: Data(line.utf8))) }
    /// ```
    ///
    /// A line ends with LF or CRLF, which is not part of it; empty lines count. The text after the last end is a line too,
    /// unless it is empty. Bytes that are not UTF-8 become U+FFFD.
    ///
    /// - Parameter maximumByteCount: of a line, without its end. A longer one ends the sequence with
    ///   ``NetworkError/Code/bodyTooLong``, and cancels the exchange. Default 1 MiB.
    public func lines(maximumByteCount: Int = 1_048_576) -> Lines {
        Lines(response: self, maximumByteCount: maximumByteCount)
    }

    /// The lines of a body; see ``lines(maximumByteCount:)``.
    public struct Lines: AsyncSequence, Sendable {
        public typealias Element = String

        let response: StreamedResponse
        let maximumByteCount: Int

        public func makeAsyncIterator() -> AsyncIterator {
            AsyncIterator(
                chunks: response.makeAsyncIterator(),
                splitter: LineSplitter(maximumByteCount: maximumByteCount)
            )
        }

        /// Iterates over the lines.
        public struct AsyncIterator: AsyncIteratorProtocol {
            private var chunks: StreamedResponse.AsyncIterator
            private var splitter: LineSplitter
            private var isOver = false

            init(chunks: StreamedResponse.AsyncIterator, splitter: LineSplitter) {
                self.chunks = chunks
                self.splitter = splitter
            }

            /// - Returns: the next line; nil at the end, and after an error.
            /// - Throws: what ``StreamedResponse/AsyncIterator/next()`` throws, and ``NetworkError/Code/bodyTooLong``. A line
            ///   that was cut by an error is not returned.
            public mutating func next() async throws -> String? {
                while !isOver {
                    do {
                        guard !Task.isCancelled else { throw NetworkError(code: .cancelled) }
                        if let line = try splitter.next() { return line }
                        guard let data = try await chunks.next() else {
                            isOver = true
                            return try splitter.last()
                        }
                        splitter.append(data)
                    } catch {
                        isOver = true
                        chunks.cancel()
                        throw error
                    }
                }
                return nil
            }
        }
    }
}
