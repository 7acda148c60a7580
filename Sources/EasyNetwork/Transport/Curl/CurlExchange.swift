#if os(Linux) && canImport(CCurl)
internal import CCurl
import Foundation
import Synchronization

/// An exchange over libcurl. Its caller and the loop share this object.
final class CurlExchange: TransportExchange, @unchecked Sendable {
    // The class is Sendable because any thread can use `flags` and `loop`. `start` writes everything else, which then
    // belongs to the loop's thread. `CurlLoop.post` passes it to that thread under a lock.

    // The flags are set before the loop receives the command, so no event follows a cancellation or a pause that was
    // requested inside another event.
    private static let started: UInt8 = 1
    private static let cancelled: UInt8 = 2
    private static let paused: UInt8 = 4
    private static let over: UInt8 = 8
    private let flags = Atomic<UInt8>(0)
    private let loop: CurlLoop

    /// The message; nil before the start and after the end.
    private(set) var request: TransportRequest?
    var target: CurlTarget
    private var events: (@Sendable (TransportEvent) -> Void)?
    private var submitted: TimeInterval = 0

    /// The worker of the exchange; nil before the worker has received the exchange, and after the end.
    var worker: CurlWorker?
    var index = 0
    /// Whether the exchange counts as in progress, and gives up its place at its end.
    var hasPlace = false
    /// Whether the exchange's handle has been added to libcurl.
    var isUnderWay = false
    /// The handle; nil before the exchange begins and after its end.
    var handle: CurlHandle?
    private(set) var isOver = false
    /// An error of a callback. It takes precedence over the error that libcurl reports because the callback failed.
    private(set) var failure: NetworkError?
    /// Whether the exchange was aborted because it had its response.
    private(set) var isAnswered = false
    /// Whether the reused connection turned out to be unusable before a byte was sent.
    private(set) var isUnfit = false
    /// Whether the server is known to have rejected the message without processing it.
    private(set) var isRefused = false
    private var refusalCount = 0
    private(set) var needsNewConnection = false
    /// Whether the final response arrived over HTTP/2; nil before it.
    private(set) var isHTTP2: Bool?
    /// The maximum number of concurrent streams that the response's server accepts; nil if the server has not reported
    /// it.
    private(set) var streamLimit: Int?
    /// Whether the body ends with the connection and the server has not closed TLS.
    private var isTLSOpen = false
    /// The number of the stream, before libcurl 8.3.
    private var stream: Int?

    var body: CurlBody?
    /// The deadlines; nil until they are first checked, because nearly all exchanges end before.
    private var watch: DeadlineWatch?
    private var begun: (time: TimeInterval, turn: Int)?
    /// The time when bytes were last sent or received.
    private var lastMoved: TimeInterval = 0
    /// Whether libcurl has paused the response's body, and the request's body.
    private var isReceivingPaused = false
    private var isSendingPaused = false
    /// Whether the TLS handshake of a connection for the exchange is in progress.
    var isSecuring = false
    /// Whether the connection had been used before; nil while the message has no connection on which it can be sent.
    private(set) var isReused: Bool?
    /// Whether libcurl is opening a tunnel to send the message again. Header lines then come from the proxy.
    private var isReconnecting = false
    /// Whether the message has had a connection.
    private var hasConnected = false
    /// The number of connections that libcurl has established for the exchange.
    private var connectCount = 0
    private var connection: CurlConnections.Connection?
    private var remoteAddress: String?
    /// The number of bytes, as libcurl counts them, that requested a tunnel from a proxy.
    private var tunnelByteCount = 0
    // Only the loop's thread uses the head. An exclusivity check would cost time for each header line.
    @exclusivity(unchecked) private var head = CurlHead()
    /// The status of the response; 0 before it.
    private var answeredStatus = 0
    /// The responses of a proxy to requests for a tunnel; nil before the first.
    private(set) var tunnel: CurlTunnel?
    /// The head of the proxy's 407 response, until it is known whether libcurl responds to the challenge.
    private var challenge: TransportHead?
    private var challengeCount = 0
    /// Checks the chunks of the body; nil before the first.
    private var chunkSizes: CurlChunkSizes?
    /// Whether bytes have arrived after those with a malformed chunk.
    private var isChunkRefused = false
    private var decoder: CurlDecoder?
    private var decodedBodyLimit: DecodedBodyLimit?
    /// The number of bytes of the request's body that libcurl has taken.
    private var sentCount = 0

