import Foundation

/// An answer whose body comes bit by bit: iterate over it.
///
/// ```swift
/// let answer = try await service.stream(GetExport())
/// for try await data in answer { try file.write(contentsOf: data) }
/// ```
///
/// The head is there; the body comes as fast as it is fetched. When more than 256 KiB wait, the server is held back, as far
/// as ``TransportExchange/pause()`` of the transport does it.
///
/// The body can be iterated over once, in chunks or in ``lines(maximumByteCount:)``; who begins a second time gets
/// ``NetworkError/Code/invalidRequest``. When this value and its iterators are gone, the exchange is cancelled.
/// Cancelling the task that iterates cancels it at once: what waits is not handed out any more.
public struct StreamedResponse: AsyncSequence, Sendable {
    public typealias Element = Data

    /// The status code, which is accepted.
    public let statusCode: Int

    /// The header fields, in order and with repeats as far as the transport tells.
    public let headers: HTTPHeaders

    /// The URL that answered, after redirects; nil when nobody said.
    public let url: URL?

    private let lease: Lease

    init(statusCode: Int, headers: HTTPHeaders, url: URL?, channel: StreamChannel) {
        self.statusCode = statusCode
        self.headers = headers
        self.url = url
        lease = Lease(channel)
    }

    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(lease)
    }

    /// Goes through the body, chunk by chunk as they come.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private let lease: Lease
        private let isFirst: Bool
        private var isOver = false

        fileprivate init(_ lease: Lease) {
            self.lease = lease
            isFirst = lease.channel.claim()
        }

        /// - Returns: the next bytes, never none of them; nil at the end, and after an error.
        /// - Throws: a ``NetworkError``, after all bytes that came before it: why the exchange broke off;
        ///   ``NetworkError/Code/cancelled`` when the task was cancelled; ``NetworkError/Code/invalidRequest`` when
        ///   somebody else has iterated.
        public mutating func next() async throws -> Data? {
            guard !isOver else { return nil }
            // Unless a chunk comes.
            isOver = true
            guard isFirst else { throw StreamChannel.isReadTwice }
            let data = try await lease.channel.next()
            isOver = data == nil
            return data
        }

        /// Gives the rest up, and ends the exchange.
        mutating func cancel() {
            isOver = true
            // The body of another one's is not given up.
            if isFirst { lease.channel.cancel() }
        }
    }

    /// Cancels the exchange when nobody can iterate any more.
    fileprivate final class Lease: Sendable {
        let channel: StreamChannel

        init(_ channel: StreamChannel) {
            self.channel = channel
        }

        deinit {
            channel.cancel()
        }
    }

    /// For a test that the bytes that wait have a bound.
    var waitingByteCount: Int { lease.channel.waitingByteCount }
}
