import Dispatch
import EasyNetwork
import Foundation

/// A HAR file that is complete after each write. A write replaces the end of the document by new entries and a new end.
///
/// Each entry is a line, so that a kill can cut only the last one: systems write page by page, and a kill can come
/// between two pages. The line feed is before the comma, so that a cut after the comma changes nothing.
///
/// Sendable because its mutable state is used only on the queue.
final class HARFile: @unchecked Sendable {
    private typealias Entry = (count: Int, write: @Sendable (inout [UInt8]) -> Void)

    /// The maximum number of bytes that wait. A single entry can exceed it.
    private static let maximumLoad = 33_554_432

    /// The approximate number of bytes after the last entry.
    private static let endingCount = 40

    private static let beginning =
        #"{"log":{"version":"1.2","creator":{"name":"EasyNetwork","version":"1.0"},"entries":["#

    private let files: RotatedFiles
    private let clock: any NetworkClock
    private let queue = BatchQueue<Entry>(label: "EasyNetwork.TrafficRecorder")
    /// The number of bytes that wait or are being written, and the number of dropped entries.
    private let load = Locked((count: 0, droppedEntries: 0))

    /// The file's descriptor; -1 while the file cannot be opened.
    private var descriptor: Int32 = -1
    private var isFile = false
    /// The time at which the file was started.
    private var beginning: TimeInterval = 0
    /// The offset of the end of the document, after the last entry.
    private var end = 0
    private var hasEntries = false
    /// The first error.
    private var failure: NetworkError?

    /// - Throws: ``/EasyNetwork/NetworkError/Code/cannotWriteFile`` if the file cannot be created.
    init(
        _ file: URL,
        _ rotation: FileRotation? = nil,
        _ clock: any NetworkClock = SystemClock()
    ) throws(NetworkError) {
        files = try RotatedFiles(file, rotation)
        self.clock = clock
        guard files.begin() else { throw .file("the existing recording \(files.path) cannot be moved") }
        if let failure = open() { throw failure }
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    /// Starts a document.
    private func open() -> NetworkError? {
        (end, hasEntries) = (0, false)
        guard let opened = files.open(O_RDWR) else {
            return .file("the recording \(files.path) cannot be created with access for its owner only")
        }
        (descriptor, isFile) = opened
        beginning = clock.now
        let failure = append(Array(Self.beginning.utf8))
        if failure != nil {
            // Without its beginning the file is not a HAR document, so the next write opens it again.
            close(descriptor)
            descriptor = -1
        }
        return failure
    }

    /// Starts the next document. The document before it is complete.
    private func rotate() -> NetworkError? {
        // If the new file could not be opened before, the old one has already been moved.
        if descriptor >= 0 {
            guard files.moveAside() else { return .file("the recording \(files.path) cannot be moved") }
            close(descriptor)
            descriptor = -1
        }
        return open()
    }

    /// - Parameters:
    ///   - count: the number of bytes that the entry occupies in memory.
    ///   - entry: appends the entry to an array of bytes, on the file's queue.
    func append(_ count: Int, _ entry: @escaping @Sendable (inout [UInt8]) -> Void) {
        let hasRoom = load.withLock { load in
            guard load.count == 0 || load.count + count <= Self.maximumLoad else {
                load.droppedEntries += 1
                return false
            }
            load.count += count
            return true
        }
        if hasRoom { queue.add((count, entry)) { self.write($0) } }
    }

    private func write(_ entries: [Entry]) {
        // Entries that fit into the current file are written together.
        var (text, pendingCount): ([UInt8], Int) = ([], 0)
        func flush() {
            guard pendingCount > 0 else { return }
            note(append(text), pendingCount)
            (text, pendingCount) = ([], 0)
        }
        for entry in entries {
            let start = text.count
            let separator = hasEntries || pendingCount > 0 ? "\n," : "\n"
            text += separator.utf8
            entry.write(&text)
            pendingCount += 1
            if isOver(text.count), hasEntries || start > 0 {
                let last = Array("\n".utf8) + text[(start + separator.utf8.count)...]
                text.removeLast(text.count - start)
                pendingCount -= 1
                flush()
                let error = rotate()
                if error == nil { (text, pendingCount) = (last, 1) } else { note(error, 1) }
            }
        }
        flush()
        let count = entries.reduce(0) { $0 + $1.count }
        load.withLock { $0.count -= count }
    }

    private func isOver(_ count: Int) -> Bool {
        guard isFile, let rotation = files.rotation else { return false }
        return rotation.isOver(end + count + Self.endingCount, age: clock.now - beginning)
    }

    /// Records whether the entries of one write are in the file or lost.
    private func note(_ error: NetworkError?, _ count: Int) {
        guard let error else { return hasEntries = true }
        if failure == nil { failure = error }
        load.withLock { $0.droppedEntries += count }
    }

    /// Returns when all entries up to now have been written.
    ///
    /// - Throws: the first error.
    func settled() async throws(NetworkError) {
        let failure = await withCheckedContinuation { (continuation: CheckedContinuation<NetworkError?, Never>) in
            queue.settle({ self.write($0) }) {
                // The end is written again, because entries may have been dropped since the last write.
                let failure = self.append([])
                if self.failure == nil { self.failure = failure }
                continuation.resume(returning: self.failure)
            }
        }
        if let failure { throw failure }
    }

    /// Writes entries and the end of the document over the previous end.
    private func append(_ text: [UInt8]) -> NetworkError? {
        if descriptor < 0, let failure = open() { return failure }
        let dropped = load.withLock { $0.droppedEntries }
        let ending = "\n]" + (dropped == 0 ? "" : #","_dropped":\#(dropped)"#) + "}}\n"
        guard !writeAtEnd(text + ending.utf8) else {
            end += text.count
            return nil
        }
        let error = NetworkError.file("the recording \(files.path) cannot be written")
        // The space of the previous end suffices for an end without the new entries.
        if end > 0, writeAtEnd(Array(ending.utf8)) { ftruncate(descriptor, off_t(end + ending.utf8.count)) }
        return error
    }

    private func writeAtEnd(_ text: [UInt8]) -> Bool {
        text.withUnsafeBytes { bytes in
            var done = 0
            while done < bytes.count {
                let rest = bytes.baseAddress.map { $0 + done }
                let count = pwrite(descriptor, rest, bytes.count - done, off_t(end + done))
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { return false }
                done += count
            }
            return true
        }
    }
}