    init(_ loop: CurlLoop) {
        self.loop = loop
        target = loop.noTarget
    }

    func start(_ request: TransportRequest, events: @escaping @Sendable (TransportEvent) -> Void) {
        self.request = request
        self.events = events
        submitted = loop.clock.now
        flags.bitwiseOr(Self.started, ordering: .acquiringAndReleasing)
        guard !loop.post(self, isStart: true),
            flags.bitwiseOr(Self.over, ordering: .acquiringAndReleasing).oldValue & Self.over == 0
        else { return }
        (self.request, self.events) = (nil, nil)
        let none = NetworkError(code: .cannotConnect, message: "the system has no thread or socket left")
        let error = CurlLibrary.problem ?? none
        DispatchQueue.global().add { events(.end(TransportEnd(error: error))) }
    }

    // MARK: - From any thread

    var isCancelled: Bool { flags.load(ordering: .acquiring) & Self.cancelled != 0 }
    private var isPaused: Bool { flags.load(ordering: .acquiring) & Self.paused != 0 }

    func cancel() {
        announce(flags.bitwiseOr(Self.cancelled, ordering: .acquiringAndReleasing).oldValue, unless: Self.cancelled)
    }

    func pause() {
        announce(flags.bitwiseOr(Self.paused, ordering: .acquiringAndReleasing).oldValue, unless: Self.paused)
    }

    func resume() {
        let old = flags.bitwiseAnd(~Self.paused, ordering: .acquiringAndReleasing).oldValue
        announce(old ^ Self.paused, unless: Self.paused)
    }

    /// Notes that bytes of the request's body are available again.
    func bodyHasBytes() {
        loop.post(self)
    }

    /// Notifies the loop of a change, unless nothing changed or the exchange is not in progress.
    private func announce(_ old: UInt8, unless flag: UInt8) {
        if old & (Self.started | Self.over | flag) == Self.started { loop.post(self) }
    }

    // MARK: - Beginning

    /// Begins the head, and also the deadlines unless the exchange begins for a second time.
    ///
    /// - Returns: The time in seconds in which no deadline can pass; zero or less if the deadlines must be checked now.
    func begin(_ request: TransportRequest, _ worker: CurlWorker) -> TimeInterval {
        let isFirst = begun == nil
        begun = (begun?.time ?? worker.now, worker.turn)
        head = CurlHead(like: worker.lastHead)
        guard isFirst else { return 0 }
        let limits = request.deadlines
        // `Double.minimum` ignores NaN, which means no limit.
        let early = Double.minimum(limits.connect ?? .infinity, limits.firstByte ?? .infinity)
        let late = Double.minimum(limits.idle ?? .infinity, limits.total ?? .infinity)
        return Double.minimum(early, late)
    }

    /// Returns the time until the next deadline.
    ///
    /// - Returns: The time in seconds; infinity without a deadline.
    /// - Throws: ``NetworkError/Code/timedOut`` if a deadline has passed.
    func timeLeft(now: TimeInterval) throws(NetworkError) -> TimeInterval {
        guard let request, let begun else { return .infinity }
        var watch = watch ?? DeadlineWatch(request.deadlines, now: begun.time)
        if hasConnected { watch.connected() }
        if head.byteCount > 0 { watch.answered() }
        watch.activity(now: lastMoved)
        // The loop might not have received the pause yet. From now on, silence does not count.
        if isPaused { watch.setPaused(true, now: now) }
        self.watch = watch
        return try watch.timeLeft(now: now)
    }

