import Foundation

/// A job that sends a large body in constant memory, and has its progress.
///
/// ```swift
/// let upload = UploadOperation(PutMovie(id: 7), from: .file(movie))
/// upload.success = { movie in print(movie.url) }
/// NetworkQueue.shared.addOperation(upload)
/// for await (completed, _) in upload.updates { print(completed) }
/// ```
///
/// The body is that of the request, or another in its place: data, a file, a stream, a multipart form. Files and
/// streams are read while they are sent. The length is sent when it is known (`Content-Length`), else HTTP/1.1 sends
/// the body in chunks (RFC 9112, section 7.1). ``URLSessionTransport`` writes a stream to a temporary file first.
///
/// A retry, a redirect that keeps the method, and a challenge send the body again from its beginning, for HTTP cannot
/// resume an upload; so it cannot be paused either. A body that cannot be read twice
/// (``TransportBodyStream/isReplayable``) is sent once. When a server answers before it has read the body, with
/// `413 Content Too Large` for instance, the upload ends at once, and the rest is not sent.
///
/// Callbacks, ``ItemOperation/value`` and the rest are those of ``RequestOperation``. Uploads are never joined:
/// ``RepeatPolicy/join`` means ``RepeatPolicy/allow`` here.
public final class UploadOperation<Request: APIRequest>: RequestOperation<Request>, @unchecked Sendable {
    // Sendable because it has no state of its own.

    /// Creates an upload.
    ///
    /// - Parameters:
    ///   - request: with a method that has a body, POST or PUT.
    ///   - body: the body, with its Content-Type; the parameters of the request go into its query then (`.path`).
    ///     Default nil: that of the request.
    ///   - service: gives the host, and cancels this operation's call when it is cancelled itself. Default
    ///     ``HostConfiguration/shared`` as it is now.
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

    /// Bytes of the body that have been sent, and its length, nil while that is not known: as they change, at most ten
    /// times a second, and once more at the end. Each call returns a new sequence. A slow reader misses the values
    /// between, never the last one. The rate in bytes a second and the seconds that are left are in the `userInfo` of
    /// ``ItemOperation/progress``: `throughputKey` and `estimatedTimeRemainingKey`.
    public var updates: AsyncStream<(completedBytes: Int64, totalBytes: Int64?)> { meter.updates() }

    override func claimProgress() -> OrderedProgress? { meter.claimShare() }

    override func makeMeter() -> TransferMeter {
        // Foundation on Linux has no name for it.
        let kind = Progress.FileOperationKind(rawValue: "NSProgressFileOperationKindUploading")
        return TransferMeter(kind: kind, clock: callGroup.host.settings.clock)
    }

    override func note(_ counts: BodyStream.Counts, _ total: Int64?, in meter: TransferMeter) {
        // A redirect may have another method and no body.
        if counts.sent > 0 { meter.set(completed: Int64(counts.sent)) }
    }

    // MARK: - Bandwidth

    /// The bytes a second that the body may be sent at, besides ``NetworkQueue/bandwidthLimit``; less than 1 counts as
    /// 1. Default nil: no limit. It is kept on average, over a tenth of a second and more.
    ///
    /// Set it before the body begins. A later change takes effect at once for a stream, and for data and files when
    /// they began with a limit or are sent again: a body with a limit is sent as a stream, which costs more.
    public var bandwidthLimit: Int? {
        get { ownBandwidthLimit }
        set { ownBandwidthLimit = newValue }
    }

    /// The body begins, or begins again.
    ///
    /// - Returns: the body to send.
    private func begin(_ body: TransportBody) throws(NetworkError) -> TransportBody {
        meter.begin(completed: 0, total: try body.length().map(Int64.init))
        if case .stream = body {} else if bandwidthLimits.isEmpty { return body }
        return try body.paced(
            pieceSize: { [weak self] in
                let slowest = self?.bandwidthLimits.map(\.bytesPerSecond).min()
                // As much as a tenth of a second takes: larger pieces would leave long silences between them.
                return slowest.map { min(65_536, max(1, $0 / 10)) } ?? .max
            },
            delay: { [weak self] count in self?.bandwidthLimits.map { $0.delay(after: count) }.max() ?? 0 },
            clock: callGroup.host.settings.clock
        )
    }

    // MARK: - The work

    override var mayShareAnswer: Bool { false }
}
