#if os(Linux)
import Dispatch
import EasyNetwork
import Foundation

/// Watches the directory of an outbox for changes by other processes: each ``OutboxFolder/signalChange()``, and the possible
/// release of a lock, even by a kill. See inotify(7).
///
/// Some file systems report nothing, and network file systems report no changes by other machines. Check from time to
/// time as well.
final class OutboxWatch: @unchecked Sendable {
    // Sendable because the source is activated by the initializer and then only cancelled.
    private let source: any DispatchSourceRead
    /// Whether the release of a lock is reported.
    static let tellsOfLocks = true

    /// - Parameter changed: called on the watch's own queue.
    /// - Returns: `nil` if the system allows no more watches.
    init?(_ directory: String, _ changed: @escaping @Sendable () -> Void) {
        // A simulation has only its own events.
        guard WorkQueue.loop == nil else { return nil }
        let descriptor = inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC))
        guard descriptor >= 0 else { return nil }
        // Releasing a lock closes its descriptor, which is a descriptor of the directory itself.
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
    /// - Returns: whether an event concerns the counter of changes or the directory itself. Other events concern its
    ///   subdirectories.
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

    /// - Parameter events: consecutive values of `struct inotify_event`, each followed by its name.
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

/// Watches for each ``OutboxFolder/signalChange()`` of other processes. See kqueue(2).
final class OutboxWatch: @unchecked Sendable {
    // Sendable because the source is activated by the initializer and then only cancelled.
    private let source: any DispatchSourceFileSystemObject
    static let tellsOfLocks = false

    /// - Parameter changed: called on the watch's own queue.
    /// - Returns: `nil` if the file cannot be opened.
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