    /// Returns to the state before the beginning.
    ///
    /// - Returns: The reason why the exchange cannot begin again; nil if it can.
    func startOver() -> NetworkError? {
        if isRefused { refusalCount += 1 }
        // Many exchanges can be rejected at once, for example by the end of their connection, and share the next one.
        // If a server accepts fewer streams than that, only the first exchange on a connection is certain of its place.
        needsNewConnection = !isRefused || refusalCount > 1
        (isUnfit, isRefused) = (false, false)
        (connectCount, connection, isReused, isSecuring, isSendingPaused) = (0, nil, nil, false, false)
        (tunnel, tunnelByteCount, isReconnecting) = (nil, 0, false)
        let isRepeatable = body?.rewind() != false
        guard isRepeatable, refusalCount <= Self.refusalLimit else {
            let reason = isRepeatable ? "\(refusalCount) times" : "and the body cannot be sent again"
            let message = "the server rejected the request without processing it, \(reason)"
            var error = NetworkError(code: .connectionLost, message: message)
            // A message that was sent and rejected counts as one that was never sent.
            error.phase = .connect
            return error
        }
        sentCount = 0
        return nil
    }

    /// The maximum number of times that a rejected message is sent again.
    private static let refusalLimit = 5

    // MARK: - Reports of libcurl

    /// Notes that libcurl has a connection for the message.
    ///
    /// - Returns: False if the message must not be sent.
    func connected(_ ends: CurlConnections.Ends) -> Bool {
        let (next, wasShared) = (worker?.connections.connection(ends), connection?.isReused)
        let oldCount = connectCount
        connectCount = handle?.long(CCURLINFO_NUM_CONNECTS) ?? 0
        let isReused = connectCount == oldCount
        // Even if this message is not sent, libcurl now treats the connection of the other messages as a reused one.
        if isReused { next?.isReused = true }
        isReconnecting = false
        if challenge != nil {
            guard forgetChallenge() else { return false }
        } else if self.isReused != nil {
            // After a 417, libcurl removes the expectation and would send the message again, over a connection on which
            // the server still waits for the first body. The 417 is the final response. A server that requires HTTP/1.1
            // can reset a stream within the body.
            guard !head.isComplete else {
                isAnswered = answeredStatus == 417 || answeredStatus == 407
                if !isAnswered {
                    failure = failure ?? NetworkError(code: .connectionLost, message: "the stream was reset")
                }
                return false
            }
            if isRefused { return false }
            // The connection was closed before a byte of the response, and the server might have acted on the message.
            // libcurl must not decide whether to send it again. On a connection that served nothing else, libcurl only
            // resends a message that the server rejected without processing it (RFC 9113, sections 8.7 and 13.3). On
            // other connections it does not report the difference.
            guard self.isReused == false, wasShared == false else {
                readRest()
                if !isAnswered {
                    failure = failure ?? NetworkError(code: .connectionLost, message: "a reused connection was closed")
                }
                return false
            }
            // Before 8.17, libcurl counts this over all messages of a handle, and gives up at the fifth unless it is
            // reset.
            handle?.needsReset = true
        }
        if tunnel != nil || challengeCount > 0 {
            // Older versions, such as 7.88, add the request for a tunnel to the request for the server.
            tunnelByteCount = handle?.long(CCURLINFO_REQUEST_SIZE) ?? 0
        }
        connection = next
        if isReused, let connection {
            guard connection.isFit(tls: target.isHTTPS ? handle?.easy : nil) else {
                isUnfit = true
                return false
            }
        }
        connection?.isSendingBody = body != nil && !target.isHTTPS
        if target.isHTTPS, connection?.isHTTP2 != false { requestReports() }
        stream = nil
        (self.isReused, hasConnected) = (isReused, true)
        remoteAddress = connection?.remoteAddress ?? CurlConnections.address(ends.remote, ends.remotePort)
        return true
    }

