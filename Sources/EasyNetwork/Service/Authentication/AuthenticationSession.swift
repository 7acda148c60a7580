import Foundation

/// Keeps the credential of one who is signed in, puts it into requests, and refreshes it once for all that need it.
///
/// ```swift
/// let session = AuthenticationSession(Tokens(), credential: saved)
/// let host = HostConfiguration(baseURL: url) { $0.authentication = session }
/// ```
///
/// When an answer says that the credential does not count, or it has expired, one refresh begins. The requests that
/// need it wait meanwhile without a slot, are then sent with the new one, each at most once more, and end when that is
/// refused too. When the refresh fails they all end with ``NetworkError/Code/unauthorized`` and the cause. A request that
/// is cancelled meanwhile ends at once; the refresh goes on, as the others need it.
///
/// All members may be used from any thread.
public final class AuthenticationSession<Method: Authenticator>: RequestAuthentication, @unchecked Sendable {
    // Sendable because all of it is constant or behind a lock; the class above makes everybody say it again.

    public typealias Credential = Method.Credential

    private struct Waiting {
        var message: TransportRequest
        var stamp: Stamp
        /// Why it waits; nil when it has not been sent yet.
        var refusal: NetworkResponse?
        var completion: Completion
    }

    private struct State {
        var credential: Credential?
        var flight: RefreshFlight<Int>
        var waiting: [Int: Waiting] = [:]
        var lastWaiter = 0
        var refresh: Refresh?

        mutating func replace(with credential: Credential?, for ids: [Int]) -> Replacement {
            let old = self.credential
            self.credential = credential
            let refresh = self.refresh
            self.refresh = nil
            let waiting = ids.compactMap { self.waiting.removeValue(forKey: $0) }
            return Replacement(waiting: waiting, version: flight.version, refresh: refresh, old: old)
        }
    }

    /// What follows, outside the lock, when the credential has been replaced or its refresh has ended.
    private struct Replacement {
        var waiting: [Waiting]
        var version: Int
        var refresh: Refresh?
        /// The program's, and so not to be let go of under a lock.
        var old: Credential?
    }

    private struct Refresh {
        var task: Task<Void, Never>
        var timer: (any ClockTimer)?

        func cancel() {
            task.cancel()
            timer?.cancel()
        }
    }

    private let authenticator: Method
    private let refreshLimit: Int
    private let refreshWindow: TimeInterval
    private let refreshDeadline: TimeInterval?
    private let clock: any NetworkClock
    private let date: @Sendable () -> Date
    private let state: Locked<State>

    /// - Parameters:
    ///   - credential: what to begin with; nil, the default, when nobody is signed in.
    ///   - refreshLimit: how many refreshes may begin within `refreshWindow`; beyond that requests end at once with
    ///     ``NetworkError/Code/unauthorized``. Default 5.
    ///   - refreshWindow: in seconds. Default 30.
    ///   - refreshDeadline: seconds after which a refresh has failed, and its task is cancelled. Default 120; nil means
    ///     no deadline, and requests that wait as long as it takes.
    ///   - clock: for the window and the deadline. Default the system's.
    public convenience init(
        _ authenticator: Method,
        credential: Credential? = nil,
        refreshLimit: Int = 5,
        refreshWindow: TimeInterval = 30,
        refreshDeadline: TimeInterval? = 120,
        clock: any NetworkClock = SystemClock()
    ) {
        self.init(
            authenticator,
            credential: credential,
            refreshLimit: refreshLimit,
            refreshWindow: refreshWindow,
            refreshDeadline: refreshDeadline,
            clock: clock,
            date: { Date() }
        )
    }

