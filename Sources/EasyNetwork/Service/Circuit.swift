import Foundation

/// The circuit to one server, which the calls of a host share, and the calls that wait for it.
final class Circuit: Sendable {
    struct State {
        var circuit = CircuitState()
        /// The waiting calls, which are woken in the order of their numbers.
        var waiting: [UInt64: Promise<Void>] = [:]
        var lastNumber: UInt64 = 0
        /// The earliest time to wake the next call, if the previous one does not send the trial.
        var nextTurn = -TimeInterval.infinity
    }

    /// The server's name in errors and wait reasons.
    private let host: String
    fileprivate let clock: any NetworkClock
    let state = Locked(State())
    private let alarm = Alarm()

    init(host: String, clock: any NetworkClock) {
        self.host = host
        self.clock = clock
    }

    /// Returns whether the circuit can be removed: no call waits, and it is closed, or has been open long enough.
    func isForgettable(at now: TimeInterval) -> Bool {
        state.withLock { $0.circuit.refusal(at: now) == nil && $0.waiting.isEmpty }
    }

    /// Permits a message to be sent.
    ///
    /// - Throws: ``NetworkError/Code/circuitOpen``.
    func pass(_ breaker: CircuitBreaker) throws(NetworkError) -> CircuitPass {
        let now = clock.now
        let (admission, circuit) = state.withLock { ($0.circuit.mayCall(at: now), $0.circuit) }
        switch admission {
        case .go(let pass): return CircuitPass(pass, self, breaker)
        case .refused(let seconds): throw circuit.error(host: host, seconds: seconds)
        }
    }

    /// Returns whether messages will still fail after this number of seconds.
    func isOpen(for delay: TimeInterval) -> Bool {
        let time = clock.now + delay
        return state.withLock { $0.circuit.nextTrial.map { $0 > time } ?? false }
    }

    /// The reason why a call waits.
    var waitReason: WaitReason {
        let now = clock.now
        let admission = state.withLock { $0.circuit.refusal(at: now) }
        guard case .refused(let seconds) = admission else { return .circuit(host: host, seconds: 0) }
        return .circuit(host: host, seconds: seconds)
    }

    // MARK: - Waiting

    /// Returns when the caller can request permission to send, or when the task is cancelled.
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
        // If the task was cancelled, the entry still exists.
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

    /// Wakes one call, which requests the trial when it has its slot. The next call is woken a second later, so that a
    /// call that does not get its slot does not block the others.
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

    /// Records the end of a message.
    ///
    /// - Parameter end: Changes the state at the current time.
    /// - Returns: The event, if the circuit has opened or closed.
    @discardableResult
    fileprivate func note(_ end: (inout CircuitState, TimeInterval) -> CircuitState.Change?) -> NetworkEvent.Kind? {
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

/// The permission to send one message to a server. It reports to the circuit how the message ended. If a trial reports
/// nothing, it is given up when the pass is released.
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

    /// Reports the outcome of the message.
    ///
    /// - Parameter date: The current date, for a `Retry-After` that is a date.
    /// - Returns: The event, if the circuit has opened or closed.
    func end(_ outcome: Result<NetworkResponse, NetworkError>, at date: Date) -> NetworkEvent.Kind? {
        switch outcome {
        case .success(let response): end(breaker.verdict(on: response.statusCode, response.headers, at: date))
        case .failure(let error): end(breaker.verdict(on: error, at: date))
        }
    }

    /// Reports the head of a response. It is the end of a trial, because the body can end much later, or never.
    func end(_ head: TransportHead, at date: Date) -> NetworkEvent.Kind? {
        end(breaker.verdict(on: head.statusCode, head.headers, at: date))
    }

    /// Closes the circuit, and calls `action` with the event, if the trial is still running after
    /// ``CircuitBreaker/trialTime``.
    ///
    /// - Returns: The timer; nil for a message that is not a trial.
    func trustAfterTrialTime(_ action: @escaping @Sendable (NetworkEvent.Kind) -> Void) -> (any ClockTimer)? {
        guard pass.isTrial else { return nil }
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
