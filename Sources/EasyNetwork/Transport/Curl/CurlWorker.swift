#if os(Linux) && canImport(CCurl)
internal import CCurl
import Foundation

/// The work of a loop's thread. The thread that starts the loop's thread creates it. After that, it is used only on the
/// loop's thread.
final class CurlWorker {
    let clock: any NetworkClock
    let configuration: TransportConfiguration
    /// The configuration's proxy, see ``ProxyConfiguration/curlProxy``.
    let proxy: Result<String?, NetworkError>
    /// Whether the environment has a proxy, when the loop begins.
    let hasSystemProxy = !ProxyConfiguration.systemProxies.isEmpty
    /// Whether libcurl has credentials that a proxy can require.
    let hasProxyPassword: Bool
    /// Whether the proxy of http URLs has required Basic, so that later messages need not wait for a challenge.
    var isBasicWanted = false
    let connections = CurlConnections()
    /// Whether a handle can serve several messages. Before libcurl 8.1, a handle keeps a pointer to the last header
    /// field of a response, which is freed with the next message. A response whose first field line is folded, which
    /// any server can send, then writes to freed memory.
    private let canReuseHandles = CurlLibrary.version >= 0x08_01_00
    /// The header list that was created last, because most messages have the same fields as the previous one.
    var headerList: CurlHeaderList?
    /// The head of the last response, because most responses repeat most lines of the previous one.
    var lastHead: CurlHead.Parsed?

    // The reports of callbacks while the loop is inside libcurl.

    /// Exchanges whose head has arrived over HTTP/2.
    var answeredOverHTTP2: [CurlExchange] = []
    /// Exchanges whose head arrived while libcurl waits for more of the request. The server might not read the rest.
    var answeredEarly: [CurlExchange] = []
    /// Whether anything was sent or received since the last wait.
    var hasMoved = false
    /// The number of times that libcurl was asked to continue.
    private(set) var turn = 0
    /// The time, read once before and once after libcurl continues.
    private(set) var now: TimeInterval = 0

    /// The TLS sessions of all connections, so that a later connection to a host needs no full handshake. A handle of
    /// its own would lose them with its message.
    let tlsSessions = ccurl_session_share_init()

    private let loop: CurlLoop
    private let multi: UnsafeMutableRawPointer
    // Only the loop's thread uses these properties, and nothing that changes one of them calls the worker. Exclusivity
    // checks would cost time for each exchange.

    /// All exchanges that have not ended, including waiting ones. Each stores its index.
    @exclusivity(unchecked) private var exchanges: [CurlExchange] = []
    private var underWayCount = 0
    private var lastTarget: CurlTarget
    @exclusivity(unchecked) private var admission: ConnectionAdmission<CurlExchange>
    /// Exchanges that the loop has just passed on.
    private var arrived: [CurlExchange] = []
    /// Exchanges that have a place and must begin.
    @exclusivity(unchecked) private var admitted: [CurlExchange] = []
    @exclusivity(unchecked) private var idleHandles: [CurlHandle] = []
    @exclusivity(unchecked) private var deadlines: CurlDeadlines

    /// The maximum number of idle handles. Each takes about 20 KB.
    private static let idleHandleLimit = 64

    init(_ loop: CurlLoop, multi: UnsafeMutableRawPointer) {
        self.loop = loop
        self.multi = multi
        clock = loop.clock
        configuration = loop.configuration
        lastTarget = loop.noTarget
        proxy = configuration.proxy.curlProxy
        hasProxyPassword = configuration.proxy.hasPassword
        admission = ConnectionAdmission(
            perOrigin: configuration.maximumConnectionsPerHost,
            total: configuration.maximumConnections
        )
        deadlines = CurlDeadlines(loop)
        // By default libcurl keeps four connections for each exchange in progress and closes the others.
        _ = ccurl_multi_set_long(multi, CCURLMOPT_MAXCONNECTS, max(configuration.maximumConnections, 1))
        if !CurlLoop.multiplexes { _ = ccurl_multi_set_long(multi, CCURLMOPT_PIPELINING, CCURLPIPE_NOTHING) }
    }

    func run() {
        while !CurlLibrary.use(takeTurn) {
            if let failure = wait() { return CurlLibrary.use { finish(failure) } }
        }
    }

    /// Does everything that can be done without waiting.
    ///
    /// - Returns: Whether the loop has been stopped, and has ended all exchanges.
    private func takeTurn() -> Bool {
        if takeIn() {
            finish(NetworkError(code: .cancelled))
            return true
        }
        beginAdmitted()
        perform()
        now = clock.now
        collect()
        if deadlines.takeDue(at: now) { for exchange in exchanges { watch(exchange) } }
        return false
    }

