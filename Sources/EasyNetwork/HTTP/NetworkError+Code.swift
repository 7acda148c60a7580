extension NetworkError {
    /// The kind of a failure.
    ///
    /// This type is a struct instead of an enum, so that a new code breaks no `switch`. A program can add codes with
    /// numbers of 10,000 and above:
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

        /// The request could not be built, because a URL, header, parameter or body is invalid. The request was not
        /// sent.
        public static let invalidRequest = Code(rawValue: 1)
        /// The program cancelled the request or the job.
        public static let cancelled = Code(rawValue: 2)
        /// A dependency that had to succeed did not. ``NetworkError/underlying`` is the root cause.
        public static let dependencyFailed = Code(rawValue: 3)
        /// The operation waits for itself: through its dependencies, which ``NetworkError/dependencyPath`` names,
        /// through a group that contains it, or through the prerequisite of a condition.
        public static let cycle = Code(rawValue: 4)
        /// The job was not allowed to begin, and nothing was sent. A condition does not hold, the job repeats another
        /// request, its queue has been shut down, or its group has ended.
        public static let refused = Code(rawValue: 5)
        /// Too many calls to the server failed, so no call is sent until a trial succeeds; see ``CircuitBreaker``. The
        /// message names the host, what was counted, the last failure and the time of the next trial.
        /// ``NetworkError/headers`` contain this time as `Retry-After`, in seconds.
        public static let circuitOpen = Code(rawValue: 6)

        /// The host's name could not be resolved, or the connection was refused. If a proxy refused it, the error has
        /// the proxy's status. The request was not sent.
        public static let cannotConnect = Code(rawValue: 100)
        /// The secure connection failed: certificate, pin, version or handshake.
        public static let tls = Code(rawValue: 101)
        /// A deadline has passed.
        public static let timedOut = Code(rawValue: 102)
        /// The connection was lost before the response was complete.
        public static let connectionLost = Code(rawValue: 103)
        /// The response is not HTTP.
        public static let badServerResponse = Code(rawValue: 104)

        /// The body is longer than the limit of the request or of the transport; see
        /// ``TransportConfiguration/maximumDecodedBodyCount``.
        public static let bodyTooLong = Code(rawValue: 105)

        /// There is no network, or none that the request is allowed to use. The request was not sent.
        ///
        /// On Apple platforms the system reports this. libcurl reports it if there is no route to an address. Without a
        /// network, libcurl usually fails to resolve the host's name, which is ``cannotConnect``.
        public static let notConnected = Code(rawValue: 106)

        /// The status is not an accepted one.
        public static let unacceptableStatus = Code(rawValue: 200)
        /// The server responded with 401.
        public static let unauthorized = Code(rawValue: 201)
        /// The body is not what was expected: it is not JSON or not text, a key is missing, or a value has another
        /// type.
        public static let cannotParseResponse = Code(rawValue: 202)
        /// A redirect could not be followed: there were too many, or it leads to another scheme or to an invalid URL.
        public static let redirectFailed = Code(rawValue: 203)
        /// The request could not be resent. An interceptor asked for this too often, or the body can be read only once
        /// and a proxy required credentials after it had been read.
        public static let cannotSendAgain = Code(rawValue: 204)

        /// The request was allowed to use only the cache, which has no usable entry.
        public static let notCached = Code(rawValue: 300)

        /// A file could not be written, moved to its destination, or read back: no space, no permission, no such
        /// directory.
        public static let cannotWriteFile = Code(rawValue: 400)
        /// A file does not have the expected digest.
        public static let digestMismatch = Code(rawValue: 401)
    }
}

extension NetworkError.Code: CustomStringConvertible {
    /// The name of the code as it is written in Swift; its number if it is not a code of this package.
    public var description: String { Self.words[self]?.name ?? "code \(rawValue)" }

    /// Whether a request that fails with this code has not been sent.
    var meansNotSent: Bool { [.cannotConnect, .notConnected, .tls, .invalidRequest].contains(self) }

    /// A short description of the failure for a person.
    package var summary: String { Self.words[self]?.summary ?? "The request failed with \(self)" }

    private static let words: [NetworkError.Code: (name: String, summary: String)] = [
        .invalidRequest: ("invalidRequest", "The request cannot be sent"),
        .cancelled: ("cancelled", "Cancelled"),
        .dependencyFailed: ("dependencyFailed", "A job that this one waits for did not succeed"),
        .cycle: ("cycle", "The job waits for itself"),
        .refused: ("refused", "The request was refused before it was sent"),
        .circuitOpen: ("circuitOpen", "The server failed too often"),
        .cannotConnect: ("cannotConnect", "Cannot connect to the server"),
        .tls: ("tls", "No secure connection to the server"),
        .timedOut: ("timedOut", "The request timed out"),
        .connectionLost: ("connectionLost", "The connection to the server was lost"),
        .badServerResponse: ("badServerResponse", "The server's response is not HTTP"),
        .bodyTooLong: ("bodyTooLong", "The server's response is too long"),
        .notConnected: ("notConnected", "There is no network"),
        .unacceptableStatus: ("unacceptableStatus", "The server refused the request"),
        .unauthorized: ("unauthorized", "The server requires other credentials"),
        .cannotParseResponse: ("cannotParseResponse", "The server's response cannot be understood"),
        .redirectFailed: ("redirectFailed", "The server's redirect cannot be followed"),
        .cannotSendAgain: ("cannotSendAgain", "The request cannot be resent"),
        .notCached: ("notCached", "The cache has no usable response"),
        .cannotWriteFile: ("cannotWriteFile", "The file cannot be written"),
        .digestMismatch: ("digestMismatch", "The file does not have the expected digest"),
    ]
}