    /// Prepares for the response to the message that libcurl sends with its reply to the proxy's challenge.
    ///
    /// - Returns: False if the message must not be sent again.
    private func forgetChallenge() -> Bool {
        if isCancelled || request?.isWanted?() == false { failure = failure ?? NetworkError(code: .cancelled) }
        guard failure == nil else { return false }
        challengeCount += 1
        guard challengeCount <= CurlTunnel.challengeLimit else {
            isAnswered = true
            return false
        }
        challenge = nil
        let schemes = handle?.long(CCURLINFO_PROXYAUTH_AVAIL) ?? 0
        worker?.isBasicWanted = schemes & (CCURLAUTH_BASIC | CCURLAUTH_DIGEST) == CCURLAUTH_BASIC
        if let worker { head = CurlHead(like: worker.lastHead) }
        (decoder, decodedBodyLimit, chunkSizes, isSendingPaused) = (nil, nil, nil, false)
        // The deadline for the response continues.
        watch = nil
        return true
    }

    private func deliverChallenge() {
        guard let head = challenge.take() else { return }
        // If Basic credentials were sent without a challenge, the next message waits for a challenge again.
        worker?.isBasicWanted = false
        events?(.head(head))
    }

    /// Whether libcurl has established another connection, and has not yet called ``connected(_:)`` for it.
    private var hasReconnected: Bool { handle?.long(CCURLINFO_NUM_CONNECTS) ?? 0 != connectCount }

    /// Handles a header line. Before ``connected(_:)``, the line is from a proxy, which opens the tunnel.
    ///
    /// - Returns: False if the transfer must be aborted.
    func received(headerLine line: UnsafeRawBufferPointer) -> Bool {
        moved()
        do throws(NetworkError) {
            if target.isHTTPS, isReused != nil, line.starts(with: "HTTP/".utf8) { isReconnecting = hasReconnected }
            guard !target.isHTTPS || isReused != nil && !isReconnecting else {
                if tunnel == nil { tunnel = CurlTunnel() }
                try tunnel?.add(line)
                return true
            }
            if head.byteCount == 0 {
                // A server that responds has processed the message, regardless of its earlier reports.
                isRefused = false
                // All relevant reports arrive before the response, and each one costs time.
                if let handle, handle.isReporting { handle.isReporting = false }
                connection?.isSendingBody = false
            }
            guard let parsed = try head.add(line) else { return true }
            guard !isCancelled else { return false }
            try received(parsed)
            return true
        } catch {
            failure = error
            return false
        }
    }

    /// Prepares for the body, and delivers the head unless libcurl responds to it.
    private func received(_ parsed: CurlHead.Parsed) throws(NetworkError) {
        guard let worker else { return }
        worker.lastHead = head.known
        answeredStatus = parsed.head.statusCode
        isHTTP2 = parsed.isHTTP2
        if let connection {
            connection.isHTTP2 = parsed.isHTTP2
            streamLimit = connection.streamLimit
        }
        let (head, limit) = (parsed.head, worker.configuration.maximumDecodedBodyCount)
        if parsed.hasContentCoding { decoder = try CurlDecoder(head, limit: limit) }
        if parsed.isHTTP2 {
            worker.answeredOverHTTP2.append(self)
        } else if parsed.isChunked {
            requestReports()
        } else if target.isHTTPS, Self.missesTruncation, hasNoLength(head) {
            watchTLS()
        }
        // Without a decoder, a body with a content coding is passed on unchanged and has no limit.
        if decoder != nil || parsed.hasTransferCoding { decodedBodyLimit = limit.map(DecodedBodyLimit.init) }
        if isSendingPaused { worker.answeredEarly.append(self) }
        if head.statusCode == 407, target.isHTTP, worker.hasProxyPassword {
            challenge = head
        } else {
            events?(.head(head))
        }
    }

    /// Whether libcurl mistakes a TLS connection that was cut for one that the server has closed. From 8.14.1 on,
    /// libcurl reports an error of OpenSSL 3 instead.
    private static let missesTruncation = CurlLibrary.version < 0x08_0E_01

    private func hasNoLength(_ head: TransportHead) -> Bool {
        guard let method = request?.method, head.statusCode != 101, head.headers["Content-Length"] == nil else {
            return false
        }
        return head.bodyLength(answering: method) == nil
    }

