import Dispatch
import Foundation

/// Keeps the cookies that servers set, and gives them back to whom they belong (RFC 6265).
///
/// ```swift
/// let host = HostConfiguration(baseURL: url) { $0.cookies = CookieJar() }
/// ```
///
/// Several hosts may share a jar. Cookies are kept in memory, and with a file beyond the end of the program. There is no
/// list of public suffixes in here: a server may not set a cookie for a single label such as `com`, but one of
/// `a.co.uk` can for `co.uk`. For servers that do not trust each other take one jar each.
///
/// 4,096 bytes of name and value are kept of one cookie, 50 cookies of one domain and 3,000 in all; of more those go
/// that were used least lately. The first 200 `Set-Cookie` fields of an answer count. All members may be used from any
/// thread; none waits for the file.
public final class CookieJar: Sendable {
    private struct State {
        var store = CookieStore()
        /// Whether a write has been asked for that has not taken its cookies yet.
        var isWriteDue = false
        var writeError: NetworkError?
    }

    private let state = Locked(State())
    /// Nil when cookies are kept in memory only.
    private let file: CookieFile?
    /// Writes in order, one at a time.
    private let queue = DispatchQueue(label: "EasyNetwork.CookieJar", qos: .utility)

    /// Why the file could not be read; nil when it could, when there was none, and for a jar in memory.
    public let readError: NetworkError?

    /// A jar in memory.
    public init() {
        file = nil
        readError = nil
    }

    /// A jar that is kept in a file, which only the own user can read. One that is not there yet is an empty jar; its
    /// folder is made, too.
    ///
    /// Reads it at once. A damaged file is an empty jar: it is moved aside, to the same name with `.damaged` behind it,
    /// and ``readError`` says so. Changes are written soon, in the background and as a whole; ``save()`` waits for that.
    /// Session cookies are not written. Two jars of one file do not know of each other: the one that writes last wins.
    public init(file: URL) {
        let file = CookieFile(url: file)
        do throws(NetworkError) {
            let cookies = try file.read()
            let now = Date()
            state.withLock { state in for cookie in cookies { _ = state.store.set(cookie, at: now) } }
            readError = nil
            self.file = file
        } catch {
            readError = error
            self.file = FileManager.default.fileExists(atPath: file.url.path) ? nil : file
        }
    }

    // MARK: - For requests

    /// Takes over the `Set-Cookie` fields of an answer.
    ///
    /// - Parameters:
    ///   - url: that answered.
    ///   - date: now, by the wall clock.
    public func store(_ headers: HTTPHeaders, from url: URL, at date: Date = Date()) {
        change { $0.store(headers, from: url, at: date) }
    }

    /// The value of the `Cookie` field for a request to this URL; nil when there is none.
    ///
    /// - Parameter date: now, by the wall clock.
    public func cookieHeader(for url: URL, at date: Date = Date()) -> String? {
        state.withLock { $0.store.header(for: url, at: date) }
    }

    // MARK: - For programs

    /// Those that have not expired, in the order in which they were set first.
    public var cookies: [Cookie] {
        state.withLock { $0.store }.cookies(at: Date())
    }

    /// Puts a cookie in, in the place of one of the same name, domain and path.
    public func set(_ cookie: Cookie) {
        let now = Date()
        change { $0.set(cookie, at: now) }
    }

    public func removeAll() {
        remove { _ in true }
    }

    /// - Parameter isUnwanted: is asked once about each.
    public func remove(where isUnwanted: (Cookie) -> Bool) {
        // The program's code does not run under the lock.
        let unwanted = Set(state.withLock { $0.store }.cookies(at: .distantPast).filter(isUnwanted))
        change { $0.remove { unwanted.contains($0) } > 0 }
    }

    /// Returns when what was set before is in the file; at once for a jar in memory.
    ///
    /// - Throws: ``NetworkError/Code/invalidRequest`` when the file cannot be written, or could not be read and lies
    ///   there still; the cookies are kept in memory all the same, and the next change tries again.
    public func save() async throws(NetworkError) {
        guard let file else {
            if let readError { throw readError }
            return
        }
        let error = await withCheckedContinuation { continuation in
            queue.async { continuation.resume(returning: self.write(to: file)) }
        }
        if let error { throw error }
    }

    // MARK: - The file

    private func change(_ body: (inout CookieStore) -> Bool) {
        let isFirst = state.withLock { state in
            guard body(&state.store), !state.isWriteDue else { return false }
            state.isWriteDue = true
            return true
        }
        // Many changes that come together are one write: it takes what there is when its turn has come.
        guard isFirst, let file else { return }
        queue.async { _ = self.write(to: file) }
    }

    /// On the queue.
    ///
    /// - Returns: why the last write failed; nil when it did not.
    private func write(to file: CookieFile) -> NetworkError? {
        let (store, isDue, last) = state.withLock { state in
            defer { state.isWriteDue = false }
            return (state.store, state.isWriteDue || state.writeError != nil, state.writeError)
        }
        guard isDue else { return last }
        var failure: NetworkError?
        do throws(NetworkError) {
            try file.write(store.cookies(at: Date()))
        } catch {
            failure = error
        }
        state.withLock { $0.writeError = failure }
        return failure
    }
}
