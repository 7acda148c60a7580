extension StreamedResponse {
    /// The body as lines: of newline-delimited JSON, of a log, of CSV.
    ///
    /// ```swift
    /// for try await line in answer.lines() { rows.append(try decoder.decode(Row.self, from: Data(line.utf8))) }
    /// ```
    ///
    /// A line ends with LF or CRLF, which is no part of it; empty lines count. What follows the last end is a line too,
    /// unless it is empty. Bytes that are no UTF-8 become U+FFFD.
    ///
    /// - Parameter maximumByteCount: of a line, without its end. A longer one ends the sequence with
    ///   ``NetworkError/Code/bodyTooLong``, and the exchange. Default 1 MiB.
    public func lines(maximumByteCount: Int = 1_048_576) -> Lines {
        Lines(response: self, maximumByteCount: maximumByteCount)
    }

    /// See ``lines(maximumByteCount:)``.
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

        /// Goes through the lines.
        public struct AsyncIterator: AsyncIteratorProtocol {
            private var chunks: StreamedResponse.AsyncIterator
            private var splitter: LineSplitter
            private var isOver = false

            init(chunks: StreamedResponse.AsyncIterator, splitter: LineSplitter) {
                self.chunks = chunks
                self.splitter = splitter
            }

            /// - Returns: the next line; nil at the end, and after an error.
            /// - Throws: what ``StreamedResponse/AsyncIterator/next()`` throws, and
            ///   ``NetworkError/Code/bodyTooLong``. A line that was cut by an error is not returned.
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
