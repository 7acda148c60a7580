import Dispatch
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A store of the cookies that servers set, for later requests (RFC 6265).
///
/// ```swift
/// let host = HostConfiguration(baseURL: url) { $0.cookies = CookieJar() }
/// ```
///
/// Several hosts can share a jar. Cookies are kept in memory; with a file, they outlast the program. The package has no
/// list of public suffixes: a server cannot set a cookie for a single label such as `com`, but a server at `a.co.uk`
/// can set one for `co.uk`. Use one jar for each server if the servers do not trust each other.
///
/// The name and value of a cookie have at most 4,096 bytes together. A jar keeps 50 cookies for a domain and 3,000 in
/// total, and removes the least recently used ones first. It reads the first 200 `Set-Cookie` fields of a response. All
/// members can be used from any thread, and none waits for the file.
public final class CookieJar: Sendable {
    /// The cookies, and whether some changes are not in the file yet.
    private let state = Locked((store: CookieStore(), isWriteDue: false))
    /// The file; nil for a jar in memory.
    private let file: CookieFile?
    private let queue = DispatchQueue(label: "EasyNetwork.CookieJar", qos: .utility, autoreleaseFrequency: .workItem)
    private let clock: any NetworkClock

    /// The reason why the file could not be read; `nil` if the file was read or does not exist, and for a jar in
    /// memory.
    public let readError: NetworkError?

    /// Creates a jar in memory.
    ///
    /// - Parameter clock: the clock that determines when cookies expire. Defaults to ``SystemClock``.
    public init(clock: any NetworkClock = SystemClock()) {
        self.clock = clock
        file = nil
        readError = nil
    }

