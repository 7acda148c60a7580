import Dispatch
import Foundation

/// Stores the cookies that servers set, and returns them for later requests (RFC 6265).
///
/// ```swift
/// let host = HostConfiguration(baseURL: url) { $0.cookies = CookieJar() }
/// ```
///
/// Several hosts may share a jar. Cookies are kept in memory, and with a file beyond the end of the program. The package
/// has no list of public suffixes: a server cannot set a cookie for a single label such as `com`, but a server at
/// `a.co.uk` can for `co.uk`. Use one jar for each server if the servers do not trust each other.
///
/// A cookie has at most 4,096 bytes of name and value. A jar keeps 50 cookies for a domain and 3,000 in all, and removes
/// the least recently used ones first. It reads the first 200 `Set-Cookie` fields of a response. All members can be used
/// from any thread; none waits for the file.
public final class CookieJar: Sendable {
    private struct State {
        var store = CookieStore()
        /// Whether a write is queued that has not read the cookies yet.
        var isWriteDue = false
        var writeError: NetworkError?
    }

    private let state = Locked(State())
    /// Nil for a jar in memory.
    private let file: CookieFile?
    private let queue = DispatchQueue(label: "EasyNetwork.CookieJar", qos: .utility)

    /// The reason why the file could not be read; nil after success, without a file, and for a jar in memory.
    public let readError: NetworkError?

    /// Creates a jar in memory.
    public init() {
        file = nil
        readError = nil
    }

    /// Creates a jar that is kept in a file, which only its owner can read. The file and its folder are created when they
    /// do not exist.
    ///
    /// Reads the file at once. A damaged file is renamed, with `.damaged` appended to its name; the jar is empty then, and
    /// ``readError`` has the reason. Changes are written soon, in the background and as a whole; ``save()`` waits for that.
    /// Session cookies are not written. Two jars with one file do not know of each other: the last one to write wins.
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

    /// Applies the `Set-Cookie` fields of a response.
    ///
    /// - Parameters:
    ///   - url: the URL of the response.
    ///   - date: the current date.
    public func store(_ headers: HTTPHeaders, from url: URL, at date: Date = Date()) {
        change { $0.store(headers, from: url, at: date) }
    }

    /// The value of the `Cookie` field for a request to a URL; nil without a cookie.
    ///
    /// - Parameter date: the current date.
    public func cookieHeader(for url: URL, at date: Date = Date()) -> String? {
        state.withLock { $0.store.header(for: url, at: date) }
    }

    // MARK: - For programs

    /// The cookies that have not expired, in the order in which they were first set.
    public var cookies: [Cookie] {
        state.withLock { $0.store }.cookies(at: Date())
    }

    /// Stores a cookie in the place of the one with the same name, domain and path.
    public func set(_ cookie: Cookie) {
        let now = Date()
        change { $0.set(cookie, at: now) }
    }

    /// Removes all cookies.
    public func removeAll() {
        remove { _ in true }
    }

    /// Removes some cookies.
    ///
    /// - Parameter isUnwanted: called once for each cookie, on the caller's thread.
    public func remove(where isUnwanted: (Cookie) -> Bool) {
        // User code does not run under the lock.
        let unwanted = Set(state.withLock { $0.store }.cookies(at: .distantPast).filter(isUnwanted))
        change { $0.remove { unwanted.contains($0) } > 0 }
    }

    /// Returns when all earlier changes are in the file; at once for a jar in memory.
    ///
    /// - Throws: ``NetworkError/Code/invalidRequest`` when the file cannot be written, or could neither be read nor renamed.
    ///   The cookies stay in memory, and the next change tries again.
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
        // A write covers all changes that were made before it runs.
        guard isFirst, let file else { return }
        queue.async { _ = self.write(to: file) }
    }

    /// Called on the queue.
    ///
    /// - Returns: the error of the last write.
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

/// A file of cookies: JSON, in the order of their creation.
private struct CookieFile {
    let url: URL

