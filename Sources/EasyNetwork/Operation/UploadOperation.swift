import Foundation

/// A job that sends a large body in constant memory, and reports its progress.
///
/// ```swift
/// let upload = UploadOperation(PutMovie(id: 7), from: .file(movie))
/// upload.success = { movie in print(movie.url) }
/// NetworkQueue.shared.addOperation(upload)
/// for await (completed, _) in upload.updates { print(completed) }
/// ```
///
/// The body is the request's own, or one that you pass to replace it: data, a file, a stream or a multipart form. Files
/// and streams are read while they are sent. The length is sent if it is known (`Content-Length`). Otherwise HTTP/1.1
/// sends the body in chunks (RFC 9112, section 7.1). ``URLSessionTransport`` first writes a stream to a temporary file.
///
/// A retry, a redirect that keeps the method, and a challenge send the body again from its beginning. HTTP cannot
/// resume an upload, so an upload cannot be paused either. A body that cannot be read twice
/// (``TransportBodyStream/isReplayable``) is sent once. If a server responds before it has read the body, for example
/// with `413 Content Too Large`, the upload ends at once, and the rest is not sent.
///
/// Callbacks and ``ItemOperation/value`` work as in every ``RequestOperation``. Uploads are never joined:
/// ``RepeatPolicy/join`` has the meaning of ``RepeatPolicy/allow`` here.
public final class UploadOperation<Request: APIRequest>: RequestOperation<Request>, @unchecked Sendable {
    // Sendable because the class has no state of its own.

    /// Creates an upload.
    ///
    /// - Parameters:
    ///   - request: the request, with a method that has a body, such as POST or PUT.
    ///   - body: the body, with its Content-Type. The parameters of the request are then sent in its query (`.path`).
    ///     Defaults to `nil`: the request's body.
    ///   - service: the service, which determines the host. Cancelling it cancels this operation's call. Defaults to a
    ///     service of the current ``HostConfiguration/shared``.
    public init(
        _ request: Request,
        from body: RequestBody? = nil,
        service: EasyNetworkService = EasyNetworkService(HostConfiguration.shared)
    ) {
        super.init(request, request.options, of: service)
        changeRequestOptions { options in
            options.body = body
            options.beginBody = { [weak self] body throws(NetworkError) in try self?.begin(body) ?? body }
        }
    }

    // MARK: - Progress

    /// The number of bytes of the body that have been sent, and its length, `nil` while that is unknown. Values are
    /// sent as they change, at most ten times a second, and once more at the end. Each read returns a new sequence. A
    /// slow reader misses intermediate values, but never the last one. The rate in bytes per second and the remaining
    /// time in seconds are in the `userInfo` of ``ItemOperation/progress``, under `throughputKey` and
    /// `estimatedTimeRemainingKey`.
    public var updates: AsyncStream<(completedBytes: Int64, totalBytes: Int64?)> { meter.updates() }

    override func claimProgress() -> OrderedProgress? { meter.claimShare() }

    override func makeMeter() -> TransferMeter {
        // Foundation on Linux has no constant for this kind.
        let kind = Progress.FileOperationKind(rawValue: "NSProgressFileOperationKindUploading")
        return TransferMeter(kind: kind, clock: callGroup.host.settings.clock)
    }

    override func note(_ counts: BodyStream.Counts, _ total: Int64?, in meter: TransferMeter) {
        // A redirect can have another method and no body.
        if counts.sent > 0 { meter.set(completed: Int64(counts.sent)) }
    }

    // MARK: - Bandwidth

    /// The maximum rate of the body in bytes per second, in addition to ``NetworkQueue/bandwidthLimit``. A value below
    /// 1 counts as 1. Defaults to `nil`: no limit. The rate is an average over a tenth of a second or more.
    ///
    /// Set it before the body begins. A later change takes effect at once for a stream. For data and files, it takes
    /// effect at once if they began with a limit, otherwise when they are sent again. A body with a limit is sent as a
    /// stream, which costs more.
    public var bandwidthLimit: Int? {
        get { ownBandwidthLimit }
        set { ownBandwidthLimit = newValue }
    }

    /// Prepares the body, which begins or begins again.
    ///
    /// - Returns: the body to send.
    private func begin(_ body: TransportBody) throws(NetworkError) -> TransportBody {
        meter.begin(completed: 0, total: try body.length().map(Int64.init))
        if case .stream = body {} else if bandwidthLimits.isEmpty { return body }
        return try body.paced(
            pieceSize: { [weak self] in
                let slowest = self?.bandwidthLimits.map(\.bytesPerSecond).min()
                // A piece takes a tenth of a second. Larger pieces would leave long pauses between them.
                return slowest.map { min(65_536, max(1, $0 / 10)) } ?? .max
            },
            delay: { [weak self] count in self?.bandwidthLimits.map { $0.delay(after: count) }.max() ?? 0 },
            clock: callGroup.host.settings.clock
        )
    }

    // MARK: - The work

    override var mayShareAnswer: Bool { false }
}