    private func finish(_ error: NetworkError) {
        for exchange in exchanges { end(exchange, error, admitsNext: false) }
        // Close the loop only after all of this thread's exchanges have ended. Otherwise the next thread could receive
        // a cancellation of one of them.
        takeIn(isLast: true)
        for exchange in exchanges { end(exchange, error, admitsNext: false) }
        idleHandles = []
        ccurl_multi_cleanup(multi)
        // After the handles that share it.
        if let tlsSessions { ccurl_share_cleanup(tlsSessions) }
    }

    // MARK: - Commands of other threads

    /// Takes the commands.
    ///
    /// - Parameter isLast: Whether the thread cannot continue.
    /// - Returns: Whether no more commands will arrive.
    @discardableResult
    private func takeIn(isLast: Bool = false) -> Bool {
        let (isTimerDue, isLast) = loop.take(into: &arrived, isLast: isLast)
        now = clock.now
        if isTimerDue { deadlines.timerFired() }
        for exchange in arrived { attend(to: exchange) }
        // Release the exchanges before the loop waits.
        arrived.removeAll(keepingCapacity: true)
        return isLast
    }

    private func attend(to exchange: CurlExchange) {
        guard !exchange.isOver else { return }
        if exchange.worker == nil, let address = exchange.request?.url.absoluteString {
            // The URL is parsed here, to keep the caller's part short. It is often the same as the previous one.
            if lastTarget.address != address { lastTarget = CurlTarget(address: address) }
            (exchange.worker, exchange.target, exchange.index) = (self, lastTarget, exchanges.count)
            exchanges.append(exchange)
            exchange.hasPlace = admission.enter(exchange, origin: lastTarget.origin)
            if exchange.hasPlace { admitted.append(exchange) }
            if exchange.isCancelled { end(exchange, NetworkError(code: .cancelled)) }
            return
        }
        if exchange.isCancelled { return end(exchange, NetworkError(code: .cancelled)) }
        end(exchange, unless: exchange.resumeReceiving())
        end(exchange, unless: exchange.resumeSending())
        watch(exchange)
    }

    /// Begins the admitted exchanges. The loop avoids recursion: if many exchanges cannot begin, the end of each admits
    /// the next.
    private func beginAdmitted() {
        var index = 0
        while index < admitted.count {
            let exchange = admitted[index]
            if !exchange.isOver { begin(exchange) }
            index += 1
        }
        admitted.removeAll(keepingCapacity: true)
    }

    private func begin(_ exchange: CurlExchange) {
        do throws(NetworkError) {
            guard let request = exchange.request, !exchange.isCancelled, request.isWanted?() != false else {
                throw NetworkError(code: .cancelled)
            }
            guard let handle = idleHandles.popLast() ?? CurlHandle() else {
                throw NetworkError(code: .cannotConnect, message: "libcurl has no memory left")
            }
            // Only hosts that responded over HTTP/2 have their own limit. A request to an unknown host does not wait
            // for a connection. With libcurl 8.14, requests to a host without HTTP/2 would otherwise run one after the
            // other.
            let waits = CurlLoop.multiplexes && admission.hasOwnLimit(origin: exchange.target.origin)
            try exchange.configure(handle, waitsForConnection: waits)
            let result = ccurl_multi_add_handle(multi, handle.easy)
            guard result == CCURLM_OK else { throw Self.error(result) }
            exchange.isUnderWay = true
            underWayCount += 1
            let wait = exchange.begin(request, self)
            guard wait > 0 else { return watch(exchange) }
            // Usually the deadlines of an earlier exchange come first.
            if now + wait < deadlines.earliest { deadlines.add(now + wait) }
        } catch {
            end(exchange, error)
        }
    }

    // MARK: - Progress

    /// Ends an exchange that is late, or schedules the next check of its deadlines.
    private func watch(_ exchange: CurlExchange) {
        guard exchange.isUnderWay else { return }
        do throws(NetworkError) {
            let left = try exchange.timeLeft(now: now)
            deadlines.add(now + left)
        } catch {
            end(exchange, error)
        }
    }

    private func perform() {
        var running: Int32 = 0
        turn += 1
        let result = ccurl_multi_perform(multi, &running)
        if CurlLoop.multiplexes { for exchange in answeredOverHTTP2 { learn(from: exchange) } }
        answeredOverHTTP2.removeAll(keepingCapacity: true)
        for exchange in answeredEarly.take() { end(exchange, unless: exchange.resumeSending()) }
        guard result != CCURLM_OK else { return }
        // libcurl has no memory left or is in an invalid state, and would never end these exchanges.
        for exchange in exchanges where exchange.isUnderWay { end(exchange, Self.error(result)) }
    }

    private func collect() {
        var left: Int32 = 0
        while let message = ccurl_multi_info_read(multi, &left) {
            guard message.pointee.msg == CCURLMSG_DONE, let easy = message.pointee.easy_handle,
                let exchange = CurlExchange.at(ccurl_get_private(easy))
            else { continue }
            let result = message.pointee.data.result
            if result == CCURLE_OK { end(exchange, exchange.failure, isWhole: true) } else { fail(exchange, result) }
        }
    }