    /// - Parameter date: the wall clock, by which credentials expire.
    init(
        _ authenticator: Method,
        credential: Credential?,
        refreshLimit: Int,
        refreshWindow: TimeInterval,
        refreshDeadline: TimeInterval?,
        clock: any NetworkClock,
        date: @escaping @Sendable () -> Date
    ) {
        self.authenticator = authenticator
        self.refreshLimit = refreshLimit
        self.refreshWindow = refreshWindow
        self.refreshDeadline = refreshDeadline
        self.clock = clock
        self.date = date
        state = Locked(
            State(credential: credential, flight: RefreshFlight(limit: refreshLimit, window: refreshWindow))
        )
        super.init()
    }

    // MARK: - The credential

    /// The one that requests go out with now; nil when nobody is signed in.
    public var credential: Credential? {
        state.withLock { $0.credential }
    }

    /// Puts a credential in the place of the one there is. Requests that wait for a refresh go out with it; what that
    /// refresh brings does not count.
    public func signIn(_ credential: Credential) {
        replace(with: credential)
    }

    /// Takes the credential away. Requests that wait for a refresh end with ``NetworkError/Code/unauthorized``; what
    /// that refresh brings does not count. Later requests go out without, and when they are refused,
    /// ``Authenticator/refresh(_:over:)`` is asked for one.
    public func signOut() {
        replace(with: nil)
    }

    private func replace(with credential: Credential?) {
        let outcome = state.withLock { $0.replace(with: credential, for: $0.flight.replace()) }
        outcome.refresh?.cancel()
        guard let credential else {
            return end(outcome.waiting, with: NetworkError(code: .unauthorized, message: "signed out meanwhile"))
        }
        goOn(outcome.waiting, with: credential, outcome.version)
    }

    // MARK: - Requests

    override func prepare(
        _ message: TransportRequest,
        _ stamp: Stamp,
        over service: @escaping @Sendable () -> EasyNetworkService,
        completion: @escaping Completion
    ) -> Step {
        guard !stamp.isExempt else { return .send(message, stamp) }
        let waiting = Waiting(message: message, stamp: stamp, refusal: nil, completion: completion)
        while true {
            let (credential, version) = state.withLock { ($0.credential, $0.flight.version) }
            let isExpired = credential.map { authenticator.isExpired($0, at: date()) } ?? false
            let now = clock.now
            let step = decide(waiting, over: service) { flight, id in
                // Another one is there by now, which nobody has looked at.
                guard flight.version == version else { return nil }
                return flight.prepare(id, isExpired: isExpired, now: now)
            }
            if let step { return step }
        }
    }

    override func review(
        _ response: NetworkResponse,
        to message: TransportRequest,
        _ stamp: Stamp,
        over service: @escaping @Sendable () -> EasyNetworkService,
        completion: @escaping Completion
    ) -> Step {
        guard !stamp.isExempt, authenticator.isRefused(response) else { return .accept }
        var replay = stamp
        replay.isReplay = true
        let waiting = Waiting(message: message, stamp: replay, refusal: response, completion: completion)
        let now = clock.now
        let step = decide(waiting, over: service) { flight, id in
            flight.refuse(id, sent: stamp.version, isReplay: stamp.isReplay, now: now)
        }
        return step ?? .accept
    }

    private func decide(
        _ waiting: Waiting,
        over service: @escaping @Sendable () -> EasyNetworkService,
        _ ask: (inout RefreshFlight<Int>, Int) -> RefreshFlight<Int>.Decision?
    ) -> Step? {
        let (decision, credential, id) = state.withLock { state in
            state.lastWaiter += 1
            let id = state.lastWaiter
            let decision = ask(&state.flight, id)
            switch decision {
            case .hold, .refresh: state.waiting[id] = waiting
            case .send, .fail, nil: break
            }
            return (decision, state.credential, id)
        }
        switch decision {
        case nil:
            return nil
        case .send(let version):
            switch outgoing(waiting, credential, version) {
            case .success(let outgoing): return .send(outgoing.message, outgoing.stamp)
            case .failure(let error): return .fail(error)
            }
        case .fail(let failure):
            return .fail(error(failure, after: waiting.refusal))
        case .refresh(let flight):
            begin(flight, credential, service)
            fallthrough
        case .hold:
            return .hold(Hold { [weak self] in self?.leave(id) })
        }
    }

