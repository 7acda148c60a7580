#if os(Linux) && canImport(CCurl)
internal import CCurl
import Foundation

/// What a loop's thread does; made, used and freed on it alone.
final class CurlWorker {
    private let loop: CurlLoop
    private let multi: UnsafeMutableRawPointer
    private let clock: any NetworkClock
    private let configuration: TransportConfiguration

    /// All that have not ended, also those that wait for their turn.
    private var transfers: [ObjectIdentifier: CurlTransfer] = [:]
    /// Those under way, by their easy handle.
    private var underWay: [UnsafeMutableRawPointer: CurlTransfer] = [:]
    private var admission: ConnectionAdmission<CurlTransfer>
    /// Those that have a place and are to begin.
    private var admitted: [CurlTransfer] = []
    private var idleHandles: [CurlHandle] = []
    private var alarm: CurlAlarm
    private var patience = CurlPatience()
    private let options: Shared<CurlOptions>
    private let news = CurlNews()

    /// How many easy handles are kept for later; each takes some 20 KB.
    private static let idleHandleLimit = 64

    init(_ loop: CurlLoop, multi: UnsafeMutableRawPointer) {
        self.loop = loop
        self.multi = multi
        clock = loop.clock
        configuration = loop.configuration
        options = Shared(CurlOptions(configuration))
        admission = ConnectionAdmission(
            perOrigin: configuration.maximumConnectionsPerHost,
            total: configuration.maximumConnections
        )
        alarm = CurlAlarm(loop)
        // Left alone, libcurl keeps four connections for each exchange under way, and closes those above.
        _ = ccurl_multi_set_long(multi, CCURLMOPT_MAXCONNECTS, max(configuration.maximumConnections, 1))
        if !CurlLoop.multiplexes { _ = ccurl_multi_set_long(multi, CCURLMOPT_PIPELINING, CCURLPIPE_NOTHING) }
    }

    func run() {
        while true {
            if performCommands() { return finish(NetworkError(code: .cancelled)) }
            beginAdmitted()
            perform()
            collect()
            endLate()
            beginAdmitted()
            if let failure = wait() {
                for command in loop.close() { perform(command) }
                return finish(failure)
            }
        }
    }

    /// In a call of its own, so that what came in is not kept while the loop waits.
    ///
    /// - Returns: whether nothing more will come in.
    private func performCommands() -> Bool {
        let work = loop.take()
        for command in work.commands { perform(command) }
        return work.isLast
    }

    private func finish(_ error: NetworkError) {
        for transfer in Array(transfers.values) { end(transfer, error, admitsNext: false) }
        alarm.sweep(underWay: 0)
        idleHandles = []
        ccurl_multi_cleanup(multi)
    }

    // MARK: - Commands

    private func perform(_ command: CurlLoop.Command) {
        switch command {
        case .start(let start):
            let transfer = CurlTransfer(start, options: options, news: news, clock: clock)
            transfers[ObjectIdentifier(start.exchange)] = transfer
            if admission.enter(transfer, origin: transfer.target.origin) { admit([transfer]) }
        case .cancel(let exchange):
            guard let transfer = transfers[ObjectIdentifier(exchange)] else { return }
            end(transfer, NetworkError(code: .cancelled))
        case .pauseOrResume(let exchange):
            guard let transfer = transfers[ObjectIdentifier(exchange)] else { return }
            end(transfer, unless: transfer.resumeReceiving())
            if !transfer.isOver { watch(transfer) }
        case .resumeSending(let exchange):
            guard let transfer = transfers[ObjectIdentifier(exchange)] else { return }
            end(transfer, unless: transfer.resumeSending())
        case .look:
            alarm.timerFired()
        }
    }

    /// In a row and not one from within the end of another: of many that cannot begin, each end admits the next.
    private func beginAdmitted() {
        while !admitted.isEmpty {
            for transfer in admitted.take() where !transfer.isOver { begin(transfer) }
        }
    }

    private func begin(_ transfer: CurlTransfer) {
        do throws(NetworkError) {
            if transfer.exchange.isCancelled { throw NetworkError(code: .cancelled) }
            guard let handle = idleHandles.popLast() ?? CurlHandle() else {
                throw NetworkError(code: .cannotConnect, message: "libcurl has no memory left")
            }
            // Only hosts that answered over HTTP/2 have a limit of their own. One to a host of which nothing is known does
            // not wait: with libcurl 8.14 those to a host without HTTP/2 would wait until the first has ended.
            try transfer.configure(handle, waitsForConnection: admission.hasOwnLimit(origin: transfer.target.origin))
            let result = ccurl_multi_add_handle(multi, handle.easy)
            guard result == CCURLM_OK else { throw Self.error(result) }
            underWay[handle.easy] = transfer
            transfer.begin(now: clock.now)
            watch(transfer)
        } catch {
            end(transfer, error)
        }
    }

    // MARK: - Going on

