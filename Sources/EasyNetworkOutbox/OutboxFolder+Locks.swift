import EasyNetwork
import Foundation

extension OutboxFolder {
    /// A lock on a directory. It ends when the object is released or the process ends.
    final class Lock: Sendable {
        private let descriptor: Int32

        private init(_ descriptor: Int32) {
            self.descriptor = descriptor
        }

        /// A lock that is not held yet.
        static func open(_ directory: String) throws -> Lock {
            let descriptor = Foundation.open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            guard descriptor >= 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
            return Lock(descriptor)
        }

        /// - Returns: false while another process or object holds the lock.
        func take() throws -> Bool {
            if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return true }
            guard errno == EWOULDBLOCK || errno == EINTR else {
                throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO)
            }
            return false
        }

        /// Waits until the lock is free. Other holders keep it only for a few disk operations.
        func wait() throws {
            while flock(descriptor, LOCK_EX) != 0 {
                guard errno == EINTR else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
            }
        }

        /// - Returns: the lock, or `nil` while another process or object holds it.
        static func take(_ directory: String) throws -> Lock? {
            let lock = try open(directory)
            return try lock.take() ? lock : nil
        }

        /// Returns whether the locked directory is still at a path.
        func isAt(_ path: String) -> Bool {
            var (one, other) = (stat(), stat())
            return fstat(descriptor, &one) == 0 && lstat(path, &other) == 0 && one.st_ino == other.st_ino
        }

        deinit {
            close(descriptor)
        }
    }

    /// An outbox's directory for temporary files. It is locked, so that other outboxes know that it is in use.
    final class Scratch: Sendable {
        let path: String
        private let lock: Lock?

        /// Whether the directory is locked. It isn't on systems that kill a suspended app that holds a lock. See
        /// ``ExpiringActivity``.
        static let isLocked = ExpiringActivity.system == nil

        init(in parent: String, _ files: CacheFiles) throws {
            while true {
                let path = parent + "/" + UUID().uuidString
                try files.makeDirectory(path)
                guard Self.isLocked else {
                    (self.path, lock) = (path, nil)
                    return
                }
                // Another outbox may remove the directory before it is locked. Then a new one is made.
                if let lock = try? Lock.take(path), lock.isAt(path) {
                    (self.path, self.lock) = (path, lock)
                    return
                }
            }
        }

        deinit {
            try? FileManager.default.removeItem(atPath: path)
        }

        /// Removes a scratch directory that is not in use, which is one that can be locked. A file, which earlier
        /// versions wrote, or a directory that is never locked, is removed after a day.
        static func sweep(_ path: String) {
            let attributes = try? FileManager.default.attributesOfItem(atPath: path)
            if attributes?[.type] as? FileAttributeType == .typeDirectory, isLocked {
                guard let lock = try? Lock.take(path) else { return }
                withExtendedLifetime(lock) { try? FileManager.default.removeItem(atPath: path) }
            } else if let date = attributes?[.modificationDate] as? Date, date < Date() - 86_400 {
                try? FileManager.default.removeItem(atPath: path)
            }
        }
    }
}
