import Dispatch
import EasyNetwork
import Foundation

/// A HAR file that is whole after each write: entries and the end of the document replace the end before, in one write.
///
/// Each entry is a line, also when a kill cuts the last one: systems write page after page, and end a process between
/// two. The line feed comes before the comma, so that a cut behind it changes nothing.
///
/// Sendable because what changes is used on the queue only.
final class HARFile: @unchecked Sendable {
    private typealias Entry = (count: Int, write: @Sendable (inout [UInt8]) -> Void)

    /// The bytes that may wait. A single entry may have more.
    private static let maximumLoad = 33_554_432

    /// The bytes behind the last entry, about.
    private static let endingCount = 40

    private static let beginning =
        #"{"log":{"version":"1.2","creator":{"name":"EasyNetwork","version":"1.0"},"entries":["#

    private let files: RotatedFiles
    private let clock: any NetworkClock
    private let queue = BatchQueue<Entry>(label: "EasyNetwork.TrafficRecorder")
    /// The bytes of the entries that wait or are being written, and the number of entries that were dropped.
    private let load = Locked((count: 0, droppedEntries: 0))

    /// -1 while it cannot be opened.
    private var descriptor: Int32 = -1
    private var isFile = false
    /// The moment of the beginning of the file.
    private var beginning: TimeInterval = 0
    /// The offset of the end of the document.
    private var end = 0
    private var hasEntries = false
    /// The first one.
    private var failure: NetworkError?

    /// - Throws: ``/EasyNetwork/NetworkError/Code/cannotWriteFile``.
    init(
        _ file: URL,
        _ rotation: FileRotation? = nil,
        _ clock: any NetworkClock = SystemClock()
    ) throws(NetworkError) {
        files = try RotatedFiles(file, rotation)
        self.clock = clock
        guard files.begin() else { throw .file("the recording \(files.path) that was there cannot be moved") }
        if let failure = open() { throw failure }
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    /// Begins a document.
    private func open() -> NetworkError? {
        (end, hasEntries) = (0, false)
        guard let opened = files.open(O_RDWR) else {
            return .file("the recording \(files.path) cannot be made for its owner only")
        }
        (descriptor, isFile) = opened
        beginning = clock.now
        let failure = append(Array(Self.beginning.utf8))
        if failure != nil {
            // Without its beginning it is no document: it is opened again.
            close(descriptor)
            descriptor = -1
        }
        return failure
    }

    /// Begins the next document; the one before is whole.
    private func rotate() -> NetworkError? {
        // Moved already if it could not be opened.
        if descriptor >= 0 {
            guard files.moveAside() else { return .file("the recording \(files.path) cannot be moved") }
            close(descriptor)
            descriptor = -1
        }
        return open()
    }

    /// - Parameters:
    ///   - count: the bytes that the entry keeps in memory.
    ///   - entry: appends the entry to a text, on the file's queue.
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
        // As many as fit into the file are written together.
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

    /// The entries of one write are in the file, or are lost.
    private func note(_ error: NetworkError?, _ count: Int) {
        guard let error else { return hasEntries = true }
        if failure == nil { failure = error }
        load.withLock { $0.droppedEntries += count }
    }

    /// Returns when all entries up to now have been written.
    ///
    /// - Throws: the error of the first one that could not be.
    func settled() async throws(NetworkError) {
        let failure = await withCheckedContinuation { (continuation: CheckedContinuation<NetworkError?, Never>) in
            queue.settle({ self.write($0) }) {
                // Entries may have been dropped after the last one.
                let failure = self.append([])
                if self.failure == nil { self.failure = failure }
                continuation.resume(returning: self.failure)
            }
        }
        if let failure { throw failure }
    }

    /// Writes a text and the end of the document in place of the end before.
    private func append(_ text: [UInt8]) -> NetworkError? {
        if descriptor < 0, let failure = open() { return failure }
        let dropped = load.withLock { $0.droppedEntries }
        let ending = "\n]" + (dropped == 0 ? "" : #","_dropped":\#(dropped)"#) + "}}\n"
        guard !writeAtEnd(text + ending.utf8) else {
            end += text.count
            return nil
        }
        let error = NetworkError.file("the recording \(files.path) cannot be written")
        // There is room for the end that was there.
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
