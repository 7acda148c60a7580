import Foundation

/// A response whose body is read as it arrives.
///
/// ```swift
/// let answer = try await service.stream(GetExport())
/// for try await data in answer { try handle.write(contentsOf: data) }
/// ```
///
/// The head has arrived. The body arrives as fast as you read it. While more than 256 KiB are unread, the sender is
/// paused, if ``TransportExchange/pause()`` of the transport supports it.
///
/// The body can be iterated over once, in chunks of at least one byte or in ``lines(maximumByteCount:)``. A second
/// iteration throws ``NetworkError/Code/invalidRequest``. If the exchange breaks off, the iteration throws its error
/// after all bytes that arrived before it. The exchange is cancelled when this value and its iterators are released.
/// Cancelling the task that iterates cancels the exchange at once, and unread bytes are dropped.
public struct StreamedResponse: AsyncSequence, Sendable {
    public typealias Element = Data

    /// The status code, which is accepted.
    public let statusCode: Int

    /// The header fields, in order and with repeats if the transport keeps them.
    public let headers: HTTPHeaders

    /// The URL that sent the response, after redirects; nil if it is unknown.
    public let url: URL?

    let source: Source

    public func makeAsyncIterator() -> StreamedSequence<Data> {
        StreamedSequence { [source] in source.claim { try await source.next() } }.makeAsyncIterator()
    }

    /// Returns the lines of the body, for example of newline-delimited JSON, a log or CSV.
    ///
    /// ```swift
    /// for try await line in answer.lines() { rows.append(try decoder.decode(Row.self, from: Data(line.utf8))) }
    /// ```
    ///
    /// A line ends with LF or CRLF, which is not part of the line. Empty lines are returned. The text after the last
    /// line end is a line, too, unless it is empty. A line that an error cuts off is not returned. Bytes that are not
    /// UTF-8 become U+FFFD.
    ///
    /// - Parameter maximumByteCount: The maximum length of a line without its end, in bytes. A longer line ends the
    ///   sequence with ``NetworkError/Code/bodyTooLong``, and cancels the exchange. Defaults to 1 MiB.
    public func lines(maximumByteCount: Int = 1_048_576) -> StreamedSequence<String> {
        StreamedSequence { [source] in
            let splitter = LineSplitter(maximumByteCount: maximumByteCount)
            return source.claim(
                StreamedSequence.reading(splitter) { splitter in
                    do {
                        while true {
                            guard !Task.isCancelled else { throw NetworkError(code: .cancelled) }
                            if let line = try splitter.next() { return line }
                            guard let data = try await source.next() else { return try splitter.last() }
                            splitter.append(data)
                        }
                    } catch {
                        source.cancel()
                        throw error
                    }
                }
            )
        }
    }

    /// The body, and the call that receives it. Releasing the source cancels the call.
    final class Source: Sendable {
        typealias Call = Task<Result<NetworkResponse, NetworkError>, Never>

        let body: BodyStream?
        /// The body of a response that did not come from the network.
        private let rest: Locked<Data?>
        private let isClaimed = Locked(false)
        private let call: Call
        private let group: CallGroup

        /// Creates a source.
        ///
        /// - Parameter group: The group of the call, which has no other calls.
        init(_ body: BodyStream?, rest: Data? = nil, _ call: Call, _ group: CallGroup) {
            self.body = body
            self.rest = Locked(rest?.isEmpty == true ? nil : rest)
            self.call = call
            self.group = group
        }

        deinit {
            cancel()
        }

        func cancel() {
            body?.cancel(keepingUnread: false)
            group.cancel()
        }

        /// Returns `read` the first time, and later a function that throws.
        func claim<Element>(_ read: @escaping StreamedSequence<Element>.Read) -> StreamedSequence<Element>.Read {
            guard isClaimed.exchange(true) else { return read }
            let message = "a streamed body can be iterated over only once; send the request again, or keep the data"
            return { throw NetworkError.invalidRequest(message) }
        }

        /// Returns the next bytes, at least one; nil at the end.
        func next() async throws(NetworkError) -> Data? {
            if let rest = rest.exchange(nil) { return rest }
            do throws(NetworkError) {
                if let data = try await body?.next() { return data }
            } catch {
                if Task.isCancelled {
                    group.cancel()
                    throw error
                }
                // The call's result has the same error, with the messages that were sent.
            }
            let result = await withTaskCancellationHandler {
                await call.value
            } onCancel: {
                group.cancel()
            }
            _ = try result.get()
            return nil
        }
    }
}

/// A sequence of elements that arrive over the network as they are requested: the lines of a body, or the events of a
/// server.
///
/// ```swift
/// for try await line in answer.lines() { print(line) }
/// ```
///
/// A slow reader gets every element, because the sender is paused meanwhile: see ``StreamedResponse``.
///
/// All errors are ``NetworkError``s. If the task was cancelled, the error is ``NetworkError/Code/cancelled``. After an
/// error and after the end, the iteration returns nil. Releasing the iterator cancels the request that it reads from.
public struct StreamedSequence<Element: Sendable>: AsyncSequence, AsyncIteratorProtocol, Sendable {
    /// Reads the next element.
    typealias Read = @Sendable () async throws -> Element?

    private let begin: @Sendable () -> Read
    private var isBegun = false
    /// Nil before the beginning of the iteration and after its end.
    private var read: Read?

    /// Creates a sequence.
    ///
    /// - Parameter begin: Called for each iteration.
    init(_ begin: @escaping @Sendable () -> Read) {
        self.begin = begin
    }

    /// Returns a function that reads elements from a state. Two tasks with copies of one iterator cannot change the
    /// state at the same time.
    static func reading<State: Sendable>(
        _ state: State,
        _ next: @escaping @Sendable (inout State) async throws -> Element?
    ) -> Read {
        let held = Locked<State?>(state)
        return {
            guard var state = held.exchange(nil) else {
                throw NetworkError.invalidRequest("two tasks use copies of one iterator concurrently")
            }
            defer { held.exchange(state) }
            return try await next(&state)
        }
    }

    public func makeAsyncIterator() -> StreamedSequence {
        var iterator = StreamedSequence(begin)
        (iterator.isBegun, iterator.read) = (true, begin())
        return iterator
    }

    /// Returns the next element; nil at the end.
    public mutating func next() async throws -> Element? {
        if !isBegun { self = makeAsyncIterator() }
        guard let read = read.take(), let element = try await read() else { return nil }
        self.read = read
        return element
    }
}

extension StreamedResponse: CustomStringConvertible, CustomReflectable {
    /// The status and the URL, without user, password, query and fragment.
    public var description: String {
        "StreamedResponse \(statusCode) from \(url?.withoutSecrets ?? "an unknown address")"
    }

    /// A mirror without children, so that a dump has no secrets.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
