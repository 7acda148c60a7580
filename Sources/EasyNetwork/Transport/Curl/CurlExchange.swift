#if os(Linux) && canImport(CCurl)
internal import CCurl
import Foundation
import Synchronization

/// An exchange over libcurl: the object of its caller and of the loop.
final class CurlExchange: TransportExchange, @unchecked Sendable {
    // Sendable because any thread may use `flags` and `loop`; everything else is written by `start`, then belongs to
    // the loop's thread, to which `CurlLoop.post` hands it over under a lock.

    // Set before the loop hears of it: no event follows a cancel, or a pause, that was made inside another event.
    private static let started: UInt8 = 1
    private static let cancelled: UInt8 = 2
    private static let paused: UInt8 = 4
    private static let over: UInt8 = 8
    private let flags = Atomic<UInt8>(0)
    private let loop: CurlLoop

    /// Nil before the start and after the end.
    private(set) var request: TransportRequest?
    private(set) var target = CurlTarget.none
    private var events: (@Sendable (TransportEvent) -> Void)?
    private var submitted: TimeInterval = 0

    /// The worker that it belongs to; nil before the worker has seen it and after the end.
    var worker: CurlWorker?
    var index = 0
    /// Whether it counts among those under way and gives its place back at its end.
    var hasPlace = false
    /// Whether libcurl has it.
    var isUnderWay = false
    /// Nil before it begins and after its end.
    var handle: CurlHandle?
    private(set) var isOver = false
    /// An error of a callback. It counts before what libcurl makes of the callback's refusal.
    private(set) var failure: NetworkError?
    /// Whether it was broken off because it had its answer.
    private(set) var isAnswered = false
    /// Whether its kept connection turned out to be useless before a byte went out.
    private var isUnfit = false
    /// Whether the server is known to have rejected the message without processing it.
    private var isRefused = false
    private var refusalCount = 0
    private(set) var needsNewConnection = false
    /// Whether its final answer came over HTTP/2; nil before.
    private(set) var isHTTP2: Bool?
    /// The most streams that the server of that answer takes at a time; nil if it has not said.
    private(set) var streamLimit: Int?
    /// Whether the body ends with the connection and the server has not ended TLS.
    private var isTLSOpen = false
    /// The number of its stream, before libcurl 8.3.
    private var stream: Int?

    var body: CurlBody?
    /// Nil before it begins.
    private var watch: DeadlineWatch?
    private var begun: (time: TimeInterval, turn: Int)?
    /// When bytes last went out or came in.
    private var lastMoved: TimeInterval = 0
    /// The turn in which header lines came last; nil if the next line counts in any turn.
    // The loop's thread is alone with it, and with the head; a check at run time would cost each header line.
    @exclusivity(unchecked) private var linesMovedInTurn: Int?
    /// Whether libcurl holds the answer's body back, and the request's.
    private var isReceivingPaused = false
    private var isSendingPaused = false
    /// Whether a connection is being secured for it.
    var isSecuring = false
    /// Whether its connection had been used before; nil without a connection.
    private var isReused: Bool?
    /// How many connections libcurl has made for it.
    private var connectCount = 0
    private var connection: CurlConnection?
    private var remoteAddress: String?
    /// The bytes, as libcurl counts them, that asked a proxy for a tunnel.
    private var tunnelByteCount = 0
    @exclusivity(unchecked) private var head = CurlHead()
    private(set) var tunnel = CurlTunnel()
    /// The head of a 407 of the proxy, until it shows whether libcurl answers the challenge.
    private var challenge: TransportHead?
    private var challengeCount = 0
    private var chunkSizes = CurlChunkSizes()
    /// Whether bytes have come after those with a malformed chunk.
    private var isChunkRefused = false
    private var decoder: CurlDecoder?
    private var decodedBodyLimit: DecodedBodyLimit?
    /// The bytes of the request's body that libcurl has taken.
    private var sentCount = 0

    init(_ loop: CurlLoop) {
        self.loop = loop
    }

