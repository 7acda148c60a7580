import Foundation

/// A job that sends a large body, in constant memory, and tells how far it is.
///
/// ```swift
/// let upload = UploadOperation(PutMovie(id: 7), from: .file(movie))
/// upload.success = { movie in print(movie.url) }
/// NetworkQueue.shared.addOperation(upload)
/// for await progress in upload.updates { print(progress.completedBytes) }
/// ```
///
/// The body is the request's own, or another one in its place: data, a file, a stream, a multipart form. Files and
/// streams are read while they are sent. The length is sent with it when it is known (`Content-Length`), else HTTP/1.1
/// sends it in chunks (RFC 9112, section 7.1). ``URLSessionTransport`` writes a stream to a temporary file first.
///
/// A retry, a redirect that keeps the method, and a credential that is asked for send the body anew from its beginning:
/// HTTP has no way to go on with one. So an upload cannot be paused either. What cannot be sent anew
/// (``TransportBodyStream/isReplayable``) is not. A server that answers before it has read the body, `413 Content Too
/// Large` for instance, ends the upload at once; the rest is not sent.
///
/// Callbacks, ``RequestOperation/value`` and the rest are those of ``RequestOperation``, but that an upload is never
/// joined: ``RepeatPolicy/join`` is ``RepeatPolicy/allow`` here.
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

    /// An operation that sends another body than the request has.
    ///
    /// - Parameters:
    ///   - request: with a method that has a body, POST or PUT. Parameters it has go into its query (`.path`).
    ///   - body: what is sent, with its Content-Type.
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

    /// Bytes of the body that have been handed to the system, of those that it has; indeterminate while nobody knows how
    /// many these are. It begins again when the body is sent anew, and is finished when the operation has succeeded.
    /// Cancelling it cancels the operation; pausing it does nothing. It changes on background threads, at most ten
    /// times a second.
    public var progress: Progress { meter.progress }

    /// Bytes, rate and time left as they change, at most ten times a second, and once more at the end. Each caller gets a
    /// sequence of its own.
    public var updates: AsyncStream<TransferProgress> { meter.updates() }

    override func claimProgress() -> OrderedProgress? { meter.claimShare() }

    // MARK: - Pace

    /// How fast the body may be sent; it counts beside ``NetworkQueue/bandwidthLimit``, and may be shared. Default nil: as
    /// fast as the network takes it.
    ///
    /// One that is there when the body begins holds it back; one that is set later does so for a stream at once, for data
    /// and files when they are sent anew. A body that is held back is sent as a stream.
    public var bandwidthLimit: BandwidthLimit? {
        get { limit.withLock { $0 } }
        set { limit.exchange(newValue) }
    }

    /// The operation's and the queue's.
    private var limits: [BandwidthLimit] {
        BandwidthLimit.both(bandwidthLimit, scheduling?.queue.bandwidthLimit)
    }

    /// The body begins, or begins anew.
    ///
    /// - Returns: the body as it is sent.
    private func begin(_ body: TransportBody) throws(NetworkError) -> TransportBody {
        meter.begin(completed: 0, total: try body.length().map(Int64.init))
        if case .stream = body {} else if limits.isEmpty { return body }
        let pace = BodyPace { [weak self] in
            let slowest = self?.limits.map(\.bytesPerSecond).min()
            // A tenth of a second's: large pieces would come in jerks, with long silences between them.
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

/// The request with the body of the upload, which is told when it begins.
private struct UploadRequest: RequestWrapper {
    let wrapped: any BaseAPIRequest
    let replacement: RequestBody?
    let beginning: UploadBeginning

    var body: RequestBody? { replacement ?? wrapped.body }
    // The form that is the default without a body would be another one.
    var query: NetworkService.QueryType { replacement != nil && wrapped.query == .form ? .path : wrapped.query }
    // The last one: it sees the body as it is sent.
    var interceptors: [any RequestInterceptor] { wrapped.interceptors + [beginning] }
}

/// Looks at the body of each attempt.
private struct UploadBeginning: RequestInterceptor {
    let begin: @Sendable (TransportBody) throws(NetworkError) -> TransportBody

    func adapt(_ message: TransportRequest, context: AttemptContext) async throws -> TransportRequest {
        var message = message
        message.body = try begin(message.body)
        return message
    }
}
