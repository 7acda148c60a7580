import Foundation

/// The credential of a signed-in user, which is added to requests, and refreshed once for all requests that need it.
///
/// ```swift
/// let session = AuthenticationSession(Tokens(), credential: saved, save: save)
/// let host = HostConfiguration(baseURL: url) { $0.authentication = session }
/// ```
///
/// A refresh begins when a response refuses the credential, or when the credential has expired. The requests that need
/// it wait without a slot, and are then sent with the new credential. Each request is sent again at most once: a second
/// refusal ends it. If the refresh fails, all waiting requests end with ``NetworkError/Code/unauthorized`` and the
/// cause. A request that is cancelled while it waits ends at once. The refresh continues, because other requests need
/// it.
///
/// All members can be used from any thread.
public final class AuthenticationSession<Method: Authenticator>: RequestAuthentication, @unchecked Sendable {
    // Sendable because every property is constant or protected by a lock. `@unchecked` repeats the superclass's
    // conformance, as subclasses must.

    /// The credential of the ``Authenticator``.
    public typealias Credential = Method.Credential

    private struct State {
        var credential: Credential?
        /// Incremented with each change of the credential, including its removal.
        var version = 0
        /// See ``AuthenticationSession/userVersion``.
        var userVersion = 0
        /// The current refresh.
        var refresh: Refresh?
        /// The times at which the last refreshes began. At most ``refreshLimit`` times are kept.
        var beginnings: [TimeInterval] = []
        /// The version that was saved last, or is being saved.
        var savedVersion = 0
        var isSaving = false

        var current: Versioned { (credential, version, userVersion) }
    }

    /// A credential, its version, and the version of its user.
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
    ///   - authenticator: Applies and refreshes the credential.
    ///   - credential: The first credential. Defaults to `nil`: no user is signed in.
    ///   - refreshLimit: The number of refreshes that can begin within `refreshWindow`. Beyond it, requests end at once
    ///     with ``NetworkError/Code/unauthorized``. Defaults to 5.
    ///   - refreshWindow: The length of the window in seconds. Defaults to 30.
    ///   - refreshDeadline: The number of seconds after which a refresh fails and its task is cancelled. Defaults to
    ///     120; `nil` means no deadline. If it is zero, negative or NaN, no refresh begins: requests that need one fail
    ///     with ``NetworkError/Code/invalidRequest``.
    ///   - clock: The clock for the window, the deadline, and the expiry of credentials. Defaults to the system's.
    ///   - save: Saves the credential for the next launch. After a sign-in or a refresh, the closure gets the current
    ///     credential; after a sign-out, nil. It does not get the first credential. It is called outside all locks, one
    ///     call at a time. Usually, the thread that makes the change calls it before the change returns, and before the
    ///     requests that wait for a refresh continue. If the credential changes during a call, the same thread then
    ///     calls the closure again, with the last change. Defaults to `nil`: the credential is only in memory.
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

    /// The current credential; nil if no user is signed in.
    public var credential: Credential? {
        state.withLock { $0.credential }
    }

    /// Replaces the credential. Requests that wait for a refresh, or have not been sent yet, are sent with the new
    /// credential. The result of that refresh is ignored.
    public func signIn(_ credential: Credential) {
        replace(with: credential)
    }

    /// Removes the credential. Requests that wait for a refresh end with ``NetworkError/Code/unauthorized``, and the
    /// result of that refresh is ignored. Requests that have not been sent yet, and later ones, are sent without a
    /// credential. If the server refuses them, the session calls ``Authenticator/refresh(_:over:)``.
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
        // The old credential is a user's value, so it is not released under a lock.
        withExtendedLifetime(old) {}
        refresh?.set(credential == nil ? .failure(Self.signedOut) : .success(userVersion))
        saveChanges()
    }

    private static var signedOut: NetworkError {
        NetworkError(code: .unauthorized, message: "signed out during the refresh")
    }

    /// Saves the current credential. If another thread is calling `save`, that thread saves it afterwards.
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

    override func authorize(_ input: Input) throws(NetworkError) -> Authorization {
        guard !input.state.isExempt else { return .ready((input.message, input.state)) }
        let isReplay = input.state.isReplay
        if let refresh = input.refresh { return try apply(try renewed(by: refresh), to: input, isReplay: isReplay) }
        while true {
            let current = current
            let isExpired = current.credential.map { authenticator.isExpired($0, at: clock.date) } ?? false
            if let refresh = try refresh(isExpired ? current.version : nil, input.service) { return .wait(refresh) }
            // Otherwise, the expired credential has been replaced by one whose expiry has not been checked.
            if !isExpired { return try apply(current, to: input, isReplay: isReplay) }
        }
    }

    override func review(_ response: NetworkResponse, to input: Input) throws(NetworkError) -> Authorization? {
        guard !input.state.isExempt,
            input.refresh != nil || response.statusCode == 401 || authenticator.isRefused(response)
        else { return nil }
        guard !input.state.isReplay else {
            throw response.error(.unauthorized, message: "the server refused the new credential too")
        }
        let fresh: Versioned
        do throws(NetworkError) {
            if let refresh = input.refresh {
                fresh = try renewed(by: refresh)
            } else if let refresh = try refresh(input.state.version, input.service) {
                return .wait(refresh)
            } else {
                // The response refuses an older credential, so the current one can still be valid.
                fresh = current
            }
        } catch {
            var failure = response.error(error.code, message: error.message, underlying: error.underlying)
            // The message of the refused response is about the old credential. A person needs the reason of the refresh.
            if let cause = error.underlying { failure.serverMessage = (cause as? NetworkError)?.serverMessage }
            throw failure
        }
        return try apply(fresh, to: input, isReplay: true)
    }

    private var current: Versioned { state.withLock { $0.current } }

    private func apply(_ current: Versioned, to input: Input, isReplay: Bool) throws(NetworkError) -> Authorization {
        var message = input.message
        let state = CredentialState(version: current.version, userVersion: current.userVersion, isReplay: isReplay)
        do {
            if let credential = current.credential { try authenticator.apply(credential, to: &message) }
        } catch {
            let prefix = "the credential cannot be added to the request: "
            throw .thrown(error, otherwise: .invalidRequest, prefix: prefix)
        }
        return .ready((message, state))
    }

    // MARK: - The refresh

    /// Returns the credential after a refresh that the call has waited for.
    private func renewed(by refresh: Refresh) throws(NetworkError) -> Versioned {
        guard let outcome = refresh.value else { throw NetworkError(code: .cancelled) }
        let userVersion = try outcome.get()
        let current = current
        // The user may have signed out since the refresh ended, for example while its credential was being saved.
        guard current.credential != nil || current.userVersion == userVersion else { throw Self.signedOut }
        return current
    }

    /// Returns the current refresh, or begins one if the current credential has this version. Nil if no refresh is
    /// needed.
    private func refresh(_ version: Int?, _ service: () -> EasyNetworkService) throws(NetworkError) -> Refresh? {
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
            // A sign-out may have ended the refresh before its task could be cancelled.
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
            // If the credential was replaced during the refresh, ignore the result.
            guard state.refresh === refresh else { return (false, 0, nil) }
            state.refresh = nil
            guard case .success(let fresh) = result else { return (true, state.userVersion, nil) }
            state.version += 1
            // There was no credential to refresh, so any user may have signed in.
            if state.credential == nil { state.userVersion += 1 }
            return (true, state.userVersion, exchange(&state.credential, with: fresh))
        }
        withExtendedLifetime(old) {}
        guard isCurrent else { return }
        switch result {
        case .success:
            // Save the credential first: if the server has replaced a refresh token, it refuses the old one.
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
