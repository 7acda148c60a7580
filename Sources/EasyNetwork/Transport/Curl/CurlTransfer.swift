#if os(Linux) && canImport(CCurl)
internal import CCurl
import Foundation

/// What callbacks have to tell the loop, which is inside libcurl while they run.
final class CurlNews {
    /// Whose head has come in HTTP/2.
    var http2: [CurlTransfer] = []
    /// Whose head has come while libcurl waits for more of the request: the server may want no more of it.
    var early: [CurlTransfer] = []
    /// Whether anything was sent or has come.
    var hasMoved = false
    /// How often libcurl was asked to go on with what is under way.
    var turn = 0
    let connections = CurlConnections()
}

/// One exchange as its loop sees it; made and used on the loop's thread only.
final class CurlTransfer {
    /// What a callback of libcurl's is told.
    enum Reply {
        /// That all bytes were taken.
        case taken
        /// To come again with them when it is told to.
        case pause
        /// To break the transfer off.
        case breakOff
    }

    let target: CurlTarget
    let exchange: CurlExchange
    private let sharedOptions: Shared<CurlOptions>
    private let news: CurlNews
    /// Empty after the end.
    private(set) var request: TransportRequest

    /// Whether it counts among those under way, and gives its place back at its end.
    var hasPlace = false
    /// Nil while it waits for its turn, and after its end.
    var handle: CurlHandle?
    var body: (any CurlBody)?
    /// When the loop looks at its deadlines.
    var nextLook = TimeInterval.infinity
    /// Nil while it waits for its turn.
    private var watch: DeadlineWatch?
    /// When bytes last went out or came in.
    private var lastMoved = -TimeInterval.infinity
    /// The turn in which lines of a head came last; nil when the next line is to count anyhow.
    private var linesMovedInTurn: Int?
    /// What one of the callbacks made of it; counts before what libcurl makes of the callback's refusal.
    private(set) var failure: NetworkError?
    /// Whether it has been broken off because it had its answer.
    private(set) var isAnswered = false
    /// Whether it has been broken off before a byte of it went out, as the kept connection that it was given is of no more
    /// use; then it begins again, on a new one.
    private(set) var isToStartOver = false
    private(set) var needsNewConnection = false
    private(set) var isOver = false
    /// Whether libcurl holds the body of the answer back, and that of the request.
    private var isReceivingPaused = false
    private var isSendingPaused = false

    private let clock: any NetworkClock
    private let submitted: TimeInterval
    private var begun: (time: TimeInterval, turn: Int)?
    /// Whether a connection is being made secure for it.
    private var isSecuring = false
    /// Whether its connection had been used before; nil while none is ready.
    private var isReused: Bool?
    /// How many connections libcurl has made for it.
    private var connectCount = 0
    private var connection: CurlConnection?
    private var remoteAddress: String?
    /// How many bytes of what libcurl counts went to a proxy, to ask for a tunnel.
    private var tunnelByteCount = 0
    private var head = CurlHead()
    private var decodedBody = DecodedBodyLimit()
    private var decoder: CurlDecoder?
    /// How many bytes of the body libcurl has taken.
    private var sentCount = 0
    private var events: (@Sendable (TransportEvent) -> Void)?

    init(_ start: CurlStart, options: Shared<CurlOptions>, news: CurlNews, clock: any NetworkClock) {
        self.news = news
        exchange = start.exchange
        request = start.request
        events = start.events
        sharedOptions = options
        self.clock = clock
        submitted = start.time
        target = CurlTarget(start.request.url)
    }

    var options: CurlOptions { sharedOptions.value }
    var connections: CurlConnections { news.connections }

    /// Its deadlines begin, unless it begins for a second time.
    func begin(now: TimeInterval) {
        begun = (begun?.time ?? now, news.turn)
        if watch == nil { watch = DeadlineWatch(request.deadlines, now: now) }
    }

