import Foundation

/// Keeps the credential of a signed-in user, puts it into requests, and refreshes it once for all requests that need
/// it.
///
/// ```swift
/// let session = AuthenticationSession(Tokens(), credential: saved, save: save)
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

    /// The credential of the ``Authenticator``.
    public typealias Credential = Method.Credential

    private struct State {
        var credential: Credential?
        /// Grows with each change of the credential, its removal included.
        var version = 0
        /// See ``AuthenticationSession/userVersion``.
        var userVersion = 0
        /// The refresh under way.
        var refresh: Refresh?
        /// The times at which the last refreshes began, at most ``refreshLimit``.
        var beginnings: [TimeInterval] = []
        /// The version that was saved last, or is being saved.
        var savedVersion = 0
        var isSaving = false

        var current: Versioned { (credential, version, userVersion) }
    }

    /// A credential, its version and that of its user.
    private typealias Versioned = (credential: Credential?, version: Int, userVersion: Int)

    private let authenticator: Method
    private let refreshLimit: Int
    private let refreshWindow: TimeInterval
    private let refreshDeadline: TimeInterval?
    private let clock: any NetworkClock
    private let save: (@Sendable (Credential?) -> Void)?
    private let state: Locked<State>

    /// Creates a session.
    ///
    /// - Parameters:
    ///   - authenticator: applies and refreshes the credential.
    ///   - credential: the first credential; nil, the default, when no user is signed in.
    ///   - refreshLimit: how many refreshes may begin within `refreshWindow`; beyond that requests end at once with
    ///     ``NetworkError/Code/unauthorized``. Default 5.
    ///   - refreshWindow: in seconds. Default 30.
    ///   - refreshDeadline: seconds after which a refresh fails and its task is cancelled. Default 120; nil means no
    ///     deadline. With zero, less or NaN no refresh begins: it fails with ``NetworkError/Code/invalidRequest``.
    ///   - clock: for the window, the deadline, and the expiry of credentials. Default the system's.
    ///   - save: keeps the credential for the next launch. It gets the current one after each change, by a sign-in or a
    ///     refresh, and nil after a sign-out; not the first one. Called off any lock, one call at a time, as a rule by the
    ///     thread that makes the change and before that returns, and before the requests that wait for a refresh go on.
    ///     Of changes that are made during a call it gets the last, when it has returned, on the same thread. Default:
    ///     the credential is in memory alone.
    public init(
        _ authenticator: Method,
        credential: Credential? = nil,
        refreshLimit: Int = 5,
        refreshWindow: TimeInterval = 30,
        refreshDeadline: TimeInterval? = 120,
        clock: any NetworkClock = SystemClock(),
        save: (@Sendable (Credential?) -> Void)? = nil
    ) {
        self.authenticator = authenticator
        self.refreshLimit = refreshLimit
        self.refreshWindow = refreshWindow
        self.refreshDeadline = refreshDeadline
        self.clock = clock
        self.save = save
        state = Locked(State(credential: credential))
        super.init()
    }

    // MARK: - The credential

    /// The current credential; nil when no user is signed in.
    public var credential: Credential? {
        state.withLock { $0.credential }
    }

    /// Replaces the credential. Requests that wait for a refresh, or have not been sent yet, are sent with the new one;
    /// the result of that refresh is ignored.
    public func signIn(_ credential: Credential) {
        replace(with: credential)
    }

    /// Removes the credential. Requests that wait for a refresh end with ``NetworkError/Code/unauthorized``; the result
    /// of that refresh is ignored. Requests that have not been sent yet, and later ones, are sent without a credential,
    /// and when they are refused, ``Authenticator/refresh(_:over:)`` is asked for one.
    public func signOut() {
        replace(with: nil)
    }

    private func replace(with credential: Credential?) {
        let (refresh, userVersion, old) = state.withLock { state in
            state.version += 1
            state.userVersion += 1
            state.beginnings = []
            return (state.refresh.take(), state.userVersion, exchange(&state.credential, with: credential))
        }
        // A value of the user's, so it is not released under a lock.
        withExtendedLifetime(old) {}
        refresh?.set(credential == nil ? .failure(Self.signedOut) : .success(userVersion))
        saveChanges()
    }

    private static var signedOut: NetworkError {
        NetworkError(code: .unauthorized, message: "signed out during the refresh")
    }

    /// Saves the current credential, unless a call of `save` is under way: that is followed by another one.
    private func saveChanges() {
        guard let save else { return }
        state.drain(\.isSaving) { state in
            guard state.savedVersion != state.version else { return nil }
            state.savedVersion = state.version
            return state.current
        } do: { (unsaved: Versioned) in
            save(unsaved.credential)
        }
    }

    // MARK: - Requests

    override var userVersion: Int { state.withLock { $0.userVersion } }

    override func isCurrent(_ credentialState: CredentialState) -> Bool {
        credentialState.isExempt || credentialState.userVersion == userVersion
    }

    override func authorize(
        _ message: TransportRequest,
        _ credentialState: CredentialState,
        after refresh: Refresh?,
        over service: @autoclosure () -> EasyNetworkService
    ) throws(NetworkError) -> Authorization {
        guard !credentialState.isExempt else { return .ready((message, credentialState)) }
        if let refresh { return .ready(try apply(try renewed(by: refresh), to: message, credentialState)) }
        while true {
            let current = current
            let isExpired = current.credential.map { authenticator.isExpired($0, at: clock.date) } ?? false
            if let refresh = try self.refresh(isExpired ? current.version : nil, service()) { return .wait(refresh) }
            // Otherwise the expired credential has been replaced by one whose expiry was not checked.
            if !isExpired { return .ready(try apply(current, to: message, credentialState)) }
        }
    }

    override func review(
        _ response: NetworkResponse,
        to message: TransportRequest,
        _ credentialState: CredentialState,
        after refresh: Refresh?,
        over service: @autoclosure () -> EasyNetworkService
    ) throws(NetworkError) -> Authorization? {
        guard !credentialState.isExempt,
            refresh != nil || response.statusCode == 401 || authenticator.isRefused(response)
        else { return nil }
        guard !credentialState.isReplay else {
            throw response.error(.unauthorized, message: "the server refused the new credential too")
        }
        let fresh: Versioned
        do throws(NetworkError) {
            if let refresh {
                fresh = try renewed(by: refresh)
            } else if let refresh = try self.refresh(credentialState.version, service()) {
                return .wait(refresh)
            } else {
                // The refusal of an older credential does not concern the current one.
                fresh = current
            }
        } catch {
            throw response.error(error.code, message: error.message, underlying: error.underlying)
        }
        var replay = credentialState
        replay.isReplay = true
        return .ready(try apply(fresh, to: message, replay))
    }

    private var current: Versioned { state.withLock { $0.current } }

    private func apply(
        _ current: Versioned,
        to message: TransportRequest,
        _ credentialState: CredentialState
    ) throws(NetworkError) -> Authorized {
        var message = message
        var credentialState = credentialState
        (credentialState.version, credentialState.userVersion) = (current.version, current.userVersion)
        do {
            if let credential = current.credential { try authenticator.apply(credential, to: &message) }
        } catch {
            let prefix = "the credential cannot be added to the request: "
            throw .thrown(error, otherwise: .invalidRequest, prefix: prefix)
        }
        return (message, credentialState)
    }

    // MARK: - The refresh

    /// The credential after a refresh that the call has waited for.
    private func renewed(by refresh: Refresh) throws(NetworkError) -> Versioned {
        guard let outcome = refresh.value else { throw NetworkError(code: .cancelled) }
        let userVersion = try outcome.get()
        let current = current
        // The user may have signed out since the refresh ended, for instance while its credential was being saved.
        guard current.credential != nil || current.userVersion == userVersion else { throw Self.signedOut }
        return current
    }

    /// - Returns: the refresh under way, or another one if the current credential has this version; nil when there is
    ///   none.
    private func refresh(
        _ version: Int?,
        _ service: @autoclosure () -> EasyNetworkService
    ) throws(NetworkError) -> Refresh? {
        let now = clock.now
        let hasTime = refreshDeadline.map { $0 > 0 } ?? true
        let (refresh, begins, credential) = state.withLock { state -> (Refresh?, begins: Bool, Credential?) in
            guard state.refresh == nil, version == state.version else { return (state.refresh, false, nil) }
            state.beginnings.removeAll { $0 <= now - refreshWindow }
            guard hasTime, state.beginnings.count < refreshLimit else { return (nil, true, nil) }
            state.beginnings.append(now)
            let refresh = Refresh()
            state.refresh = refresh
            return (refresh, true, state.credential)
        }
        guard begins else { return refresh }
        guard let refresh else {
            if let refreshDeadline, !hasTime {
                throw .invalidRequest(
                    "the refreshDeadline must be a positive number of seconds, but is \(refreshDeadline)"
                )
            }
            let times = "\(refreshLimit) times within \(refreshWindow) seconds"
            let message = "the credential was refreshed \(times), but is still refused or expired"
            throw NetworkError(code: .unauthorized, message: message)
        }
        begin(refresh, credential, service())
        return refresh
    }

    private func begin(_ refresh: Refresh, _ credential: Credential?, _ service: EasyNetworkService) {
        let sessions = Self.refreshing + [ObjectIdentifier(self)]
        let task = WorkQueue.task { [self] in
            // A sign-out that came before the task could be cancelled.
            guard state.withLock({ $0.refresh === refresh }) else { return }
            do {
                let fresh = try await Self.$refreshing.withValue(sessions) {
                    try await authenticator.refresh(credential, over: service)
                }
                finish(refresh, .success(fresh))
            } catch {
                finish(refresh, .failure(error))
            }
        }
        refresh.whenSet { task.cancel() }
        guard let refreshDeadline else { return }
        let timer = clock.schedule(after: refreshDeadline) { [weak self] in
            let message = "the refresh took longer than \(refreshDeadline) seconds"
            self?.finish(refresh, .failure(NetworkError(code: .timedOut, message: message)))
        }
        refresh.whenSet { timer.cancel() }
    }

    private func finish(_ refresh: Refresh, _ result: Result<Credential, any Error>) {
        let (isCurrent, userVersion, old) = state.withLock { state -> (Bool, Int, Credential?) in
            // Ignores a refresh whose credential was replaced.
            guard state.refresh === refresh else { return (false, 0, nil) }
            state.refresh = nil
            guard case .success(let fresh) = result else { return (true, state.userVersion, nil) }
            state.version += 1
            // Without a credential to refresh, anyone may have signed in.
            if state.credential == nil { state.userVersion += 1 }
            return (true, state.userVersion, exchange(&state.credential, with: fresh))
        }
        withExtendedLifetime(old) {}
        guard isCurrent else { return }
        switch result {
        case .success:
            // First, since a server that has replaced a refresh token refuses the old one.
            saveChanges()
            refresh.set(.success(userVersion))
        case .failure(let error):
            let cause = error as? NetworkError
            let reason = cause?.serverMessage ?? cause?.message ?? error.wording
            let message = "the credential could not be refreshed: \(reason.withoutFullStop)"
            refresh.set(.failure(NetworkError(code: .unauthorized, message: message, underlying: error)))
        }
    }
}
