import Foundation

/// The form in which cookies lie in a file: JSON, in the order in which they were made.
struct CookieFile {
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

    /// - Returns: nothing when there is no file yet.
    /// - Throws: ``NetworkError/Code/invalidRequest`` when it cannot be read. It has been moved aside, to the same name
    ///   with `.damaged` behind it, or, if the error says so, lies where it was.
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

    /// Puts the cookies in the place of what was there, in one step: others see the old file or the new one. Session
    /// cookies are left out.
    ///
    /// - Throws: ``NetworkError/Code/invalidRequest`` when it cannot be written; the old one is still there.
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
            let message = "the file \(url.path) of the cookies cannot be written: \(error.wording)"
            throw NetworkError(code: .invalidRequest, message: message, underlying: error)
        }
    }

    /// From its first moment on nobody else can read it.
    private static func create(_ file: URL, _ data: Data) throws {
        let descriptor = open(file.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw systemError() }
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        try handle.write(contentsOf: data)
        // Or a machine that loses its power could have the new name with nothing in it.
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
        // Somebody's folder is not ours to move.
        let isMoved = exists && !isDirectory.boolValue && rename(url.path, aside.path) == 0
        let stays = exists ? ", it stays where it is, and nothing is kept" : ""
        let whereabouts = isMoved ? ", it has been moved to \(aside.path)" : stays
        let message = "the file \(url.path) of the cookies cannot be read\(whereabouts): \(cause.wording)"
        return NetworkError(code: .invalidRequest, message: message, underlying: cause)
    }
}