    private func leave(_ id: Int) {
        // Handed out of the lock: it holds the landing.
        _ = state.withLock { state in
            state.flight.leave(id)
            return state.waiting.removeValue(forKey: id)
        }
    }

    private func outgoing(
        _ waiting: Waiting,
        _ credential: Credential?,
        _ version: Int
    ) -> Result<(message: TransportRequest, stamp: Stamp), NetworkError> {
        var message = waiting.message
        var stamp = waiting.stamp
        stamp.version = version
        do {
            if let credential { try authenticator.apply(credential, to: &message) }
        } catch {
            let prefix = "the credential cannot be put into the request: "
            return .failure(.thrown(error, otherwise: .invalidRequest, prefix: prefix))
        }
        return .success((message, stamp))
    }

    // MARK: - The refresh

    private func begin(
        _ flight: Int,
        _ credential: Credential?,
        _ service: @escaping @Sendable () -> EasyNetworkService
    ) {
        let sessions = RefreshContext.sessions + [ObjectIdentifier(self)]
        let task = Task {
            do {
                let fresh = try await RefreshContext.$sessions.withValue(sessions) {
                    try await authenticator.refresh(credential, over: service())
                }
                finish(flight, .success(fresh))
            } catch {
                finish(flight, .failure(error))
            }
        }
        let timer = refreshDeadline.map { deadline in
            clock.schedule(after: deadline) { [weak self] in
                let error = NetworkError(code: .timedOut, message: "the refresh took longer than \(deadline) seconds")
                self?.finish(flight, .failure(error))
            }
        }
        let refresh = Refresh(task: task, timer: timer)
        let isRunning = state.withLock { state in
            if state.flight.running == flight { state.refresh = refresh }
            return state.flight.running == flight
        }
        // It may have ended, or somebody may have signed in or out, before there was anything to cancel.
        if !isRunning { refresh.cancel() }
    }

    private func finish(_ flight: Int, _ result: Result<Credential, any Error>) {
        let fresh = try? result.get()
        let outcome = state.withLock { state -> Replacement? in
            guard let ids = state.flight.finish(flight, isRefreshed: fresh != nil) else { return nil }
            return state.replace(with: fresh ?? state.credential, for: ids)
        }
        guard let outcome else { return }
        outcome.refresh?.cancel()
        switch result {
        case .success(let credential):
            goOn(outcome.waiting, with: credential, outcome.version)
        case .failure(let error):
            let cause = error as? NetworkError
            let reason = cause?.serverMessage ?? cause?.message ?? error.wording
            let message = "the credential could not be refreshed: \(reason.withoutFullStop)"
            end(outcome.waiting, with: NetworkError(code: .unauthorized, message: message, underlying: error))
        }
    }

    private func goOn(_ waiting: [Waiting], with credential: Credential, _ version: Int) {
        for one in waiting {
            WorkQueue.shared.async { one.completion(self.outgoing(one, credential, version)) }
        }
    }

    private func end(_ waiting: [Waiting], with error: NetworkError) {
        for one in waiting {
            let own = one.refusal?.error(error.code, message: error.message, underlying: error.underlying) ?? error
            WorkQueue.shared.async { one.completion(.failure(own)) }
        }
    }

    private func error(_ failure: RefreshFlight<Int>.Failure, after refusal: NetworkResponse?) -> NetworkError {
        let message =
            switch failure {
            case .refusedAgain:
                "the server refused the new credential too"
            case .tooManyRefreshes:
                "the credential has been refreshed \(refreshLimit) times within \(refreshWindow) seconds and does not "
                    + "count all the same"
            }
        return refusal?.error(.unauthorized, message: message) ?? NetworkError(code: .unauthorized, message: message)
    }
}