    func start(_ request: TransportRequest, events: @escaping @Sendable (TransportEvent) -> Void) {
        self.request = request
        self.events = events
        submitted = loop.clock.now
        flags.bitwiseOr(Self.started, ordering: .acquiringAndReleasing)
        guard !loop.post(self, isStart: true), markOver() & Self.over == 0 else { return }
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

    /// The request's body has bytes again.
    func bodyHasBytes() {
        loop.post(self)
    }

    private func markOver() -> UInt8 { flags.bitwiseOr(Self.over, ordering: .acquiringAndReleasing).oldValue }

    /// Tells the loop of a change, unless there is none or the exchange is not under way.
    private func announce(_ old: UInt8, unless flag: UInt8) {
        if old & (Self.started | Self.over | flag) == Self.started { loop.post(self) }
    }

    // MARK: - Beginning

    /// Reads the address, on the loop's thread to keep `start` short.
    ///
    /// - Parameter last: The target of the exchange before, which is often the same.
    func readTarget(_ last: CurlTarget) {
        guard let address = request?.url.absoluteString else { return }
        target = last.address == address ? last : CurlTarget(address: address)
    }

    /// Begins the head, and the deadlines unless it begins for a second time.
    func begin(now: TimeInterval) {
        begun = (begun?.time ?? now, worker?.turn ?? 0)
        if let worker { head = CurlHead(like: worker.knownFields) }
        if watch == nil, let request { watch = DeadlineWatch(request.deadlines, now: now) }
    }

    /// - Returns: seconds until the next deadline; infinity without one.
    /// - Throws: ``NetworkError/Code/timedOut`` if one has passed.
    func timeLeft(now: TimeInterval) throws(NetworkError) -> TimeInterval {
        watch?.activity(now: lastMoved)
        // The loop may not have heard of the pause: the silence does not count from now on.
        if isPaused { watch?.setPaused(true, now: now) }
        return try watch?.timeLeft(now: now) ?? .infinity
    }

    /// Whether it ends without having been processed, and begins again.
    var isToStartOver: Bool { failure == nil && (isUnfit || isRefused) }

    /// Returns to the state before the beginning.
    ///
    /// - Returns: why it cannot begin again.
    func startOver() -> NetworkError? {
        if isRefused { refusalCount += 1 }
        // Many may be refused at once, as by the end of their connection, and share the next one. If a server takes
        // fewer streams than they are, only the first on a connection is certain of its place.
        needsNewConnection = !isRefused || refusalCount > 1
        (isUnfit, isRefused) = (false, false)
        (connectCount, connection, isReused, isSecuring, isSendingPaused) = (0, nil, nil, false, false)
        tunnel = CurlTunnel()
        let isRepeatable = body?.rewind() != false
        guard isRepeatable, refusalCount <= Self.refusalLimit else {
            let reason = isRepeatable ? "\(refusalCount) times" : "and the body cannot be sent again"
            let message = "the server rejected the request unread, \(reason)"
            var error = NetworkError(code: .connectionLost, message: message)
            // To have been sent and rejected is the same as not to have been sent.
            error.phase = .connect
            return error
        }
        sentCount = 0
        return nil
    }

    /// How many times a message that was refused goes out again.
    private static let refusalLimit = 5

    // MARK: - Reports of libcurl

    /// - Returns: false if the message is not to go out.
    func connected(remote: String, _ remotePort: Int32, local: String, _ localPort: Int32) -> Bool {
        if challenge != nil {
            guard forgetChallenge() else { return false }
        } else if isConnected {
            // After a 417, libcurl removes the expectation and would send the message again over a connection on which
            // the server still waits for the first body. The answer stands.
            guard !head.isComplete else {
                isAnswered = true
                return false
            }
            if isRefused { return false }
            // The connection was closed before a byte of the answer, and the server may have acted: whether to send
            // again is not for libcurl to say. On a connection that served nothing else, libcurl only sends again what
            // the server refused unread (RFC 9113, sections 8.7 and 13.3); on others it does not tell the difference.
            guard isReused == false, let connection, !connection.isReused else {
                readRest()
                if !isAnswered {
                    failure = failure ?? NetworkError(code: .connectionLost, message: "the kept connection was closed")
                }
                return false
            }
            // Before 8.17 libcurl counts this over all messages of a handle and gives up at the fifth, unless reset.
            handle?.needsReset = true
        }
        if !isConnected || challengeCount > 0 {
            // Older libcurls, such as 7.88, add the request for a tunnel to that for the server.
            tunnelByteCount = handle?.long(CCURLINFO_REQUEST_SIZE) ?? 0
        }
        let oldCount = connectCount
        connectCount = handle?.long(CCURLINFO_NUM_CONNECTS) ?? 0
        let isReused = connectCount == oldCount
        connection = worker?.connections.connection(remote: remote, remotePort, local: local, localPort)
        if isReused, let connection {
            connection.isReused = true
            let isFit = connection.isFit { target.isHTTPS && handle.map { ccurl_tls_has_pending($0.easy) } == true }
            guard isFit else {
                isUnfit = true
                return false
            }
        }
        connection?.isSendingBody = body != nil && !target.isHTTPS
        if target.isHTTPS, connection?.isHTTP2 != false { requestReports() }
        stream = nil
        self.isReused = isReused
        remoteAddress = connection?.remoteAddress ?? CurlConnections.address(remote, remotePort)
        watch?.connected()
        return true
    }

    /// Prepares for the response to the message that libcurl sends with its answer to the proxy's challenge.
    ///
    /// - Returns: false if the message is not to go out again.
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
        if let worker { head = CurlHead(like: worker.knownFields) }
        (decoder, decodedBodyLimit, chunkSizes, isSendingPaused) = (nil, nil, CurlChunkSizes(), false)
        // The deadline for the response counts on.
        if let request, let begun { watch = DeadlineWatch(request.deadlines, now: begun.time) }
        return true
    }

