import Foundation

/// Keeps the credential of a signed-in user, puts it into requests, and refreshes it once for all requests that need
/// it.
///
/// ```swift
/// let session = AuthenticationSession(Tokens(), credential: saved)
/// let host = HostConfiguration(baseURL: url) { $0.authentication = session }
/// ```
///
/// A refresh begins when an answer refuses the credential, or when the credential has expired. The requests that need
/// it wait without a slot, and are then sent with the new credential, each at most once more; a second refusal ends
/// them. When the refresh fails they all end with ``NetworkError/Code/unauthorized`` and the cause. A request that is
/// cancelled while it waits ends at once; the refresh goes on, as the others need it.
///
/// All members may be used from any thread.
public final class AuthenticationSession<Method: Authenticator>: RequestAuthentication, @unchecked Sendable {
    // Sendable because all of it is constant or behind a lock. `@unchecked` repeats that of the superclass, as
    // subclasses must.

    public typealias Credential = Method.Credential

    private struct State {
        var credential: Credential?
        /// Grows with each change of the credential, its removal included.
        var version = 0
        /// The refresh under way.
        var refresh: Refresh?
        /// The times at which the last refreshes began, at most ``refreshLimit``.
        var beginnings: [TimeInterval] = []
    }

    /// A refresh under way. All requests that need it wait for its one outcome.
    private final class Refresh: Sendable {
        typealias Outcome = Result<(credential: Credential, version: Int), NetworkError>

        private struct State {
            var outcome: Outcome?
            var lastWaiter = 0
            var waiters: [Int: CheckedContinuation<Outcome, Never>] = [:]
            var task: Task<Void, Never>?
            var timer: (any ClockTimer)?
        }

        private let state = Locked(State())

