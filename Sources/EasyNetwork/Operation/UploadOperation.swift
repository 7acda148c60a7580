import Foundation

/// A job that sends a large body in constant memory, and has its progress.
///
/// ```swift
/// let upload = UploadOperation(PutMovie(id: 7), from: .file(movie))
/// upload.success = { movie in print(movie.url) }
/// NetworkQueue.shared.addOperation(upload)
/// for await progress in upload.updates { print(progress.completedBytes) }
/// ```
///
/// The body is that of the request, or another in its place: data, a file, a stream, a multipart form. Files and streams are
/// read while they are sent. The length is sent when it is known (`Content-Length`), else HTTP/1.1 sends the body in chunks
/// (RFC 9112, section 7.1). ``URLSessionTransport`` writes a stream to a temporary file first.
///
/// A retry, a redirect that keeps the method, and a challenge send the body again from its beginning, for HTTP cannot resume
/// an upload; so it cannot be paused either. A body that cannot be read twice (``TransportBodyStream/isReplayable``) is sent
/// once. When a server answers before it has read the body, with `413 Content Too Large` for instance, the upload ends at
/// once, and the rest is not sent.
///
/// Callbacks, ``RequestOperation/value`` and the rest are those of ``RequestOperation``. Uploads are never joined:
/// ``RepeatPolicy/join`` means ``RepeatPolicy/allow`` here.
public final class UploadOperation<Request: APIRequest>: RequestOperation<Request>, @unchecked Sendable {
    // Sendable because everything that changes is in `limit`, behind its lock.
    private let body: RequestBody?
    private let meter: TransferMeter
    private let limit = Locked<BandwidthLimit?>(nil)

    /// An operation for ``HostConfiguration/shared`` as it is now, that sends the body of the request.
    public override convenience init(_ request: Request) {
        self.init(request, body: nil, EasyNetworkService(HostConfiguration.shared))
    }

    /// An operation that sends the body of the request.
    ///
    /// - Parameter service: gives the host, and cancels this operation's call when it is cancelled itself.
    public override convenience init(_ request: Request, service: EasyNetworkService) {
        self.init(request, body: nil, service)
    }

    /// An operation that sends another body than that of the request.
    ///
    /// - Parameters:
    ///   - request: with a method that has a body, POST or PUT. Its parameters go into its query (`.path`).
    ///   - body: the body, with its Content-Type.
    ///   - service: gives the host, and cancels this operation's call when it is cancelled itself. Default
    ///     ``HostConfiguration/shared`` as it is now.
    public convenience init(
        _ request: Request,
        from body: RequestBody,
        service: EasyNetworkService = EasyNetworkService(HostConfiguration.shared)
    ) {
        self.init(request, body: body, service)
    }

    private init(_ request: Request, body: RequestBody?, _ service: EasyNetworkService) {
        self.body = body
        meter = TransferMeter(kind: .uploading, clock: service.configuration.settings.clock)
        super.init(request, service: service)
        meter.whenCancelled { [weak self] in self?.cancel() }
    }

    // MARK: - Progress

    /// Bytes of the body that have been handed to the system, of those that it has; indeterminate while that is not known. It
    /// begins again when the body is sent again, and is finished when the operation has succeeded. Cancelling it cancels the
    /// operation; pausing it does nothing. It changes on background threads, at most ten times a second.
    public var progress: Progress { meter.progress }

    /// Bytes, rate and time left as they change, at most ten times a second, and once more at the end. Each call returns a new
    /// sequence.
    public var updates: AsyncStream<TransferProgress> { meter.updates() }

    override func claimProgress() -> OrderedProgress? { meter.claimShare() }

    // MARK: - Bandwidth

    /// How fast the body may be sent, besides ``NetworkQueue/bandwidthLimit``; it may be shared. Default nil: no limit.
    ///
    /// Set it before the body begins. A later change takes effect at once for a stream, and for data and files when they are
    /// sent again. A body with a limit is sent as a stream.
    public var bandwidthLimit: BandwidthLimit? {
        get { limit.withLock { $0 } }
        set { limit.exchange(newValue) }
    }

    /// The operation's and the queue's.
    private var limits: [BandwidthLimit] {
        BandwidthLimit.both(bandwidthLimit, scheduling?.queue.bandwidthLimit)
    }

    /// The body begins, or begins again.
    ///
    /// - Returns: the body to send.
    private func begin(_ body: TransportBody) throws(NetworkError) -> TransportBody {
        meter.begin(completed: 0, total: try body.length().map(Int64.init))
        if case .stream = body {} else if limits.isEmpty { return body }
        let pace = BodyPace { [weak self] in
            let slowest = self?.limits.map(\.bytesPerSecond).min()
            // As much as a tenth of a second takes: larger pieces would leave long silences between them.
            return slowest.map { min(65_536, max(1, $0 / 10)) } ?? .max
        } delay: { [weak self] count in
            self?.limits.map { $0.delay(after: count) }.max() ?? 0
        }
        return try body.paced(pace, clock: service.configuration.settings.clock)
    }

    // MARK: - The work

    override func didSend(_ count: Int) {
        meter.set(completed: Int64(count))
    }

    override func sendable(_ request: Request) -> any BaseAPIRequest {
        let begin = UploadBeginning { [weak self] body throws(NetworkError) in try self?.begin(body) ?? body }
        return UploadRequest(wrapped: request, replacement: body, beginning: begin)
    }

    override var mayShareAnswer: Bool { false }
    override var occupiesSlot: Bool { true }

    override func deliver(_ done: @escaping @Sendable () -> Void) {
        meter.finish(success: error == nil) { self.deliverResult(done) }
    }

    private func deliverResult(_ done: @escaping @Sendable () -> Void) {
        super.deliver(done)
    }
}

/// The request with the body of the upload.
private struct UploadRequest: RequestWrapper {
    let wrapped: any BaseAPIRequest
    let replacement: RequestBody?
    let beginning: UploadBeginning

    var body: RequestBody? { replacement ?? wrapped.body }
    // The parameters would be a body of their own.
    var query: NetworkService.QueryType { replacement != nil && wrapped.query == .form ? .path : wrapped.query }
    // The last one, so that it sees the body as it is sent.
    var interceptors: [any RequestInterceptor] { wrapped.interceptors + [beginning] }
}

/// Prepares the body of each attempt.
private struct UploadBeginning: RequestInterceptor {
    let begin: @Sendable (TransportBody) throws(NetworkError) -> TransportBody

    func adapt(_ message: TransportRequest, context: AttemptContext) async throws -> TransportRequest {
        var message = message
        message.body = try begin(message.body)
        return message
    }
}
