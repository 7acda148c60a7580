extension MockResponse.Fault {
    /// Where in an exchange it is broken off. Counts below 0 are taken for 0.
    public struct Place: Hashable, Sendable {
        enum Kind: Hashable, Sendable {
            case requestStart
            case requestBody(after: Int)
            case responseStart
            case responseHead(after: Int)
            case responseBody(after: Int)
            case responseEnd
        }

        let kind: Kind

        /// When the first byte of the request has come, before it is read. Only
        /// ``MockServer/failNextRequests(_:with:)`` can know of a request by then; on a route it means what
        /// ``requestBody(after:)`` does with 0. As the fault of an answer it is the same as ``responseStart``.
        public static let requestStart = Place(kind: .requestStart)

        /// When the head of the request and that many bytes of its body have been read, or a shorter body is complete.
        /// More may have been read, as bytes come in lots. An expected `100 Continue` is sent only for a count above 0.
        /// As the fault of an answer it is the same as ``responseStart``.
        public static func requestBody(after count: Int) -> Place { Place(kind: .requestBody(after: max(count, 0))) }

        /// In place of the answer: after the request has been read and the delay has passed.
        public static let responseStart = Place(kind: .responseStart)

        /// After that many bytes of the answer's head, or after all of them if it has fewer. Interim answers before it
        /// are sent whole.
        public static func responseHead(after count: Int) -> Place { Place(kind: .responseHead(after: max(count, 0))) }

        /// After that many bytes of the answer's body, chunk framing not counted, or after all of them if it has fewer.
        /// With a `Content-Length` the answer is complete then; a chunked body still lacks its last chunk.
        public static func responseBody(after count: Int) -> Place { Place(kind: .responseBody(after: max(count, 0))) }

        /// After the last byte of the answer, which is complete and does not tell of what comes.
        public static let responseEnd = Place(kind: .responseEnd)
    }

    /// How to break off a request of whose body that many bytes are there; nil when it is not time.
    ///
    /// - Parameter isComplete: whether no more bytes follow.
    func actionInRequest(bodyCount: Int, isComplete: Bool) -> Action? {
        guard case .breaksOff(let action, let place) = kind else { return nil }
        switch place.kind {
        case .requestStart: return action
        case .requestBody(let count): return isComplete || bodyCount >= count ? action : nil
        case .responseStart, .responseHead, .responseBody, .responseEnd: return nil
        }
    }

    /// How to break off before a request is read; nil when that is not the place.
    var actionAtRequestStart: Action? {
        guard case .breaksOff(let action, let place) = kind, place == .requestStart else { return nil }
        return action
    }
}

extension MockResponse.Fault.Place {
    /// Whether not a byte of the answer is sent.
    var isBeforeResponse: Bool {
        switch kind {
        case .requestStart, .requestBody, .responseStart: true
        case .responseHead, .responseBody, .responseEnd: false
        }
    }

    /// Whether the request may not have arrived.
    var isInRequest: Bool {
        switch kind {
        case .requestStart, .requestBody: true
        case .responseStart, .responseHead, .responseBody, .responseEnd: false
        }
    }

    /// Whether the client does not get the answer's head.
    var isBeforeHead: Bool {
        if case .responseHead = kind { return true }
        return isBeforeResponse
    }
}