    private func deliverChallenge() {
        guard let head = challenge.take() else { return }
        // If it was answered with Basic unasked, the next message asks again.
        worker?.isBasicWanted = false
        deliver(.head(head))
    }

    /// Whether the message has a connection to go out on.
    var isConnected: Bool { isReused != nil }

    /// - Returns: false if the transfer is to be broken off.
    func received(headerLine line: UnsafeRawBufferPointer) -> Bool {
        // Many lines come at a time; to read the clock for each would be a good part of the work.
        if linesMovedInTurn != worker?.turn {
            linesMovedInTurn = worker?.turn
            moved()
        }
        guard isConnected || !target.isHTTPS else { return received(tunnelLine: line) }
        if head.isEmpty {
            watch?.answered()
            // A server that answers has processed the message, whatever it has said before.
            isRefused = false
            // What counts comes before, and each report costs.
            handle?.stopReports()
            connection?.isSendingBody = false
        }
        do throws(NetworkError) {
            guard let head = try head.add(line) else { return true }
            guard !isCancelled else { return false }
            worker?.knownFields = self.head.known
            isHTTP2 = self.head.networkProtocol.hasPrefix("HTTP/2")
            connection?.isHTTP2 = isHTTP2
            streamLimit = connection?.streamLimit
            let limit = worker?.configuration.maximumDecodedBodyCount
            decoder = head.hasContentCoding ? try CurlDecoder(head, limit: limit) : nil
            let codings = head.headers.values(for: "Transfer-Encoding")
            let isChunked = codings.contains { $0.lowercased().contains("chunked") }
            if isHTTP2 == false, isChunked { requestReports() }
            if isHTTP2 == false, !isChunked, target.isHTTPS, Self.missesTruncation, hasNoLength(head) { watchTLS() }
            // Without a decoder, a body with a content coding is passed on as is and has no limit.
            if decoder != nil || !codings.isEmpty && head.hasTransferCoding {
                decodedBodyLimit = limit.map(DecodedBodyLimit.init)
            }
            if isHTTP2 == true { worker?.answeredOverHTTP2.append(self) }
            if isSendingPaused { worker?.answeredEarly.append(self) }
            if head.statusCode == 407, target.isHTTP, worker?.hasProxyPassword == true {
                challenge = head
            } else {
                deliver(.head(head))
            }
            return true
        } catch {
            failure = error
            return false
        }
    }

    private func received(tunnelLine line: UnsafeRawBufferPointer) -> Bool {
        if tunnel.add(line) { return true }
        let tooLong = NetworkError(code: .badServerResponse, message: "the header fields of the proxy are too long")
        failure = tunnel.challengeCount > CurlTunnel.challengeLimit ? tunnel.refusal(hasPassword: true) : tooLong
        return false
    }

    /// Whether libcurl takes a connection with TLS that is cut for one that the server has ended. From 8.14.1 on it is
    /// an error of OpenSSL 3.
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

    /// Notes what the server says of this exchange before it answers.
    func received(report text: UnsafeRawBufferPointer) {
        guard head.isEmpty, let report = CurlReport(text) else { return }
        switch report {
        case .refused: isRefused = true
        case .streamLimit(let limit): connection?.streamLimit = limit
        case .stream(let number): stream = number
        case .lastStream(let last): if let stream, stream > last { isRefused = true }
        }
    }

    /// Checks the bytes of a chunked body, which come here before those that libcurl makes of them.
    func received(raw bytes: UnsafeRawBufferPointer) {
        // libcurl has decoded the bytes before these: what came before the bad chunk has been delivered.
        isChunkRefused = isChunkRefused || failure != nil
        guard failure == nil, !chunkSizes.accept(bytes) else { return }
        failure = NetworkError(code: .badServerResponse, message: "a chunk has no valid size")
        // For libcurl, the body may end well here.
        if let handle { _ = ccurl_set_long(handle.easy, CCURLOPT_FORBID_REUSE, 1) }
    }