    /// What its deadlines have come to.
    func verdict(now: TimeInterval) -> DeadlineWatch.Verdict {
        watch?.activity(now: lastMoved)
        // The loop may not have heard of it: the silence counts no more from the moment that it was asked for.
        if exchange.isPaused { watch?.setPaused(true, now: now) }
        return watch?.verdict(now: now) ?? .never
    }

    /// Whether the final head has come, and the answer is spoken in HTTP/2.
    var isHTTP2: Bool? {
        head.isComplete ? head.networkProtocol.hasPrefix("HTTP/2") : nil
    }

    // MARK: - What libcurl tells

    func securing() {
        isSecuring = true
    }

    /// - Returns: false when the message is not to go out.
    func connected(_ ends: CurlConnections.Ends) -> Bool {
        if isConnected {
            // Of a message that expected 100 and was answered 417, libcurl takes back the expectation, and would send it
            // again over a connection on which the server still waits for the first one's body. The answer stands.
            guard !head.isComplete else {
                isAnswered = true
                return false
            }
            // The connection was closed before a byte of the answer; the server may have acted, and whether it is sent again
            // is not for libcurl to say. On a connection that nobody else has used, libcurl does so only with what the
            // server has refused unread (RFC 9113, sections 8.7 and 13.3); on others it does not tell that apart.
            guard isReused == false, let connection, !connection.isReused else {
                failure = NetworkError(code: .connectionLost, message: "the kept connection was closed")
                return false
            }
            // Before libcurl 8.17 that counts over all messages of a handle, and the fifth is the last; a reset counts anew.
            handle?.needsReset = true
        } else {
            // Older libcurls, 7.88 for one, count the request for a tunnel with that for the server.
            tunnelByteCount = handle?.long(CCURLINFO_REQUEST_SIZE) ?? 0
        }
        let count = handle?.long(CCURLINFO_NUM_CONNECTS) ?? 0
        let isReused = count == connectCount
        connectCount = count
        connection = news.connections.connection(ends)
        if isReused, let connection {
            connection.isReused = true
            guard connection.isFit(hasPending: { hasPendingTLS }) else {
                isToStartOver = true
                return false
            }
        }
        self.isReused = isReused
        remoteAddress =
            ends.remote.utf8.contains(UInt8(ascii: ":"))
            ? "[\(ends.remote)]:\(ends.remotePort)" : "\(ends.remote):\(ends.remotePort)"
        watch?.connected()
        return true
    }

    private var hasPendingTLS: Bool {
        guard target.isHTTPS, let handle else { return false }
        return ccurl_tls_has_pending(handle.easy)
    }

    /// Makes it as it was before it began.
    ///
    /// - Returns: why it cannot begin again.
    func startOver() -> NetworkError? {
        handle = nil
        (isToStartOver, needsNewConnection) = (false, true)
        (connectCount, connection, isReused, isSecuring) = (0, nil, nil, false)
        // Of one that was refused before, some may have been read.
        guard sentCount == 0 || request.body.isReplayable else {
            return NetworkError(code: .connectionLost, message: "the body cannot be sent again")
        }
        sentCount = 0
        return nil
    }

    /// Whether the message has a connection to go out on.
    var isConnected: Bool { isReused != nil }

    /// - Returns: false when the transfer is to be broken off.
    func received(headerLine line: UnsafeRawBufferPointer) -> Bool {
        // Lines come many at a time, and to look at the clock for each would be a good part of the work.
        if linesMovedInTurn != news.turn {
            linesMovedInTurn = news.turn
            moved()
        }
        if head.isEmpty { watch?.answered() }
        do throws(NetworkError) {
            guard let head = try head.add(line) else { return true }
            guard !exchange.isCancelled else { return false }
            connection?.isHTTP2 = isHTTP2
            setDecoder(head)
            if isHTTP2 == true { news.http2.append(self) }
            if isSendingPaused { news.early.append(self) }
            events?(.head(head))
            return true
        } catch {
            failure = error
            return false
        }
    }