    /// Creates a jar that is kept in a file, which only its owner can read. The file and its folder are created if they
    /// do not exist.
    ///
    /// The file is read immediately. If it is damaged or has more than 64 MiB, it is renamed, with `.damaged` appended
    /// to its name; the jar is then empty, and ``readError`` has the reason. A folder or a pipe in its place is not
    /// renamed. Changes are written soon, in the background, and the whole file is replaced; ``save()`` waits for that.
    /// Session cookies are not written. Two jars with the same file do not know about each other: the last one to write
    /// wins.
    ///
    /// - Parameters:
    ///   - file: the file of the jar.
    ///   - clock: the clock that determines when cookies expire. Defaults to ``SystemClock``.
    public init(file: URL, clock: any NetworkClock = SystemClock()) {
        self.clock = clock
        let file = CookieFile(url: file)
        do throws(NetworkError) {
            let cookies = try file.read()
            let now = clock.date
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
    ///   - headers: the header fields of the response.
    ///   - url: the URL of the response.
    ///   - date: the current date. Defaults to `nil`: the date of the jar's clock.
    public func store(_ headers: HTTPHeaders, from url: URL, at date: Date? = nil) {
        let now = date ?? clock.date
        change { $0.store(headers, from: url, at: now) }
    }

    /// Returns the value of the `Cookie` field for a request to a URL, or `nil` without a cookie.
    ///
    /// - Parameters:
    ///   - url: the URL of the request.
    ///   - date: the current date. Defaults to `nil`: the date of the jar's clock.
    public func cookieHeader(for url: URL, at date: Date? = nil) -> String? {
        let now = date ?? clock.date
        return state.withLock { $0.store.header(for: url, at: now) }
    }

    // MARK: - For programs

    /// The cookies that have not expired, in the order in which they were first set.
    ///
    /// The domain of a cookie that is sent to only one host has no leading dot. Printing a cookie shows its value.
    public var cookies: [HTTPCookie] {
        state.withLock { $0.store }.cookies(at: clock.date).compactMap(\.httpCookie)
    }

    /// Stores a cookie, replacing the one with the same name, domain and path.
    ///
    /// ```swift
    /// let theme = HTTPCookie(properties: [.name: "theme", .value: "dark", .domain: "example.com", .path: "/"])
    /// if let theme { try jar.set(theme) }
    /// ```
    ///
    /// - Throws: ``NetworkError/Code/invalidRequest`` if a name, value, domain or path is invalid; if the domain begins
    ///   with a dot and is a single label or an address; or if the name begins with `__Secure-` or `__Host-` and the
    ///   cookie lacks the properties that the prefix requires.
    public func set(_ cookie: HTTPCookie) throws(NetworkError) {
        let cookie = try Cookie(cookie)
        let now = clock.date
        change { $0.set(cookie, at: now) }
    }

    /// Removes all cookies.
    public func removeAll() {
        change { $0.remove { _ in true } }
    }

    /// Removes the cookies for which a closure returns true.
    ///
    /// - Parameter isUnwanted: the closure, which is called once for each cookie, on the caller's thread. If Foundation
    ///   rejects the value of a cookie, the closure gets the cookie with an empty value.
    public func remove(where isUnwanted: (HTTPCookie) -> Bool) {
        // Don't hold the lock while user code runs.
        let all = state.withLock { $0.store }.cookies(at: .distantPast)
        let unwanted = Set(all.filter { ($0.httpCookie ?? $0.httpCookie(value: "")).map(isUnwanted) ?? true })
        change { $0.remove(where: unwanted.contains) }
    }

    /// Waits until all earlier changes are in the file. For a jar in memory, it returns at once.
    ///
    /// - Throws: ``NetworkError/Code/invalidRequest`` if the file cannot be written, or could neither be read nor
    ///   renamed. The cookies stay in memory, and the next change tries again.
    public func save() async throws(NetworkError) {
        guard let file else {
            if let readError { throw readError }
            return
        }
        let result: Result<Void, NetworkError> = await withCheckedContinuation { continuation in
            queue.add {
                continuation.resume(returning: Result { () throws(NetworkError) in try self.write(to: file) })
            }
        }
        try result.get()
    }

    // MARK: - The file

    private func change(_ body: (inout CookieStore) -> Bool) {
        let isWriteDue = state.withLock { state in
            let isChanged = body(&state.store)
            if isChanged { state.isWriteDue = true }
            return isChanged
        }
        guard isWriteDue, let file else { return }
        queue.add { try? self.write(to: file) }
    }

    /// Writes all changes that were made before the call. Called on the queue.
    private func write(to file: CookieFile) throws(NetworkError) {
        let changed = state.withLock { state in
            defer { state.isWriteDue = false }
            return state.isWriteDue ? state.store : nil
        }
        guard let changed else { return }
        do throws(NetworkError) {
            try file.write(changed.cookies(at: clock.date))
        } catch {
            state.withLock { $0.isWriteDue = true }
            throw error
        }
    }
}

/// A file of cookies: JSON, in the order of their creation.
private struct CookieFile {
    let url: URL

    /// The maximum number of bytes to read: several times the size of a full jar of the largest cookies.
    private static let maximumCount = 67_108_864

    private struct Contents: Codable {
        var version = 1
        /// The cookies, with their expiry in seconds since 1970.
        var cookies: [Cookie]
    }

    /// - Returns: an empty array if there is no file.
    /// - Throws: ``NetworkError/Code/invalidRequest`` if the file cannot be read. The file has then been renamed,
    ///   unless the error says that it stays.
    func read() throws(NetworkError) -> [Cookie] {
        do {
            let decoder = JSONDecoder()
            decoder.dateDecodingStrategy = .secondsSince1970
            let (descriptor, _) = try RegularFile.open(url.path, O_RDONLY, followsLinks: true)
            let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
            let data = try handle.read(upToCount: Self.maximumCount + 1) ?? Data()
            guard data.count <= Self.maximumCount else {
                throw NetworkError(code: .invalidRequest, message: "the file has more than \(Self.maximumCount) bytes")
            }
            let contents = try decoder.decode(Contents.self, from: data)
            guard contents.version == 1 else {
                throw NetworkError(code: .invalidRequest, message: "the file has the version \(contents.version)")
            }
            for cookie in contents.cookies { try cookie.check() }
            return contents.cookies
        } catch POSIXError.ENOENT {
            return []
        } catch {
            throw damaged(error)
        }
    }

    /// Replaces the file in one step. Session cookies are omitted.
    ///
    /// - Throws: ``NetworkError/Code/invalidRequest`` if the file cannot be written; the old one is kept.
    func write(_ cookies: [Cookie]) throws(NetworkError) {
        let folder = url.deletingLastPathComponent()
        let temporary = folder.appendingPathComponent(".\(url.lastPathComponent).\(UUID().uuidString)")
        let files = FileManager.default
        do {
            let encoder = JSONEncoder()
            encoder.dateEncodingStrategy = .secondsSince1970
            let data = try encoder.encode(Contents(cookies: cookies.filter { $0.expires != nil }))
            try files.createDirectory(at: folder, withIntermediateDirectories: true)
            // Create the file so that only its owner can read it, before it has contents.
            _ = files.createFile(atPath: temporary.path, contents: nil, attributes: [.posixPermissions: 0o600])
            let handle = try FileHandle(forWritingTo: temporary)
            try handle.write(contentsOf: data)
            // Without synchronizing, a power failure could leave an empty file under the new name.
            try handle.synchronize()
            try handle.close()
            guard rename(temporary.path, url.path) == 0 else {
                throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO)
            }
        } catch {
            try? files.removeItem(at: temporary)
            let message = "the cookie file \(url.path) cannot be written: \(error.wording)"
            throw NetworkError(code: .invalidRequest, message: message, underlying: error)
        }
    }

    private func damaged(_ cause: any Error) -> NetworkError {
        let aside = URL(fileURLWithPath: url.path + ".damaged")
        var status = stat()
        let exists = stat(url.path, &status) == 0
        // Don't rename a folder, a pipe or a device: it does not belong to the jar.
        let isMoved = exists && status.st_mode & S_IFMT == S_IFREG && rename(url.path, aside.path) == 0
        let stays = exists ? "; it stays, and cookies are not saved" : ""
        let consequence = isMoved ? "; it has been renamed to \(aside.path)" : stays
        let isFile = (cause as? POSIXError)?.code != .EISDIR
        let reason = isFile ? (cause as? NetworkError)?.message ?? cause.wording : "it is not a regular file"
        let message = "the cookie file \(url.path) cannot be read\(consequence): \(reason)"
        return NetworkError(code: .invalidRequest, message: message, underlying: cause)
    }
}

extension CookieJar: CustomReflectable {
    /// A mirror without children, so that a dump shows no value.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