    /// - Returns: how many bytes were taken, which is all; another number for libcurl to break off or to pause.
    func received(_ bytes: UnsafeRawBufferPointer) -> Int {
        moved()
        // Any number but the count breaks it off, so that nothing is called without bytes.
        guard !isCancelled, !bytes.isEmpty, !isChunkRefused else { return 0 }
        deliverChallenge()
        isReceivingPaused = isPaused
        guard !isReceivingPaused else { return Int(CCURL_WRITEFUNC_PAUSE) }
        do throws(NetworkError) {
            guard head.isComplete else {
                throw NetworkError(code: .badServerResponse, message: "the body comes before its head")
            }
            guard let decoder else {
                let piece = Data(bytes)
                try decodedBodyLimit?.take(piece.count)
                deliver(.body(piece))
                return bytes.count
            }
            var position = decoder.resume(bytes.count)
            while let piece = try decoder.piece(of: bytes, from: &position) {
                try decodedBodyLimit?.take(piece.count)
                deliver(.body(piece))
                guard !isCancelled else { return 0 }
                // A few bytes may become very many.
                if isPaused {
                    decoder.pause(at: position)
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
    /// Without all of it, the exchange still ends with the failure.
    func readRest() {
        guard head.isEmpty, let method = request?.method, var rest = connection?.unread[...],
            rest.starts(with: "HTTP/1".utf8)
        else { return }
        var (parsed, final) = (CurlHead(), TransportHead?.none)
        while final == nil, let end = rest.firstIndex(of: 0x0A) {
            let line = rest[...end]
            rest = rest[(end + 1)...]
            final = line.withUnsafeBytes { try? parsed.add($0) }
            guard line.withUnsafeBytes(received(headerLine:)) else { return }
        }
        // Where a body in chunks, or with a coding, ends is not known here.
        guard let final, final.headers["Transfer-Encoding"] == nil, let length = final.bodyLength(answering: method)
        else { return }
        rest = rest.prefix(Int(clamping: length))
        let isTaken = rest.isEmpty || rest.withUnsafeBytes { received($0) == $0.count }
        isAnswered = isTaken && rest.count == length
    }

    /// - Returns: how many bytes were put into the buffer, 0 after the last; another number for libcurl to break off or
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
            if count > 0 { deliver(.sent(sentCount)) }
            return count
        } catch {
            failure = error
            return Int(CCURL_READFUNC_ABORT)
        }
    }

    /// - Returns: false if the body cannot be sent again.
    func rewind() -> Bool {
        if head.isComplete, challenge == nil {
            // The message would go out again after its answer; see `connected`.
            isAnswered = true
            return false
        }
        guard body?.rewind() == true else {
            let message = "the proxy asked for the password when the body, which can be read only once, had gone out"
            if challenge != nil { failure = NetworkError(code: .cannotSendAgain, message: message) }
            return false
        }
        sentCount = 0
        return true
    }

    private func moved() {
        worker?.hasMoved = true
        lastMoved = loop.clock.now
    }

    /// Goes on with the request's body, if libcurl waits for it. Returns the same as ``resumeReceiving()``.
    func resumeSending() -> ccurl_code {
        guard isSendingPaused, !isOver else { return CCURLE_OK }
        isSendingPaused = false
        return goOn()
    }

    /// Goes on with the answer's body after a pause. A pause itself is noticed with the next bytes.
    ///
    /// - Returns: an error if the exchange is to end: a callback refused what libcurl had kept, and libcurl does no
    ///   more.
    func resumeReceiving() -> ccurl_code {
        guard !isOver else { return CCURLE_OK }
        let isPaused = isPaused
        watch?.setPaused(isPaused, now: loop.clock.now)
        guard isReceivingPaused, !isPaused else { return CCURLE_OK }
        isReceivingPaused = false
        return goOn()
    }

    private func goOn() -> ccurl_code {
        // libcurl calls back from in here, which may pause again.
        let held = (isReceivingPaused ? CCURLPAUSE_RECV : 0) | (isSendingPaused ? CCURLPAUSE_SEND : 0)
        guard let handle else { return CCURLE_OK }
        // Header lines that come from in here come in no turn.
        linesMovedInTurn = nil
        let result = ccurl_easy_pause(handle.easy, held)
        // Without a connection nothing is kept; if the transfer has ended, libcurl is about to say so.
        return result == CCURLE_BAD_FUNCTION_ARGUMENT ? CCURLE_OK : result
    }

    // MARK: - The end

    /// Delivers the end, once, and releases everything.
    func end(_ error: NetworkError?) {
        isOver = true
        let flags = markOver()
        guard flags & Self.over == 0 else { return }
        // A cancel that came first counts, whatever has happened since.
        var error = flags & Self.cancelled != 0 ? NetworkError(code: .cancelled) : error
        if error == nil && !head.isComplete {
            // libcurl takes a connection that is closed within the head for the end of an answer without body.
            error = NetworkError(code: .connectionLost, message: "closed within the head of the answer")
        }
        if error == nil && !isAnswered && isTLSOpen {
            // RFC 9112, section 9.8: anybody on the way can cut a connection; only the server can end TLS.
            error = NetworkError(code: .connectionLost, message: "the connection was cut, and the body has no length")
        }
        if error == nil && !isAnswered { error = decoder?.problem }
        if let code = error?.code, error?.phase == nil {
            let phase = phase(of: code, message: error?.message)
            error?.phase = phase
            // The connection was lost before it was ready.
            if code == .connectionLost, let phase, phase < .send { error?.code = phase == .tls ? .tls : .cannotConnect }
        }
        if !isConnected, error?.code == .cannotConnect || error?.code == .badServerResponse,
            var refusal = tunnel.refusal(hasPassword: worker?.hasProxyPassword == true)
        {
            refusal.phase = error?.phase
            error = refusal
        }
        let end = TransportEnd(error: error, trailers: head.trailers, metrics: metrics)
        // The release of a body may run code of its maker.
        let released = request?.body ?? .none
        (request, body, decoder, connection) = (nil, nil, nil, nil)
        if case .none = released {} else { WorkQueue.shared.add { withExtendedLifetime(released) {} } }
        if flags & Self.cancelled == 0 { deliverChallenge() }
        deliver(.end(end))
        events = nil
    }

    /// The one place where events leave the loop.
    private func deliver(_ event: TransportEvent) {
        events?(event)
    }

    private func phase(of code: NetworkError.Code, message: String?) -> TransportPhase? {
        guard begun != nil else { return code == .invalidRequest ? nil : .waiting }
        if head.isComplete { return .body }
        if isConnected { return body?.isAtEnd == false ? .send : .firstByte }
        if code == .tls { return .tls }
        guard let handle = informed, handle.seconds(CCURLINFO_NAMELOOKUP_TIME_T) != nil else { return .resolve }
        // The proxy has made a tunnel, which is being secured.
        if tunnel.statusCode / 100 == 2, !tunnel.isInHead { return .tls }
        // The proxy has refused a tunnel; or it hung up, which only the text tells.
        if tunnel.statusCode != 0 || message?.contains("CONNECT") == true { return .connect }
        return isSecuring || handle.seconds(CCURLINFO_CONNECT_TIME_T) != nil && target.isHTTPS ? .tls : .connect
    }

    /// The handle, unless libcurl has not begun with this message: until then it reports on the one before.
    private var informed: CurlHandle? {
        begun?.turn == worker?.turn ? nil : handle
    }

    private var metrics: TransportMetrics? {
        guard let begun = begun?.time else { return nil }
        var metrics = TransportMetrics(total: loop.clock.now - begun)
        metrics.wait = begun - submitted
        (metrics.bytesSent, metrics.bytesReceived) = (0, 0)
        guard let handle = informed else { return metrics }
        if isReused != true {
            metrics.nameLookup = handle.seconds(CCURLINFO_NAMELOOKUP_TIME_T)
            metrics.connect = handle.seconds(CCURLINFO_CONNECT_TIME_T)
            metrics.tls = handle.seconds(CCURLINFO_APPCONNECT_TIME_T)
        }
        if !head.isEmpty { metrics.firstByte = handle.seconds(CCURLINFO_STARTTRANSFER_TIME_T) }
        if isConnected {
            // libcurl's size of the request is that of its head; since 8.8 that of all of it; with 8.7 none.
            let request = handle.long(CCURLINFO_REQUEST_SIZE) - tunnelByteCount
            let body = handle.offset(CCURLINFO_SIZE_UPLOAD_T)
            metrics.bytesSent = CurlLibrary.version >= 0x08_07_00 ? max(request, body) : request + body
        }
        // libcurl's size of the head includes a proxy's answer to the request for a tunnel.
        metrics.bytesReceived = head.byteCount + handle.offset(CCURLINFO_SIZE_DOWNLOAD_T)
        if !head.networkProtocol.isEmpty { metrics.networkProtocol = head.networkProtocol }
        metrics.isReusedConnection = isReused
        metrics.remoteAddress = remoteAddress
        return metrics
    }
}
#endif
