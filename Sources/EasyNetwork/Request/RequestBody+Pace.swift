import Foundation

extension RequestBody {
    /// The body sent no faster than one piece a pause, for a connection that is shared with something more urgent.
    ///
    /// ```swift
    /// let body = RequestBody.multipart(form).paced(pieceSize: 16_384, delay: 0.2)     // at most 80 KiB a second
    /// ```
    ///
    /// A body in memory or from a file is sent as a stream then. ``URLSessionTransport`` writes streams to a file before
    /// it sends them, so that there the writing is paced and not the sending.
    ///
    /// - Parameters:
    ///   - pieceSize: in bytes, at least 1.
    ///   - delay: the seconds between two pieces, not negative. Keep it below the idle deadline.
    ///   - clock: default ``SystemClock``.
    /// - Returns: a body that fails its request with ``NetworkError/Code/invalidRequest`` for other values.
    public func paced(pieceSize: Int, delay: TimeInterval, clock: any NetworkClock = SystemClock()) -> RequestBody {
        RequestBody { () throws(NetworkError) in
            guard pieceSize > 0, delay >= 0, delay.isFinite else {
                throw NetworkError(
                    code: .invalidRequest,
                    message: "a body is paced by pieces of at least 1 byte and a delay of 0 seconds or more"
                )
            }
            let (body, contentType) = try self.build()
            let pace = BodyPace(pieceSize: { pieceSize }, delay: { _ in delay })
            return (try body.paced(pace, clock: clock), contentType)
        }
    }
}
