#if os(Linux)
import Dispatch
import EasyNetwork
import Foundation

/// Tells of what other processes do in the directory of an outbox: of each ``OutboxFolder/ring()``, and that a lock may
/// have been given back, also by a kill. See inotify(7).
///
/// Not all file systems tell, and a network's none of other machines: look from time to time, too.
final class OutboxWatch: @unchecked Sendable {
    // Sendable because the source is activated by the initializer and then only cancelled.
    private let source: any DispatchSourceRead
    /// Whether the end of a lock is told.
    static let tellsOfLocks = true

    /// - Parameter changed: called on a queue of its own.
    /// - Returns: nil when the system allows no more of them.
    init?(_ directory: String, _ changed: @escaping @Sendable () -> Void) {
        // A simulation has no events but its own.
        guard WorkQueue.loop == nil else { return nil }
        let descriptor = inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC))
        guard descriptor >= 0 else { return nil }
        // The end of a lock is the end of its descriptor, which is one of the directory itself.
        guard inotify_add_watch(descriptor, directory, UInt32(IN_MODIFY | IN_CLOSE_NOWRITE)) >= 0 else {
            close(descriptor)
            return nil
        }
        let queue = DispatchQueue(label: "EasyNetwork.Outbox.watch", autoreleaseFrequency: .workItem)
        source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue)
        source.setEventHandler {
            if Self.hasNews(descriptor) { changed() }
        }
        source.setCancelHandler { close(descriptor) }
        source.activate()
    }

    deinit {
        source.cancel()
    }

    /// Reads all events.
    ///
    /// - Returns: whether one of them is about the counter of changes or the directory itself. Others are about its
    ///   folders.
    private static func hasNews(_ descriptor: Int32) -> Bool {
        var isNews = false
        withUnsafeTemporaryAllocation(byteCount: 4_096, alignment: 8) { buffer in
            while true {
                let count = read(descriptor, buffer.baseAddress, buffer.count)
                guard count > 0 else { return }
                isNews = Self.isNews(UnsafeRawBufferPointer(rebasing: buffer[..<count])) || isNews
            }
        }
        return isNews
    }

    /// - Parameter events: as many of `struct inotify_event`, each with its name, as there are.
    static func isNews(_ events: UnsafeRawBufferPointer) -> Bool {
        var offset = 0
        while offset + 16 <= events.count {
            let mask = events.loadUnaligned(fromByteOffset: offset + 4, as: UInt32.self)
            let length = Int(events.loadUnaligned(fromByteOffset: offset + 12, as: UInt32.self))
            let name = events.dropFirst(offset + 16).prefix(length).prefix { $0 != 0 }
            if name.isEmpty || name.elementsEqual("changes".utf8) && mask & UInt32(IN_MODIFY) != 0 { return true }
            offset += 16 + length
        }
        return false
    }
}
#elseif canImport(Darwin)
import Dispatch
import Foundation

/// Tells of each ``OutboxFolder/ring()`` of other processes, by kqueue(2).
final class OutboxWatch: @unchecked Sendable {
    // Sendable because the source is activated by the initializer and then only cancelled.
    private let source: any DispatchSourceFileSystemObject
    static let tellsOfLocks = false

    /// - Parameter changed: called on a queue of its own.
    /// - Returns: nil when the file cannot be opened.
    init?(_ directory: String, _ changed: @escaping @Sendable () -> Void) {
        let descriptor = open(directory + "/changes", O_EVTONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        let queue = DispatchQueue(label: "EasyNetwork.Outbox.watch", autoreleaseFrequency: .workItem)
        source = DispatchSource.makeFileSystemObjectSource(
            fileDescriptor: descriptor,
            eventMask: [.write, .extend],
            queue: queue
        )
        source.setEventHandler(handler: changed)
        source.setCancelHandler { close(descriptor) }
        source.activate()
    }

    deinit {
        source.cancel()
    }
}
#endif