        /// Ends at once, with ``NetworkError/Code/cancelled``, when the task is cancelled.
        func outcome() async -> Outcome {
            let id = state.withLock { state in
                state.lastWaiter += 1
                return state.lastWaiter
            }
            return await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    let outcome = state.withLock { state -> Outcome? in
                        if Task.isCancelled { return .failure(NetworkError(code: .cancelled)) }
                        if state.outcome == nil { state.waiters[id] = continuation }
                        return state.outcome
                    }
                    if let outcome { continuation.resume(returning: outcome) }
                }
            } onCancel: {
                let waiter = state.withLock { $0.waiters.removeValue(forKey: id) }
                waiter?.resume(returning: .failure(NetworkError(code: .cancelled)))
            }
        }

        /// Keeps the task of the refresh, and cancels it at the end.
        func begin(_ task: Task<Void, Never>, _ timer: (any ClockTimer)?) {
            let isOver = state.withLock { state in
                if state.outcome == nil { (state.task, state.timer) = (task, timer) }
                return state.outcome != nil
            }
            guard isOver else { return }
            task.cancel()
            timer?.cancel()
        }

        /// Resumes the waiters in the order in which they came. Only the first call has an effect.
        func end(_ outcome: Outcome) {
            let old = state.withLock { state in
                guard state.outcome == nil else { return State() }
                let old = state
                state = State(outcome: outcome)
                return old
            }
            old.task?.cancel()
            old.timer?.cancel()
            for (_, waiter) in old.waiters.sorted(by: { $0.key < $1.key }) { waiter.resume(returning: outcome) }
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
    ///   - credential: the first credential; nil, the default, when no user is signed in.
    ///   - refreshLimit: how many refreshes may begin within `refreshWindow`; beyond that requests end at once with
    ///     ``NetworkError/Code/unauthorized``. Default 5.
    ///   - refreshWindow: in seconds. Default 30.
    ///   - refreshDeadline: seconds after which a refresh fails and its task is cancelled. Default 120; nil means no
    ///     deadline.
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
        state = Locked(State(credential: credential))
        super.init()
    }

    // MARK: - The credential

    /// The current credential; nil when no user is signed in.
    public var credential: Credential? {
        state.withLock { $0.credential }
    }

    /// Replaces the credential. Requests that wait for a refresh are sent with the new one; the result of that refresh
    /// is ignored.
    public func signIn(_ credential: Credential) {
        replace(with: credential)
    }

    /// Removes the credential. Requests that wait for a refresh end with ``NetworkError/Code/unauthorized``; the result
    /// of that refresh is ignored. Later requests are sent without a credential, and when they are refused,
    /// ``Authenticator/refresh(_:over:)`` is asked for one.
    public func signOut() {
        replace(with: nil)
    }

    private func replace(with credential: Credential?) {
        let (refresh, version, old) = state.withLock { state in
            let old = state.credential
            state.credential = credential
            state.version += 1
            state.beginnings = []
            return (state.refresh.take(), state.version, old)
        }
        // A value of the user's, so it is not released under a lock.
        withExtendedLifetime(old) {}
        if let credential {
            refresh?.end(.success((credential, version)))
        } else {
            refresh?.end(.failure(NetworkError(code: .unauthorized, message: "signed out during the refresh")))
        }
    }

    // MARK: - Requests

    /// The next step of a request.
    private enum Decision {
        case send(Credential?, version: Int)
        case wait(Refresh)
        /// Refreshes this credential, and waits.
        case begin(Refresh, Credential?)
        case fail(String)
    }

    override func prepare(
        _ message: TransportRequest,
        _ stamp: Stamp,
        over service: @escaping @Sendable () -> EasyNetworkService
    ) -> Step {
        guard !stamp.isExempt else { return .send(message, stamp) }
        while true {
            let (credential, version) = state.withLock { ($0.credential, $0.version) }
            let isExpired = credential.map { authenticator.isExpired($0, at: date()) } ?? false
            let now = clock.now
            let decision = state.withLock { state -> Decision? in
                // Nil when the credential has changed since, so that its expiry was not checked.
                state.version == version ? decide(&state, needsRefresh: isExpired, now) : nil
            }
            if let decision { return step(decision, message, stamp, refusal: nil, service) }
        }
    }

    override func review(
        _ response: NetworkResponse,
        to message: TransportRequest,
        _ stamp: Stamp,
        over service: @escaping @Sendable () -> EasyNetworkService
    ) -> Step {
        guard !stamp.isExempt, authenticator.isRefused(response) else { return .accept }
        if stamp.isReplay {
            return step(.fail("the server refused the new credential too"), message, stamp, refusal: response, service)
        }
        var replay = stamp
        replay.isReplay = true
        let now = clock.now
        let decision = state.withLock { state in
            // The refusal of an older credential does not concern the current one.
            decide(&state, needsRefresh: stamp.version == state.version, now)
        }
        return step(decision, message, replay, refusal: response, service)
    }

    private func decide(_ state: inout State, needsRefresh: Bool, _ now: TimeInterval) -> Decision {
        if let refresh = state.refresh { return .wait(refresh) }
        guard needsRefresh else { return .send(state.credential, version: state.version) }
        state.beginnings.removeAll { $0 <= now - refreshWindow }
        guard state.beginnings.count < refreshLimit else {
            return .fail(
                "the credential has been refreshed \(refreshLimit) times within \(refreshWindow) seconds, and is still "
                    + "refused or expired"
            )
        }
        state.beginnings.append(now)
        let refresh = Refresh()
        state.refresh = refresh
        return .begin(refresh, state.credential)
    }

    private func step(
        _ decision: Decision,
        _ message: TransportRequest,
        _ stamp: Stamp,
        refusal: NetworkResponse?,
        _ service: @escaping @Sendable () -> EasyNetworkService
    ) -> Step {
        switch decision {
        case .send(let credential, let version):
            do throws(NetworkError) {
                let (message, stamp) = try outgoing(message, stamp, credential, version)
                return .send(message, stamp)
            } catch {
                return .fail(error)
            }
        case .fail(let reason):
            return .fail(own(NetworkError(code: .unauthorized, message: reason), refusal))
        case .begin(let refresh, let credential):
            begin(refresh, credential, service)
            return wait(for: refresh, message, stamp, refusal)
        case .wait(let refresh):
            return wait(for: refresh, message, stamp, refusal)
        }
    }

    private func wait(
        for refresh: Refresh,
        _ message: TransportRequest,
        _ stamp: Stamp,
        _ refusal: NetworkResponse?
    ) -> Step {
        .wait { [self] () throws(NetworkError) in
            switch await refresh.outcome() {
            case .success(let (credential, version)): try outgoing(message, stamp, credential, version)
            case .failure(let error): throw own(error, refusal)
            }
        }
    }

    /// The error, with the refusal as its cause.
    private func own(_ error: NetworkError, _ refusal: NetworkResponse?) -> NetworkError {
        refusal?.error(error.code, message: error.message, underlying: error.underlying) ?? error
    }

    private func outgoing(
        _ message: TransportRequest,
        _ stamp: Stamp,
        _ credential: Credential?,
        _ version: Int
    ) throws(NetworkError) -> (message: TransportRequest, stamp: Stamp) {
        var message = message
        var stamp = stamp
        stamp.version = version
        do {
            if let credential { try authenticator.apply(credential, to: &message) }
        } catch {
            let prefix = "the credential cannot be put into the request: "
            throw .thrown(error, otherwise: .invalidRequest, prefix: prefix)
        }
        return (message, stamp)
    }

    // MARK: - The refresh

    private func begin(
        _ refresh: Refresh,
        _ credential: Credential?,
        _ service: @escaping @Sendable () -> EasyNetworkService
    ) {
        let sessions = RefreshContext.sessions + [ObjectIdentifier(self)]
        let task = Task {
            do {
                let fresh = try await RefreshContext.$sessions.withValue(sessions) {
                    try await authenticator.refresh(credential, over: service())
                }
                finish(refresh, .success(fresh))
            } catch {
                finish(refresh, .failure(error))
            }
        }
        let timer = refreshDeadline.map { deadline in
            clock.schedule(after: deadline) { [weak self] in
                let error = NetworkError(code: .timedOut, message: "the refresh took longer than \(deadline) seconds")
                self?.finish(refresh, .failure(error))
            }
        }
        refresh.begin(task, timer)
    }

    private func finish(_ refresh: Refresh, _ result: Result<Credential, any Error>) {
        let (isCurrent, version, old) = state.withLock { state -> (Bool, Int, Credential?) in
            // Ignores a refresh whose credential was replaced.
            guard state.refresh === refresh else { return (false, 0, nil) }
            state.refresh = nil
            guard case .success(let fresh) = result else { return (true, state.version, nil) }
            let old = state.credential
            state.credential = fresh
            state.version += 1
            return (true, state.version, old)
        }
        withExtendedLifetime(old) {}
        guard isCurrent else { return }
        switch result {
        case .success(let credential): refresh.end(.success((credential, version)))
        case .failure(let error):
            let cause = error as? NetworkError
            let reason = cause?.serverMessage ?? cause?.message ?? error.wording
            let message = "the credential could not be refreshed: \(reason.withoutFullStop)"
            refresh.end(.failure(NetworkError(code: .unauthorized, message: message, underlying: error)))
        }
    }
}