    func checkTLS() {
        isTLSOpen = handle.map { ccurl_tls_is_open($0.easy) } ?? false
    }

    /// Notes what the server reports about this exchange before it responds.
    func received(report text: UnsafeRawBufferPointer) {
        guard head.byteCount == 0, let report = CurlReport(text) else { return }
        switch report {
        case .refused: isRefused = true
        case .streamLimit(let limit): connection?.streamLimit = limit
        case .stream(let number): stream = number
        case .lastStream(let last): if let stream, stream > last { isRefused = true }
        }
    }

    /// Checks the raw bytes of a chunked body. They arrive here before libcurl decodes them.
    func received(raw bytes: UnsafeRawBufferPointer) {
        // libcurl has decoded the bytes before these, so everything before the bad chunk has been delivered.
        isChunkRefused = isChunkRefused || failure != nil
        guard failure == nil else { return }
        var sizes = chunkSizes ?? CurlChunkSizes()
        defer { chunkSizes = sizes }
        if sizes.accept(bytes) { return }
        failure = NetworkError(code: .badServerResponse, message: "a chunk of the body has no valid size")
        // libcurl might take this for the proper end of the body, so it must not reuse the connection.
        if let handle { _ = ccurl_set_long(handle.easy, CCURLOPT_FORBID_REUSE, 1) }
    }

    /// Handles bytes of the body.
    ///
    /// - Returns: The number of bytes taken, which is all of them. Any other number makes libcurl abort or pause.
    func received(_ bytes: UnsafeRawBufferPointer) -> Int {
        moved()
        let flags = flags.load(ordering: .acquiring)
        // Any number except the count aborts the transfer. libcurl therefore never calls back without bytes.
        guard flags & Self.cancelled == 0, !isChunkRefused, let start = bytes.baseAddress, !bytes.isEmpty else {
            return 0
        }
        if challenge != nil { deliverChallenge() }
        isReceivingPaused = flags & Self.paused != 0
        guard !isReceivingPaused else { return Int(CCURL_WRITEFUNC_PAUSE) }
        do throws(NetworkError) {
            guard head.isComplete else {
                throw NetworkError(code: .badServerResponse, message: "the body precedes the head of the response")
            }
            guard let decoder else {
                try decodedBodyLimit?.take(bytes.count)
                events?(.body(Data(bytes: start, count: bytes.count)))
                return bytes.count
            }
            while let piece = try decoder.piece(of: bytes) {
                try decodedBodyLimit?.take(piece.count)
                events?(.body(piece))
                guard !isCancelled else { return 0 }
                // A few bytes can expand to very many, so check for a pause after each piece.
                if isPaused {
                    isReceivingPaused = true
                    return Int(CCURL_WRITEFUNC_PAUSE)
                }
            }
            return bytes.count
        } catch {
            failure = error
            return 0
        }
    }

    /// Reads the response that had arrived when libcurl failed to send the rest of the request's body, such as a 413.
    /// If the response is incomplete, the exchange still ends with the failure.
    func readRest() {
        guard head.byteCount == 0, let method = request?.method, var rest = connection?.unread[...],
            rest.starts(with: "HTTP/1".utf8)
        else { return }
        var (parsed, final) = (CurlHead(), TransportHead?.none)
        while final == nil, let end = rest.firstIndex(of: 0x0A) {
            let line = rest[...end]
            rest = rest[(end + 1)...]
            final = line.withUnsafeBytes { try? parsed.add($0) }?.head
            guard line.withUnsafeBytes(received(headerLine:)) else { return }
        }
        // The end of a body in chunks, or with a coding, is not known here.
        guard let final, final.headers["Transfer-Encoding"] == nil, let length = final.bodyLength(answering: method)
        else { return }
        rest = rest.prefix(Int(clamping: length))
        let isTaken = rest.isEmpty || rest.withUnsafeBytes { received($0) == $0.count }
        isAnswered = isTaken && rest.count == length
    }

