import Foundation

/// An answer whose body is read as it arrives.
///
/// ```swift
/// let answer = try await service.stream(GetExport())
/// for try await data in answer { try handle.write(contentsOf: data) }
/// ```
///
/// The head has arrived; the body comes as fast as it is read. While more than 256 KiB are unread, the sender is
/// paused, if ``TransportExchange/pause()`` of the transport can do that.
///
/// The body can be iterated over once, in chunks of at least one byte or in ``lines(maximumByteCount:)``. A second
/// iteration throws ``NetworkError/Code/invalidRequest``. An exchange that breaks off throws its error after all bytes
/// that came before it. The exchange is cancelled when this value and its iterators are gone. Cancelling the task that
/// iterates cancels it at once, and unread bytes are dropped.
public struct StreamedResponse: AsyncSequence, Sendable {
    public typealias Element = Data

    /// The status code, which is accepted.
    public let statusCode: Int

    /// The header fields, in order and with repeats if the transport keeps them.
    public let headers: HTTPHeaders

    /// The URL that answered, after redirects; nil when it is not known.
    public let url: URL?

    let source: Source

    public func makeAsyncIterator() -> StreamedSequence<Data> {
        StreamedSequence { [source] in source.claim { try await source.next() } }.makeAsyncIterator()
    }

    /// The body as lines: of newline-delimited JSON, of a log, of CSV.
    ///
    /// ```swift
    /// for try await line in answer.lines() { rows.append(try decoder.decode(Row.self, from: Data(line.utf8))) }
    /// ```
    ///
    /// A line ends with LF or CRLF, which is not part of it; empty lines count. The text after the last end is a line
    /// too, unless it is empty. A line that is cut by an error is not returned. Bytes that are not UTF-8 become U+FFFD.
    ///
    /// - Parameter maximumByteCount: of a line, without its end. A longer one ends the sequence with
    ///   ``NetworkError/Code/bodyTooLong``, and cancels the exchange. Default 1 MiB.
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

    /// The body, and the call that brings it. Its release cancels the call.
    final class Source: Sendable {
        typealias Call = Task<Result<NetworkResponse, NetworkError>, Never>

        let body: BodyStream?
        /// The body of an answer that did not come from the network.
        private let rest: Locked<Data?>
        private let isClaimed = Locked(false)
        private let call: Call
        private let group: CallGroup

        /// - Parameter group: has one call under way, this one.
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

        /// - Returns: `read`, the first time; later a function that throws.
        func claim<Element>(_ read: @escaping StreamedSequence<Element>.Read) -> StreamedSequence<Element>.Read {
            guard isClaimed.exchange(true) else { return read }
            let message = "a streamed body can be iterated over only once; send the request again, or keep the data"
            return { throw NetworkError(code: .invalidRequest, message: message) }
        }

        /// The next bytes, at least one; nil at the end.
        func next() async throws(NetworkError) -> Data? {
            if let rest = rest.exchange(nil) { return rest }
            do throws(NetworkError) {
                if let data = try await body?.next() { return data }
            } catch {
                if Task.isCancelled {
                    group.cancel()
                    throw error
                }
                // The error of the call is the same, with the messages that were sent.
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

/// Elements that come over the network as they are asked for: the lines of a body, the events of a server.
///
/// ```swift
/// for try await line in answer.lines() { print(line) }
/// ```
///
/// A slow reader gets every element: the sender is paused meanwhile, see ``StreamedResponse``.
///
/// All errors are ``NetworkError``s: ``NetworkError/Code/cancelled`` when the task was cancelled. After an error, as
/// after the end, the iteration returns nil. Releasing the iterator cancels what it reads from.
public struct StreamedSequence<Element: Sendable>: AsyncSequence, AsyncIteratorProtocol, Sendable {
    /// Reads the next element.
    typealias Read = @Sendable () async throws -> Element?

    private let begin: @Sendable () -> Read
    private var isBegun = false
    /// Nil before the beginning of the iteration and after its end.
    private var read: Read?

    /// - Parameter begin: called for each iteration.
    init(_ begin: @escaping @Sendable () -> Read) {
        self.begin = begin
    }

    /// A function that reads elements by a state, which two tasks with copies of one iterator do not change at once.
    static func reading<State: Sendable>(
        _ state: State,
        _ next: @escaping @Sendable (inout State) async throws -> Element?
    ) -> Read {
        let held = Locked<State?>(state)
        return {
            guard var state = held.exchange(nil) else {
                throw NetworkError(code: .invalidRequest, message: "two tasks use copies of one iterator concurrently")
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

    /// Reads the next element.
    ///
    /// - Returns: nil at the end.
    public mutating func next() async throws -> Element? {
        if !isBegun { self = makeAsyncIterator() }
        guard let read = read.take(), let element = try await read() else { return nil }
        self.read = read
        return element
    }
}
