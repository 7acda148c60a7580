#if os(Linux) && canImport(CCurl)
internal import CCurl
import Foundation

/// The work of a loop's thread. Made by the thread that starts it, then used on the loop's thread alone.
final class CurlWorker {
    let clock: any NetworkClock
    let configuration: TransportConfiguration
    /// The reason why the configuration's proxy cannot be used.
    let proxyProblem: NetworkError?
    /// Whether a proxy may ask for a password that libcurl has.
    let hasProxyPassword: Bool
    /// Whether the proxy of http addresses has asked for Basic, so that later messages need not wait for that.
    var isBasicWanted = false
    let connections = CurlConnections()
    /// The header list that was made last: most messages have the fields of the one before.
    var headerList: CurlHeaderList?
    /// The fields of the answer that came last: most answers have those of the one before.
    var knownFields: [HTTPHeaders.Field] = []

    // The reports of callbacks while the loop is inside libcurl.

    /// Exchanges whose head has come over HTTP/2.
    var answeredOverHTTP2: [CurlExchange] = []
    /// Exchanges whose head has come while libcurl waits for more of the request: the server may not want the rest.
    var answeredEarly: [CurlExchange] = []
    /// Whether anything was sent or has come since the last wait.
    var hasMoved = false
    /// How many times libcurl was asked to go on.
    private(set) var turn = 0

    private let loop: CurlLoop
    private let multi: UnsafeMutableRawPointer
    /// All that have not ended, waiting ones included; each knows its index.
    private var exchanges: [CurlExchange] = []
    private var underWayCount = 0
    private var lastTarget = CurlTarget.none
    private var admission: ConnectionAdmission<CurlExchange>
    /// Exchanges that have a place and are to begin.
    private var admitted: [CurlExchange] = []
    private var idleHandles: [CurlHandle] = []
    private var deadlines: CurlDeadlines

    /// Each easy handle takes some 20 KB.
    private static let idleHandleLimit = 64

    init(_ loop: CurlLoop, multi: UnsafeMutableRawPointer) {
        self.loop = loop
        self.multi = multi
        clock = loop.clock
        configuration = loop.configuration
        proxyProblem = configuration.proxy.curlProblem
        hasProxyPassword = configuration.proxy.hasPassword
        admission = ConnectionAdmission(
            perOrigin: configuration.maximumConnectionsPerHost,
            total: configuration.maximumConnections
        )
        deadlines = CurlDeadlines(loop)
        // By default libcurl keeps four connections for each exchange under way and closes the others.
        _ = ccurl_multi_set_long(multi, CCURLMOPT_MAXCONNECTS, max(configuration.maximumConnections, 1))
        if !CurlLoop.multiplexes { _ = ccurl_multi_set_long(multi, CCURLMOPT_PIPELINING, CCURLPIPE_NOTHING) }
    }

    func run() {
        while true {
            if takeIn() { return finish(NetworkError(code: .cancelled)) }
            beginAdmitted()
            perform()
            collect()
            if deadlines.takeDue() { for exchange in exchanges { watch(exchange) } }
            beginAdmitted()
            if let failure = wait() { return finish(failure) }
        }
    }

    private func finish(_ error: NetworkError) {
        for exchange in exchanges { end(exchange, error, admitsNext: false) }
        // Only now, when all of this thread's exchanges are over: the next thread may be told to cancel one of them.
        for exchange in loop.close() { attend(to: exchange) }
        for exchange in exchanges { end(exchange, error, admitsNext: false) }
        idleHandles = []
        ccurl_multi_cleanup(multi)
    }

    // MARK: - What other threads want

    /// A function of its own, so that what came in is released before the loop waits.
    ///
    /// - Returns: whether nothing more will come in.
    private func takeIn() -> Bool {
        let inbox = loop.take()
        if inbox.isTimerDue { deadlines.timerFired() }
        for exchange in inbox.exchanges { attend(to: exchange) }
        return inbox.isLast
    }

    private func attend(to exchange: CurlExchange) {
        guard !exchange.isOver else { return }
        let isNew = exchange.worker == nil
        if isNew {
            exchange.worker = self
            exchange.readTarget(lastTarget)
            lastTarget = exchange.target
            exchange.index = exchanges.count
            exchanges.append(exchange)
            if admission.enter(exchange, origin: exchange.target.origin) { admit([exchange]) }
        }
        if exchange.isCancelled { return end(exchange, NetworkError(code: .cancelled)) }
        if isNew { return }
        end(exchange, unless: exchange.resumeReceiving())
        end(exchange, unless: exchange.resumeSending())
        watch(exchange)
    }

    /// In a loop and not from within the end of another exchange: of many that cannot begin, each end admits the next.
    private func beginAdmitted() {
        while !admitted.isEmpty {
            for exchange in admitted.take() where !exchange.isOver { begin(exchange) }
        }
    }

