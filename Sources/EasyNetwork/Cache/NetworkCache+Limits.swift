import Foundation

extension NetworkCache {
    /// How much is kept in memory; what was used least lately goes first.
    public struct Memory: Hashable, Sendable {
        /// Bytes of all entries, their headers included. Default 20,000,000. An entry that is larger is not kept.
        public var bytes: Int
        /// Entries. Default 1,000.
        public var count: Int

        /// - Parameters: of zero or less, nothing is kept in memory.
        public init(bytes: Int = 20_000_000, count: Int = 1_000) {
            self.bytes = bytes
            self.count = count
        }
    }

    /// Where and how much is kept on disk; what was used least lately goes first. What is nil has no limit.
    public struct Disk: Hashable, Sendable {
        /// The directory, which is made when something is first written to it. Its files can be read by their owner
        /// only, and are kept out of backups.
        ///
        /// Several caches, in one process or in many, may share a directory.
        public let directory: URL
        /// Bytes of all files. Default 200,000,000.
        public var bytes: Int?
        /// Entries. Default 10,000.
        public var count: Int?
        /// Seconds since the last use, to the minute. Default thirty days.
        public var age: TimeInterval?

        /// In ``NetworkCache/defaultDirectory``.
        public init(bytes: Int? = 200_000_000, count: Int? = 10_000, age: TimeInterval? = 2_592_000) {
            self.init(unchecked: NetworkCache.defaultDirectory, bytes: bytes, count: count, age: age)
        }

        /// - Parameter directory: one that holds nothing else, or nothing yet. Files that are not the cache's stay.
        /// - Throws: ``NetworkError/Code/invalidRequest`` when `directory` is no file URL.
        public init(
            directory: URL,
            bytes: Int? = 200_000_000,
            count: Int? = 10_000,
            age: TimeInterval? = 2_592_000
        ) throws(NetworkError) {
            guard directory.isFileURL, !directory.path.isEmpty else {
                let message = "the directory of a cache has to be a file URL, \(directory.absoluteString) is not"
                throw NetworkError(code: .invalidRequest, message: message)
            }
            self.init(unchecked: directory, bytes: bytes, count: count, age: age)
        }

        init(unchecked directory: URL, bytes: Int?, count: Int?, age: TimeInterval?) {
            self.directory = directory.absoluteURL
            self.bytes = bytes
            self.count = count
            self.age = age
        }

        /// A longer one is not ours, and is not to be read into memory.
        var longestFile: Int { bytes ?? 2_000_000_000 }

        func isExpired(_ usedAt: Date, now: Date) -> Bool {
            now.timeIntervalSince(usedAt) > age ?? .infinity
        }
    }

    /// `EasyNetwork` and in it the bundle identifier or name of the program, as on some systems all programs of a user
    /// share the folder of caches: that is, the one of the system on Apple's platforms; elsewhere `$XDG_CACHE_HOME`, or
    /// `~/.cache` when that names no absolute path.
    public static var defaultDirectory: URL {
        let program = Bundle.main.bundleIdentifier ?? ProcessInfo.processInfo.processName
        let name = program.replacingOccurrences(of: "/", with: "_")
        return
            cachesDirectory
            .appendingPathComponent("EasyNetwork", isDirectory: true)
            .appendingPathComponent(["", ".", ".."].contains(name) ? "program" : name, isDirectory: true)
    }

    private static var cachesDirectory: URL {
        #if canImport(Darwin)
        let folders = FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask)
        return folders.first ?? FileManager.default.temporaryDirectory
        #else
        if let path = ProcessInfo.processInfo.environment["XDG_CACHE_HOME"], path.hasPrefix("/") {
            return URL(fileURLWithPath: path, isDirectory: true)
        }
        return FileManager.default.homeDirectoryForCurrentUser.appendingPathComponent(".cache", isDirectory: true)
        #endif
    }
}
