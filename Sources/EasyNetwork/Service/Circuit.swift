import Foundation

/// The circuit to one server, which the calls of a host share, and the calls that wait for it.
final class Circuit: Sendable {
    struct State {
        var circuit = CircuitState()
        /// In the order of their numbers.
        var waiting: [UInt64: Promise<Void>] = [:]
        var lastNumber: UInt64 = 0
        /// The next call is woken no earlier than this, if the one before does not send the trial.
        var nextTurn = -TimeInterval.infinity
    }

    /// For messages of errors and reasons.
    private let host: String
    fileprivate let clock: any NetworkClock
    let state = Locked(State())
    private let alarm = Alarm()

    init(host: String, clock: any NetworkClock) {
        self.host = host
        self.clock = clock
    }

    /// Whether it is closed, or open longer than it has to be, and no call waits.
    func isForgettable(at now: TimeInterval) -> Bool {
        state.withLock { $0.circuit.refusal(at: now) == nil && $0.waiting.isEmpty }
    }

    /// Lets a message through.
    ///
    /// - Throws: ``NetworkError/Code/circuitOpen``.
    func pass(_ breaker: CircuitBreaker) throws(NetworkError) -> CircuitPass {
        let now = clock.now
        let pass = state.withLock { state -> Result<CircuitState.Pass, NetworkError> in
            switch state.circuit.mayCall(at: now) {
            case .go(let pass): .success(pass)
            case .refused(let seconds): .failure(state.circuit.error(host: host, seconds: seconds))
            }
        }
        return CircuitPass(try pass.get(), self, breaker)
    }

    /// Whether messages fail after so many seconds, too.
    func isOpen(for delay: TimeInterval) -> Bool {
        let time = clock.now + delay
        return state.withLock { $0.circuit.nextTrial.map { $0 > time } ?? false }
    }

    /// Why a call waits.
    var waitReason: WaitReason {
        let now = clock.now
        let admission = state.withLock { $0.circuit.refusal(at: now) }
        guard case .refused(let seconds) = admission else { return .circuit(host: host, seconds: 0) }
        return .circuit(host: host, seconds: seconds)
    }

    // MARK: - Waiting

    /// Returns when a message may be let through, for it to ask, or the task is cancelled.
    func wait() async {
        let (turn, now) = (Promise<Void>(), clock.now)
        let number = state.withLock { state -> UInt64? in
            guard state.circuit.refusal(at: now) != nil else { return nil }
            state.lastNumber += 1
            state.waiting[state.lastNumber] = turn
            return state.lastNumber
        }
        guard let number else { return }
        setAlarm()
        await turn.wait()
        // After a cancel.
        state.withLock { _ = $0.waiting.removeValue(forKey: number) }
    }

    private func setAlarm() {
        alarm.set(
            state.withLock { state in
                state.waiting.isEmpty ? nil : state.circuit.nextTrial.map { max($0, state.nextTurn) }
            },
            clock
        ) { [weak self] in self?.wakeNext() }
    }

    /// Wakes one call, which asks for the trial when it has its slot. The next one has its turn a second later, so that
    /// a call whose slot does not come holds nobody up.
    func wakeNext() {
        let now = clock.now
        let turn = state.withLock { state -> Promise<Void>? in
            guard state.circuit.nextTrial.map({ $0 <= now }) ?? false, let first = state.waiting.keys.min() else {
                return nil
            }
            state.nextTurn = now + 1
            return state.waiting.removeValue(forKey: first)
        }
        setAlarm()
        turn?.set()
    }

    // MARK: - The ends of messages

    /// - Returns: the opening or the closing of the circuit.
    @discardableResult
    fileprivate func note(_ end: (inout CircuitState, _ now: TimeInterval) -> CircuitState.Change?) -> NetworkEvent
        .Kind?
    {
        let now = clock.now
        let (change, circuit, turns) = state.withLock { state in
            let change = end(&state.circuit, now)
            return (change, state.circuit, change == .closed ? exchange(&state.waiting, with: [:]) : [:])
        }
        switch change {
        case .opened:
            setAlarm()
            return .circuitOpened(circuit.error(host: host, seconds: circuit.nextTrial.map { max(0, $0 - now) }))
        case .closed:
            for (_, turn) in turns.sorted(by: { $0.key < $1.key }) { turn.set() }
            return .circuitClosed
        case .freed: wakeNext()
        case nil: break
        }
        return nil
    }
}

/// Lets one message through the circuit to its server, and tells that how it ended. A trial that is not told so is
/// given up with the pass.
final class CircuitPass: Sendable {
    private let pass: CircuitState.Pass
    private let circuit: Circuit
    private let breaker: CircuitBreaker

    fileprivate init(_ pass: CircuitState.Pass, _ circuit: Circuit, _ breaker: CircuitBreaker) {
        self.pass = pass
        self.circuit = circuit
        self.breaker = breaker
    }

    deinit {
        circuit.note { $0.givenUp(pass, at: $1) }
    }

    var isTrial: Bool { pass.isTrial }

    /// - Parameter date: now, for a `Retry-After` that is a date.
    /// - Returns: the opening or the closing of the circuit.
    func end(_ outcome: Result<NetworkResponse, NetworkError>, at date: Date) -> NetworkEvent.Kind? {
        switch outcome {
        case .success(let response): end(breaker.verdict(on: response.statusCode, response.headers, at: date))
        case .failure(let error): end(breaker.verdict(on: error, at: date))
        }
    }

    /// The head of the answer to a trial is its end: the body may come much later, or never.
    func end(_ head: TransportHead, at date: Date) -> NetworkEvent.Kind? {
        end(breaker.verdict(on: head.statusCode, head.headers, at: date))
    }

    /// Calls `action` with the closing of the circuit if the trial has run for ``CircuitBreaker/trialTime`` by then.
    ///
    /// - Returns: the timer; nil for a message that is not a trial.
    func trustAfterTrialTime(_ action: @escaping @Sendable (NetworkEvent.Kind) -> Void) -> (any ClockTimer)? {
        guard isTrial else { return nil }
        return circuit.clock.schedule(after: breaker.trialTime > 0 ? breaker.trialTime : 0) { [self] in
            if let change = circuit.note({ circuit, _ in circuit.ranLong(pass) }) { action(change) }
        }
    }

    private func end(_ verdict: CircuitBreaker.Verdict?) -> NetworkEvent.Kind? {
        guard let verdict else { return nil }
        return circuit.note { circuit, now in
            switch verdict {
            case .success: circuit.succeeded(pass, at: now, breaker)
            case .failure(let what, let retryAfter):
                circuit.failed(pass, at: now, what: what, retryAfter: retryAfter, breaker)
            }
        }
    }
}