    func received(_ bytes: UnsafeRawBufferPointer) -> Reply {
        moved()
        guard !exchange.isCancelled else { return .breakOff }
        guard !exchange.isPaused else {
            isReceivingPaused = true
            return .pause
        }
        do throws(NetworkError) {
            guard let decoder else {
                try take(Data(bytes))
                return .taken
            }
            var position = decoder.resume(bytes.count)
            while let piece = try decoder.piece(of: bytes, from: &position) {
                try take(piece)
                guard !exchange.isCancelled else { return .breakOff }
                // A few bytes may become very many.
                if exchange.isPaused {
                    decoder.pause(at: position)
                    isReceivingPaused = true
                    return .pause
                }
            }
            return .taken
        } catch {
            failure = error
            return .breakOff
        }
    }

    private func take(_ data: Data) throws(NetworkError) {
        if let error = decodedBody.take(data.count) { throw error }
        if !data.isEmpty { events?(.body(data)) }
    }

    private func setDecoder(_ head: TransportHead) {
        decoder = CurlDecoder(head)
        var headers = head.headers
        // One that is handed over as it came has no limit.
        if decoder == nil, headers["Content-Encoding"] != nil { headers["Content-Encoding"] = nil }
        decodedBody = DecodedBodyLimit(options.maximumDecodedBodyCount, headers: headers)
    }

    /// - Returns: how many bytes were put into the buffer; nil when the transfer is to be broken off, or to wait.
    func read(into buffer: UnsafeMutableRawBufferPointer) -> (count: Int, reply: Reply) {
        guard !exchange.isCancelled else { return (0, .breakOff) }
        do throws(NetworkError) {
            guard let body else { return (0, .taken) }
            guard let count = try body.read(into: buffer) else {
                isSendingPaused = true
                return (0, .pause)
            }
            moved()
            sentCount += count
            if count > 0 { events?(.sent(sentCount)) }
            return (count, .taken)
        } catch {
            failure = error
            return (0, .breakOff)
        }
    }

    /// - Returns: false when the body cannot be sent anew.
    func rewind() -> Bool {
        if head.isComplete {
            // For a second time after its answer, see ``connected(to:port:)``.
            isAnswered = true
            return false
        }
        sentCount = 0
        return body?.rewind() ?? false
    }

    private func moved() {
        news.hasMoved = true
        lastMoved = clock.now
    }

    // MARK: - Going on

    /// The body of the request has bytes again.
    ///
    /// - Returns: as ``resumeReceiving()``.
    func resumeSending() -> ccurl_code {
        guard isSendingPaused, !isOver else { return CCURLE_OK }
        isSendingPaused = false
        return goOn()
    }

    /// The exchange was paused or resumed. One that is paused finds out with the next bytes.
    ///
    /// - Returns: why it is to be ended, if it is: what libcurl had kept meanwhile was not taken, and libcurl leaves it at
    ///   that.
    func resumeReceiving() -> ccurl_code {
        guard !isOver else { return CCURLE_OK }
        let isPaused = exchange.isPaused
        watch?.setPaused(isPaused, now: clock.now)
        guard isReceivingPaused, !isPaused else { return CCURLE_OK }
        isReceivingPaused = false
        return goOn()
    }

    private func goOn() -> ccurl_code {
        // It calls back from in here, and may be paused again by that.
        let held = (isReceivingPaused ? CCURLPAUSE_RECV : 0) | (isSendingPaused ? CCURLPAUSE_SEND : 0)
        guard let handle else { return CCURLE_OK }
        // libcurl may tell of lines from in here, which is in no turn.
        linesMovedInTurn = nil
        let result = ccurl_easy_pause(handle.easy, held)
        // One that has no connection, or none any more, keeps nothing; if it has ended, libcurl is about to tell.
        return result == CCURLE_BAD_FUNCTION_ARGUMENT ? CCURLE_OK : result
    }

    // MARK: - The end

