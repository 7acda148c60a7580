extension PageCursor {
    /// The pages from the first to the last, each loaded when it is asked for.
    ///
    /// ```swift
    /// for try await list in cursor.pages { show(list) }
    /// ```
    ///
    /// Reading moves the cursor: it starts over, and what it was loading is cancelled. Cancelling the task cancels the
    /// page that is being loaded. The sequence throws the error of a page, and is over then;
    /// ``loadNext(success:failure:)`` may ask for the same page again.
    ///
    /// A cursor is in one place. When somebody else starts it over, the sequence throws
    /// ``NetworkError/Code/cancelled``; while somebody else is loading a page, it throws ``NetworkError/Code/refused``.
    public var pages: Pages { Pages(cursor: self) }

    /// See ``pages``.
    public struct Pages: AsyncSequence, Sendable {
        public typealias Element = Request.Item

        fileprivate let cursor: PageCursor

        public func makeAsyncIterator() -> Iterator {
            Iterator(cursor: cursor)
        }

        public struct Iterator: AsyncIteratorProtocol {
            fileprivate let cursor: PageCursor
            private var round: UInt64?
            private var isOver = false

            fileprivate init(cursor: PageCursor) {
                self.cursor = cursor
            }

            /// - Throws: the ``NetworkError`` of the page.
            public mutating func next() async throws -> Request.Item? {
                guard !isOver else { return nil }
                // Unless a page comes.
                isOver = true
                guard !Task.isCancelled else { throw NetworkError(code: .cancelled) }
                let load: Load
                switch round.map(cursor.beginNext) ?? .load(cursor.beginFirst()) {
                case .load(let begun): load = begun
                case .end: return nil
                case .busy:
                    throw NetworkError(code: .refused, message: "another page of this cursor is being loaded")
                case .startedOver:
                    throw NetworkError(code: .cancelled, message: "the cursor was started over")
                }
                round = load.round
                let item = try await cursor.item(of: load)
                isOver = false
                return item
            }
        }
    }
}