    private func begin(_ exchange: CurlExchange) {
        do throws(NetworkError) {
            if exchange.isCancelled || exchange.request?.isWanted?() == false { throw NetworkError(code: .cancelled) }
            guard let handle = idleHandles.popLast() ?? CurlHandle() else {
                throw NetworkError(code: .cannotConnect, message: "libcurl has no memory left")
            }
            // Only hosts that answered over HTTP/2 have a limit of their own. A request to an unknown host does not
            // wait for a connection: with libcurl 8.14, requests to a host without HTTP/2 would run one after the
            // other.
            try exchange.configure(handle, waitsForConnection: admission.hasOwnLimit(origin: exchange.target.origin))
            let result = ccurl_multi_add_handle(multi, handle.easy)
            guard result == CCURLM_OK else { throw Self.error(result) }
            exchange.isUnderWay = true
            underWayCount += 1
            exchange.begin(now: clock.now)
            watch(exchange)
        } catch {
            end(exchange, error)
        }
    }

    // MARK: - Going on

    /// Ends an exchange that is late, or has its deadlines checked again.
    private func watch(_ exchange: CurlExchange) {
        guard exchange.isUnderWay else { return }
        let now = clock.now
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
        for exchange in answeredOverHTTP2.take() { learn(from: exchange) }
        for exchange in answeredEarly.take() { end(exchange, unless: exchange.resumeSending()) }
        guard result != CCURLM_OK else { return }
        // libcurl has no memory left or is broken, and would never end these.
        for exchange in exchanges where exchange.isUnderWay { end(exchange, Self.error(result)) }
    }

    private func collect() {
        var left: Int32 = 0
        while let message = ccurl_multi_info_read(multi, &left) {
            guard message.pointee.msg == CCURLMSG_DONE, let easy = message.pointee.easy_handle,
                let exchange = CurlExchange.at(ccurl_get_private(easy))
            else { continue }
            let result = message.pointee.data.result
            if exchange.isToStartOver {
                startOver(exchange)
                continue
            }
            if result != CCURLE_OK, exchange.failure == nil { exchange.readRest() }
            var error = result == CCURLE_OK || exchange.isAnswered ? nil : exchange.handle?.error(result)
            // libcurl means its own functions, which parse an answer or, before a request goes out, a client's key.
            if result == CCURLE_BAD_FUNCTION_ARGUMENT {
                error?.code = exchange.isConnected || exchange.tunnel.isInHead ? .badServerResponse : .tls
            }
            end(exchange, exchange.failure ?? error, isWhole: result == CCURLE_OK)
        }
    }

    /// Begins again, whatever the method: the server has processed nothing of it.
    private func startOver(_ exchange: CurlExchange) {
        leaveLibcurl(exchange)
        if let error = exchange.startOver() { end(exchange, error) } else { admitted.append(exchange) }
    }

    /// - Returns: why the thread cannot go on: a wait that fails at once would take the whole processor.
    private func wait() -> NetworkError? {
        let timeout = deadlines.pollTimeout(underWay: underWayCount, hasMoved: hasMoved)
        hasMoved = false
        guard loop.mayWait() else { return nil }
        let result = ccurl_multi_poll(multi, timeout)
        return result == CCURLM_OK ? nil : Self.error(result)
    }

    // MARK: - Ending

    /// Ends an exchange in any state and admits what waited for its place.
    ///
    /// - Parameter isWhole: Whether libcurl finished it without error.
    private func end(_ exchange: CurlExchange, _ error: NetworkError?, admitsNext: Bool = true, isWhole: Bool = false) {
        guard !exchange.isOver, let last = exchanges.popLast() else { return }
        if last !== exchange {
            exchanges[exchange.index] = last
            last.index = exchange.index
        }
        if exchange.isUnderWay, underWayCount == 1 { deadlines.clear() }
        // Before libcurl removes it: without the quick exit that may wait for the look-up of a name.
        exchange.end(error)
        if let handle = exchange.handle {
            leaveLibcurl(exchange)
            // libcurl's reset does not reach everything that a broken-off transfer leaves in its handle.
            if isWhole && CurlHandle.isReusable && idleHandles.count < Self.idleHandleLimit {
                handle.reuse()
                idleHandles.append(handle)
            }
        }
        exchange.worker = nil
        guard exchange.hasPlace && admitsNext else { return }
        learn(from: exchange)
        admit(admission.end(origin: exchange.target.origin))
    }

    private func end(_ exchange: CurlExchange, unless result: ccurl_code) {
        if result != CCURLE_OK { end(exchange, exchange.failure ?? exchange.handle?.error(result)) }
    }

    private func leaveLibcurl(_ exchange: CurlExchange) {
        if exchange.isUnderWay, let handle = exchange.handle {
            exchange.isUnderWay = false
            underWayCount -= 1
            ccurl_multi_remove_handle(multi, handle.easy)
        }
        exchange.handle?.stopReports()
        exchange.handle = nil
    }

    /// Hands places on. Exchanges that ended while they waited pass theirs on at once.
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

    /// Sets the limit of the exchange's host, which is higher if it speaks HTTP/2.
    private func learn(from exchange: CurlExchange) {
        guard CurlLoop.multiplexes, let isHTTP2 = exchange.isHTTP2 else { return }
        var limit = configuration.maximumConnectionsPerHost
        // A server that takes few streams at a time gets connections instead, as it would over HTTP/1.1.
        if isHTTP2 { limit = min(configuration.maximumStreamsPerHost, max(limit, exchange.streamLimit ?? .max)) }
        admit(admission.setLimit(limit, origin: exchange.target.origin))
    }

    private static func error(_ result: ccurl_multi_code) -> NetworkError {
        NetworkError(code: .cannotConnect, message: String(cString: ccurl_multi_strerror(result)))
    }
}
#endif