    /// Provides bytes of the request's body.
    ///
    /// - Returns: The number of bytes written to the buffer; 0 after the last. Any other number makes libcurl abort or
    ///   pause.
    func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        guard !isCancelled else { return Int(CCURL_READFUNC_ABORT) }
        do throws(NetworkError) {
            guard let body else { return 0 }
            guard let count = try body.read(into: buffer) else {
                isSendingPaused = true
                return Int(CCURL_READFUNC_PAUSE)
            }
            moved()
            sentCount += count
            if count > 0 { events?(.sent(sentCount)) }
            return count
        } catch {
            failure = error
            return Int(CCURL_READFUNC_ABORT)
        }
    }

    /// Starts the request's body again.
    ///
    /// - Returns: False if the body cannot be sent again.
    func rewind() -> Bool {
        if head.isComplete, challenge == nil {
            // The message would be sent again after its response; see `connected`.
            isAnswered = true
            return false
        }
        guard body?.rewind() == true else {
            let message = "the proxy requires credentials, but the body can be read only once and was already sent"
            if challenge != nil { failure = NetworkError(code: .cannotSendAgain, message: message) }
            return false
        }
        sentCount = 0
        return true
    }

    private func moved() {
        guard let worker else { return }
        worker.hasMoved = true
        lastMoved = worker.now
    }

    /// Continues the request's body, if libcurl waits for it. Returns the same as ``resumeReceiving()``.
    func resumeSending() -> ccurl_code {
        guard isSendingPaused, !isOver else { return CCURLE_OK }
        isSendingPaused = false
        return goOn()
    }

    /// Continues the response's body after a pause. libcurl notices a pause itself with the next bytes.
    ///
    /// - Returns: An error if the exchange must end, because a callback rejected the bytes that libcurl had kept.
    ///   libcurl then does nothing more.
    func resumeReceiving() -> ccurl_code {
        guard !isOver else { return CCURLE_OK }
        let isPaused = isPaused
        watch?.setPaused(isPaused, now: loop.clock.now)
        guard isReceivingPaused, !isPaused else { return CCURLE_OK }
        isReceivingPaused = false
        return goOn()
    }

    private func goOn() -> ccurl_code {
        // libcurl calls back during this method, and a callback can pause again.
        let held = (isReceivingPaused ? CCURLPAUSE_RECV : 0) | (isSendingPaused ? CCURLPAUSE_SEND : 0)
        guard let handle else { return CCURLE_OK }
        let result = ccurl_easy_pause(handle.easy, held)
        // Without a connection, libcurl has kept no bytes. If the transfer has ended, libcurl is about to report its
        // end.
        return result == CCURLE_BAD_FUNCTION_ARGUMENT ? CCURLE_OK : result
    }

    // MARK: - The end

    /// Delivers the end once, and releases everything.
    func end(_ error: NetworkError?) {
        isOver = true
        let flags = flags.bitwiseOr(Self.over, ordering: .acquiringAndReleasing).oldValue
        guard flags & Self.over == 0 else { return }
        // A cancellation that came first takes precedence, regardless of later events.
        var error = flags & Self.cancelled != 0 ? NetworkError(code: .cancelled) : error
        if error == nil && !head.isComplete {
            // libcurl takes a connection that is closed within the head for the end of a response without a body.
            error = NetworkError(code: .connectionLost, message: "the connection was closed within the response's head")
        }
        if error == nil && !isAnswered && isTLSOpen {
            // Anyone on the path can cut a connection, but only the server can close TLS (RFC 9112, section 9.8).
            error = NetworkError(code: .connectionLost, message: "the connection was cut, and the body has no length")
        }
        if error == nil && !isAnswered { error = decoder?.problem }
        if let code = error?.code, error?.phase == nil {
            let phase = phase(of: code, message: error?.message)
            error?.phase = phase
            // The connection was lost before it was ready.
            if code == .connectionLost, let phase, phase < .send { error?.code = phase == .tls ? .tls : .cannotConnect }
        }
        if isReused != nil, !isRefused, head.byteCount == 0, let code = error?.code,
            code == .cannotConnect || code == .notConnected || code == .tls && hasReconnected
        {
            // libcurl could not connect again to send the message a second time. The server may have acted on the first.
            error = NetworkError(code: .connectionLost, message: error?.message)
            error?.phase = phase(of: .connectionLost, message: nil)
        }
        if isReused == nil, error?.code == .cannotConnect || error?.code == .badServerResponse,
            var refusal = tunnel?.refusal(hasPassword: worker?.hasProxyPassword == true)
        {
            refusal.phase = error?.phase
            error = refusal
        }
        let end = TransportEnd(error: error, trailers: head.trailers, metrics: metrics)
        // The release of a body can run its creator's code.
        let released = request?.body ?? .none
        (request, body, decoder, connection) = (nil, nil, nil, nil)
        if case .none = released {} else { WorkQueue.shared.add { withExtendedLifetime(released) {} } }
        if challenge != nil, flags & Self.cancelled == 0 { deliverChallenge() }
        events?(.end(end))
        events = nil
    }

    private func phase(of code: NetworkError.Code, message: String?) -> TransportPhase? {
        guard begun != nil else { return code == .invalidRequest ? nil : .waiting }
        if head.isComplete { return .body }
        if isReused != nil { return body?.isAtEnd == false ? .send : .firstByte }
        if code == .tls { return .tls }
        guard let handle = informed, handle.seconds(CCURLINFO_NAMELOOKUP_TIME_T) != nil else { return .resolve }
        // The proxy has established a tunnel, and its TLS handshake is in progress.
        if let tunnel, tunnel.statusCode / 100 == 2, !tunnel.isInHead { return .tls }
        // The proxy has refused a tunnel, or has closed the connection, which only the message shows.
        if let tunnel, tunnel.statusCode != 0 { return .connect }
        if message?.contains("CONNECT") == true { return .connect }
        return isSecuring || handle.seconds(CCURLINFO_CONNECT_TIME_T) != nil && target.isHTTPS ? .tls : .connect
    }

    /// The handle, unless libcurl has not begun with this message. Until then, the handle reports on the previous
    /// message.
    private var informed: CurlHandle? {
        begun?.turn == worker?.turn ? nil : handle
    }

    private var metrics: TransportMetrics? {
        guard let begun, let worker else { return nil }
        let (total, wait) = (worker.now - begun.time, begun.time - submitted)
        guard let handle = informed else {
            return TransportMetrics(TransportMetrics.Values(total: total, wait: wait, bytesSent: 0, bytesReceived: 0))
        }
        var bytesSent = 0
        if isReused != nil {
            // libcurl's size of the request is the size of its head. Since 8.8 it includes the body; with 8.7 it is
            // missing.
            let request = handle.long(CCURLINFO_REQUEST_SIZE) - tunnelByteCount
            let body = sentCount > 0 ? handle.offset(CCURLINFO_SIZE_UPLOAD_T) : 0
            bytesSent = CurlLibrary.version >= 0x08_07_00 ? max(request, body) : request + body
        }
        let isNew = isReused != true
        let values = TransportMetrics.Values(
            nameLookup: isNew ? handle.seconds(CCURLINFO_NAMELOOKUP_TIME_T) : nil,
            connect: isNew ? handle.seconds(CCURLINFO_CONNECT_TIME_T) : nil,
            tls: isNew ? handle.seconds(CCURLINFO_APPCONNECT_TIME_T) : nil,
            firstByte: head.byteCount > 0 ? handle.seconds(CCURLINFO_STARTTRANSFER_TIME_T) : nil,
            total: total,
            wait: wait,
            bytesSent: bytesSent,
            // libcurl's size of the head includes a proxy's response to the request for a tunnel.
            bytesReceived: head.byteCount + handle.offset(CCURLINFO_SIZE_DOWNLOAD_T),
            networkProtocol: head.networkProtocol.isEmpty ? nil : head.networkProtocol,
            isReusedConnection: isReused,
            remoteAddress: remoteAddress
        )
        return TransportMetrics(values)
    }
}
#endif