    /// Ends a transfer that is late, or sees to it that it is looked at again.
    private func watch(_ transfer: CurlTransfer) {
        let now = clock.now
        switch transfer.verdict(now: now) {
        case .never: break
        case .checkAgain(let delay): alarm.set(transfer, after: delay, now: now)
        case .expired(let message): end(transfer, NetworkError(code: .timedOut, message: message))
        }
    }

    private func perform() {
        var running: Int32 = 0
        news.turn += 1
        let result = ccurl_multi_perform(multi, &running)
        for transfer in news.http2.take() { learn(from: transfer) }
        for transfer in news.early.take() { end(transfer, unless: transfer.resumeSending()) }
        guard result != CCURLM_OK else { return }
        // It has no memory left or is broken; nobody else would end these.
        for transfer in Array(underWay.values) { end(transfer, Self.error(result)) }
    }

    private func collect() {
        var left: Int32 = 0
        while let message = ccurl_multi_info_read(multi, &left) {
            guard message.pointee.msg == CCURLMSG_DONE, let easy = message.pointee.easy_handle,
                let transfer = underWay[easy]
            else { continue }
            let result = message.pointee.data.result
            if transfer.isToStartOver {
                startOver(transfer)
                continue
            }
            var error = result == CCURLE_OK || transfer.isAnswered ? nil : transfer.handle?.error(result)
            // The functions that it means are libcurl's own: they read the answer, or, before a request goes out, a client's key.
            if result == CCURLE_BAD_FUNCTION_ARGUMENT { error?.code = transfer.isConnected ? .badServerResponse : .tls }
            end(transfer, transfer.failure ?? error, isWhole: result == CCURLE_OK)
        }
    }

    /// Not a byte of it went out, so that it begins again, whatever its method.
    private func startOver(_ transfer: CurlTransfer) {
        guard let handle = transfer.handle else { return }
        underWay[handle.easy] = nil
        ccurl_multi_remove_handle(multi, handle.easy)
        if let error = transfer.startOver() { end(transfer, error) } else { admitted.append(transfer) }
    }

    private func endLate() {
        while let transfer = alarm.takeDue() {
            if !transfer.isOver { watch(transfer) }
        }
    }

    /// - Returns: why the thread cannot go on: a wait that fails at once would take the whole processor.
    private func wait() -> NetworkError? {
        let longest = patience.wait(underWay: underWay.count, hasMoved: news.hasMoved)
        news.hasMoved = false
        guard loop.mayWait() else { return nil }
        let result = ccurl_multi_poll(multi, min(alarm.pollTimeout(), longest))
        return result == CCURLM_OK ? nil : Self.error(result)
    }

    // MARK: - Ending

    /// Ends a transfer, wherever it stands, and admits what waited for its place.
    ///
    /// - Parameter isWhole: whether libcurl was done with it, without error.
    private func end(_ transfer: CurlTransfer, _ error: NetworkError?, admitsNext: Bool = true, isWhole: Bool = false) {
        guard transfers.removeValue(forKey: ObjectIdentifier(transfer.exchange)) != nil else { return }
        // Before libcurl lets go: without the quick exit it may wait for the look-up of a name.
        transfer.end(error)
        if let handle = transfer.handle {
            if underWay.removeValue(forKey: handle.easy) != nil { ccurl_multi_remove_handle(multi, handle.easy) }
            transfer.handle = nil
            // libcurl's reset does not reach all that a transfer broken off leaves in its handle, so that goes.
            if isWhole && CurlHandle.isReusable && idleHandles.count < Self.idleHandleLimit {
                handle.reuse()
                idleHandles.append(handle)
            }
        }
        alarm.sweep(underWay: underWay.count)
        guard transfer.hasPlace && admitsNext else { return }
        learn(from: transfer)
        admit(admission.end(origin: transfer.target.origin))
    }

    private func end(_ transfer: CurlTransfer, unless result: ccurl_code) {
        if result != CCURLE_OK { end(transfer, transfer.failure ?? transfer.handle?.error(result)) }
    }

    /// Hands places on. Those that ended while they waited for theirs pass them on at once.
    private func admit(_ transfers: [CurlTransfer]) {
        var transfers = transfers
        while !transfers.isEmpty {
            for transfer in transfers.take() {
                transfer.hasPlace = true
                if transfer.isOver {
                    transfers += admission.end(origin: transfer.target.origin)
                } else {
                    admitted.append(transfer)
                }
            }
        }
    }

    /// A host that speaks HTTP/2 takes more at once than one that does not.
    private func learn(from transfer: CurlTransfer) {
        guard CurlLoop.multiplexes, let isHTTP2 = transfer.isHTTP2 else { return }
        let limit = isHTTP2 ? configuration.maximumStreamsPerHost : configuration.maximumConnectionsPerHost
        admit(admission.setLimit(limit, origin: transfer.target.origin))
    }

    private static func error(_ result: ccurl_multi_code) -> NetworkError {
        NetworkError(code: .cannotConnect, message: String(cString: ccurl_multi_strerror(result)))
    }
}
#endif