    /// Tells of the end, once.
    func end(_ error: NetworkError?) {
        guard !isOver else { return }
        isOver = true
        // A cancel that came first counts, whatever happened since.
        var error = exchange.end() ? NetworkError(code: .cancelled) : error
        if error == nil && !head.isComplete {
            // libcurl takes a connection that is closed within the head for the end of an answer without body.
            error = NetworkError(code: .connectionLost, message: "closed within the head of the answer")
        }
        if error == nil && !isAnswered { error = decoder?.problem }
        if let code = error?.code {
            let phase = phase(of: code, message: error?.message)
            error?.phase = phase
            // A connection that broke before there was one.
            if code == .connectionLost, let phase, phase < .send { error?.code = phase == .tls ? .tls : .cannotConnect }
        }
        let end = TransportEnd(error: error, trailers: head.trailers, metrics: metrics)
        body = nil
        // One that ends while it waits is passed over only when its turn comes. Letting go of a body may run the code of
        // whoever made it.
        request.headers = HTTPHeaders()
        let released = request.body
        request.body = .none
        if case .none = released {} else { WorkQueue.shared.async { withExtendedLifetime(released) {} } }
        events.take()?(.end(end))
    }

    private func phase(of code: NetworkError.Code, message: String?) -> TransportPhase? {
        guard begun != nil else { return code == .invalidRequest ? nil : .waiting }
        if head.isComplete { return .body }
        if isConnected { return body?.isAtEnd == false ? .send : .firstByte }
        if code == .tls { return .tls }
        guard let handle = informed, handle.seconds(CCURLINFO_NAMELOOKUP_TIME_T) != nil else { return .resolve }
        let tunnel = handle.long(CCURLINFO_HTTP_CONNECTCODE)
        // A proxy that has made a tunnel, which is being made secure.
        if tunnel / 100 == 2, target.isHTTPS { return .tls }
        // One that has answered, and made none; or hung up, of which the text alone tells.
        if tunnel != 0 || message?.contains("CONNECT") == true { return .connect }
        if isSecuring { return .tls }
        return handle.seconds(CCURLINFO_CONNECT_TIME_T) != nil && target.isHTTPS ? .tls : .connect
    }

    /// The handle, unless libcurl has not begun with this message: until then it tells of the one before.
    private var informed: CurlHandle? {
        begun?.turn == news.turn ? nil : handle
    }

    private var metrics: TransportMetrics? {
        guard let begun = begun?.time else { return nil }
        let total = clock.now - begun
        let wait = begun - submitted
        guard let handle = informed else {
            return TransportMetrics(total: total, wait: wait, bytesSent: 0, bytesReceived: 0)
        }
        func unlessReused(_ info: ccurl_info) -> TimeInterval? { isReused == true ? nil : handle.seconds(info) }
        return TransportMetrics(
            nameLookup: unlessReused(CCURLINFO_NAMELOOKUP_TIME_T),
            connect: unlessReused(CCURLINFO_CONNECT_TIME_T),
            tls: unlessReused(CCURLINFO_APPCONNECT_TIME_T),
            firstByte: head.isEmpty ? nil : handle.seconds(CCURLINFO_STARTTRANSFER_TIME_T),
            total: total,
            wait: wait,
            bytesSent: isConnected ? bytesSent(handle) : 0,
            // libcurl's size of the head is also that of the proxy's answer to a request for a tunnel.
            bytesReceived: head.byteCount + handle.offset(CCURLINFO_SIZE_DOWNLOAD_T),
            networkProtocol: head.networkProtocol.isEmpty ? nil : head.networkProtocol,
            isReusedConnection: isReused,
            remoteAddress: remoteAddress
        )
    }

    /// libcurl's size of the request is that of its head; that of all of it since 8.8; and none with 8.7.
    private func bytesSent(_ handle: CurlHandle) -> Int {
        let request = handle.long(CCURLINFO_REQUEST_SIZE) - tunnelByteCount
        let body = handle.offset(CCURLINFO_SIZE_UPLOAD_T)
        return CurlLibrary.version >= 0x08_07_00 ? max(request, body) : request + body
    }
}
#endif