    private struct Contents: Codable {
        var version: Int
        var cookies: [Record]
    }

    private struct Record: Codable {
        var name: String
        var value: String
        var domain: String
        var isHostOnly: Bool
        var path: String
        /// Seconds since 1970.
        var expires: TimeInterval
        var isSecure: Bool
        var isHTTPOnly: Bool

        init?(_ cookie: Cookie) {
            guard let expires = cookie.expires else { return nil }
            name = cookie.name
            value = cookie.value
            domain = cookie.domain
            isHostOnly = cookie.isHostOnly
            path = cookie.path
            self.expires = expires.timeIntervalSince1970
            isSecure = cookie.isSecure
            isHTTPOnly = cookie.isHTTPOnly
        }

        func cookie() throws(NetworkError) -> Cookie {
            try Cookie(
                name: name,
                value: value,
                domain: domain,
                isHostOnly: isHostOnly,
                path: path,
                expires: Date(timeIntervalSince1970: expires),
                isSecure: isSecure,
                isHTTPOnly: isHTTPOnly
            )
        }
    }

    private static let version = 1

    /// - Returns: an empty array when there is no file.
    /// - Throws: ``NetworkError/Code/invalidRequest`` when the file cannot be read. It has been renamed, unless the error
    ///   says that it stays.
    func read() throws(NetworkError) -> [Cookie] {
        do {
            let contents = try JSONDecoder().decode(Contents.self, from: Data(contentsOf: url))
            guard contents.version == Self.version else {
                throw NetworkError(code: .invalidRequest, message: "it has the version \(contents.version)")
            }
            return try contents.cookies.map { try $0.cookie() }
        } catch CocoaError.fileReadNoSuchFile {
            return []
        } catch {
            throw damaged(error)
        }
    }

    /// Replaces the file in one step. Session cookies are left out.
    ///
    /// - Throws: ``NetworkError/Code/invalidRequest`` when the file cannot be written; the old one stays.
    func write(_ cookies: [Cookie]) throws(NetworkError) {
        let temporary = url.deletingLastPathComponent()
            .appendingPathComponent(".\(url.lastPathComponent).\(UUID().uuidString)")
        do {
            let contents = Contents(version: Self.version, cookies: cookies.compactMap(Record.init))
            let data = try JSONEncoder().encode(contents)
            try FileManager.default.createDirectory(
                at: url.deletingLastPathComponent(),
                withIntermediateDirectories: true
            )
            try Self.create(temporary, data)
            guard rename(temporary.path, url.path) == 0 else { throw Self.systemError() }
        } catch {
            try? FileManager.default.removeItem(at: temporary)
            let message = "the cookie file \(url.path) cannot be written: \(error.wording)"
            throw NetworkError(code: .invalidRequest, message: message, underlying: error)
        }
    }

    /// Creates a file that only its owner can read.
    private static func create(_ file: URL, _ data: Data) throws {
        let descriptor = open(file.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw systemError() }
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        try handle.write(contentsOf: data)
        // Otherwise a power failure could leave the new name with an empty file.
        try handle.synchronize()
        try handle.close()
    }

    private static func systemError() -> POSIXError {
        POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO)
    }

    private func damaged(_ cause: any Error) -> NetworkError {
        let aside = URL(fileURLWithPath: url.path + ".damaged")
        var isDirectory = ObjCBool(false)
        let exists = FileManager.default.fileExists(atPath: url.path, isDirectory: &isDirectory)
        // A folder is not renamed: it is not the jar's.
        let isMoved = exists && !isDirectory.boolValue && rename(url.path, aside.path) == 0
        let stays = exists ? "; it stays, and cookies are not saved" : ""
        let consequence = isMoved ? "; it has been renamed to \(aside.path)" : stays
        let message = "the cookie file \(url.path) cannot be read\(consequence): \(cause.wording)"
        return NetworkError(code: .invalidRequest, message: message, underlying: cause)
    }
}
