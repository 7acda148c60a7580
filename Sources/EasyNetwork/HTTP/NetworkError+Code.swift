extension NetworkError {
    /// The kind of a failure.
    ///
    /// A struct and not an enum, so that a new code breaks no `switch`. A program may add its own with numbers of
    /// 10,000 and above:
    ///
    /// ```swift
    /// extension NetworkError.Code {
    ///     static let quotaExceeded = NetworkError.Code(rawValue: 10_001)
    /// }
    /// ```
    public struct Code: RawRepresentable, Hashable, Sendable {
        public let rawValue: Int

        public init(rawValue: Int) {
            self.rawValue = rawValue
        }

        /// The request could not be built: a URL, header, parameter or body that cannot be sent. Nothing was sent.
        public static let invalidRequest = Code(rawValue: 1)
        /// Cancelled by the program.
        public static let cancelled = Code(rawValue: 2)
        /// A dependency that had to succeed did not; ``NetworkError/underlying`` is the root cause.
        public static let dependencyFailed = Code(rawValue: 3)
        /// The operation waits for itself: over its dependencies, which ``NetworkError/dependencyPath`` names, over a
        /// group that it is in, or over the prerequisite of a condition.
        public static let cycle = Code(rawValue: 4)
        /// It was not let begin, and nothing was sent: a condition does not hold, it repeats another one, its queue
        /// has been drained, or its group has ended.
        public static let refused = Code(rawValue: 5)

        /// The host's name could not be looked up, or nobody accepted the connection. Nothing was sent.
        public static let cannotConnect = Code(rawValue: 100)
        /// No secure connection: certificate, pin, version or handshake.
        public static let tls = Code(rawValue: 101)
        /// A deadline passed.
        public static let timedOut = Code(rawValue: 102)
        /// The connection broke before the answer was complete.
        public static let connectionLost = Code(rawValue: 103)
        /// What came back is not HTTP.
        public static let badServerResponse = Code(rawValue: 104)

        /// The body is longer than the transport was told to take; see
        /// ``TransportConfiguration/maximumDecodedBodyCount``.
        public static let bodyTooLong = Code(rawValue: 105)

        /// There is no network to send over: none at all, or none that the request may use. Nothing was sent.
        ///
        /// Apple's system says so. libcurl does when there is no way to an address; without a network it mostly gets as far
        /// as the host's name only, which then is ``cannotConnect``, as a host that is there and refuses is.
        public static let notConnected = Code(rawValue: 106)

        /// The status is not among those accepted.
        public static let unacceptableStatus = Code(rawValue: 200)
        /// The server answered 401.
        public static let unauthorized = Code(rawValue: 201)
        /// The body is not what was expected: not JSON, not text, a key missing, a value of another type.
        public static let cannotParseResponse = Code(rawValue: 202)
        /// A redirect could not be followed: too many, to another scheme, or to no address.
        public static let redirectFailed = Code(rawValue: 203)
        /// An interceptor wants the request sent again, and it has been too often, or its body can be read only once.
        public static let cannotSendAgain = Code(rawValue: 204)

        /// A file could not be written, put in its place, or read again: no room, no right, no such directory.
        public static let cannotWriteFile = Code(rawValue: 400)
        /// A file does not have the digest that it must have.
        public static let digestMismatch = Code(rawValue: 401)

        /// Only the cache was asked, and it has no usable entry.
        public static let notCached = Code(rawValue: 300)
    }
}

extension NetworkError.Code: CustomStringConvertible {
    /// The name of the code as it is written in Swift, or its number when the package does not know it.
    public var description: String {
        switch self {
        case .invalidRequest: "invalidRequest"
        case .cancelled: "cancelled"
        case .dependencyFailed: "dependencyFailed"
        case .cycle: "cycle"
        case .refused: "refused"
        case .cannotConnect: "cannotConnect"
        case .tls: "tls"
        case .timedOut: "timedOut"
        case .connectionLost: "connectionLost"
        case .badServerResponse: "badServerResponse"
        case .bodyTooLong: "bodyTooLong"
        case .notConnected: "notConnected"
        case .unacceptableStatus: "unacceptableStatus"
        case .unauthorized: "unauthorized"
        case .cannotParseResponse: "cannotParseResponse"
        case .redirectFailed: "redirectFailed"
        case .cannotSendAgain: "cannotSendAgain"
        case .cannotWriteFile: "cannotWriteFile"
        case .digestMismatch: "digestMismatch"
        case .notCached: "notCached"
        default: "code \(rawValue)"
        }
    }
}