    /// Ends an exchange that libcurl did not complete, or begins it again if the server has processed nothing of it.
    private func fail(_ exchange: CurlExchange, _ result: ccurl_code) {
        if exchange.failure == nil {
            if exchange.isUnfit || exchange.isRefused { return startOver(exchange) }
            exchange.readRest()
        }
        var error = exchange.isAnswered ? nil : exchange.handle?.error(result)
        // The error comes from libcurl's own functions, which parse a response or, before the request is sent, a
        // client's key.
        if result == CCURLE_BAD_FUNCTION_ARGUMENT {
            let isOfResponse = exchange.isReused != nil || exchange.tunnel?.isInHead == true
            error?.code = isOfResponse ? .badServerResponse : .tls
        }
        end(exchange, exchange.failure ?? error)
    }

    /// Begins an exchange again, regardless of its method, because the server has processed nothing of it.
    private func startOver(_ exchange: CurlExchange) {
        leaveLibcurl(exchange)
        if let error = exchange.startOver() { end(exchange, error) } else { admitted.append(exchange) }
    }

    /// Waits for events.
    ///
    /// - Returns: The reason why the thread cannot continue. A wait that fails at once would use all of the processor.
    private func wait() -> NetworkError? {
        let timeout = deadlines.pollTimeout(underWay: underWayCount, hasMoved: hasMoved)
        hasMoved = false
        guard admitted.isEmpty, loop.mayWait() else { return nil }
        let result = ccurl_multi_poll(multi, timeout)
        return result == CCURLM_OK ? nil : Self.error(result)
    }

    // MARK: - Ending

    /// Ends an exchange in any state, and admits the exchange that waits for its place.
    ///
    /// - Parameter isWhole: Whether libcurl completed the exchange without an error.
    private func end(_ exchange: CurlExchange, _ error: NetworkError?, admitsNext: Bool = true, isWhole: Bool = false) {
        guard !exchange.isOver, let last = exchanges.popLast() else { return }
        if last !== exchange {
            exchanges[exchange.index] = last
            last.index = exchange.index
        }
        if exchange.isUnderWay, underWayCount == 1 { deadlines.clear() }
        // Deliver the end before libcurl removes the handle. Without QUICK_EXIT, the removal can wait for a name
        // lookup.
        exchange.end(error)
        if let handle = exchange.handle {
            leaveLibcurl(exchange)
            // libcurl's reset does not reach everything that an aborted transfer leaves in its handle.
            let isClean = isWhole && canReuseHandles
            if idleHandles.count < Self.idleHandleLimit, handle.prepare(isClean: isClean) { idleHandles.append(handle) }
        }
        exchange.worker = nil
        guard exchange.hasPlace && admitsNext else { return }
        if CurlLoop.multiplexes { learn(from: exchange) }
        let next = admission.end(origin: exchange.target.origin)
        if !next.isEmpty { admit(next) }
    }

    private func end(_ exchange: CurlExchange, unless result: ccurl_code) {
        if result != CCURLE_OK { end(exchange, exchange.failure ?? exchange.handle?.error(result)) }
    }

    private func leaveLibcurl(_ exchange: CurlExchange) {
        guard let handle = exchange.handle else { return }
        if exchange.isUnderWay {
            exchange.isUnderWay = false
            underWayCount -= 1
            ccurl_multi_remove_handle(multi, handle.easy)
        }
        if handle.isReporting { handle.isReporting = false }
        (handle.exchange, exchange.handle) = (nil, nil)
    }

    /// Passes places on. An exchange that ended while it waited passes its place on at once.
    private func admit(_ exchanges: [CurlExchange]) {
        var exchanges = exchanges
        while !exchanges.isEmpty {
            for exchange in exchanges.take() {
                exchange.hasPlace = true
                if exchange.isOver {
                    exchanges += admission.end(origin: exchange.target.origin)
                } else {
                    admitted.append(exchange)
                }
            }
        }
    }

    /// Sets the limit of the exchange's host, which is higher if it uses HTTP/2.
    private func learn(from exchange: CurlExchange) {
        guard let isHTTP2 = exchange.isHTTP2 else { return }
        var limit = configuration.maximumConnectionsPerHost
        // A server that accepts few concurrent streams gets more connections instead, as it would over HTTP/1.1.
        if isHTTP2 { limit = min(configuration.maximumStreamsPerHost, max(limit, exchange.streamLimit ?? .max)) }
        admit(admission.setLimit(limit, origin: exchange.target.origin))
    }

    private static func error(_ result: ccurl_multi_code) -> NetworkError {
        NetworkError(code: .cannotConnect, message: String(cString: ccurl_multi_strerror(result)))
    }
}
#endif
