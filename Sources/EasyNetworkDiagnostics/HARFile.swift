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

    private static let beginning =
        #"{"log":{"version":"1.2","creator":{"name":"EasyNetwork","version":"1.0"},"entries":["#

    private let path: String
    private let descriptor: Int32
    private let queue = BatchQueue<Entry>(label: "EasyNetwork.TrafficRecorder")
    /// The bytes of the entries that wait or are being written, and the number of entries that were dropped.
    private let load = Locked((count: 0, droppedEntries: 0))

    /// The offset of the end of the document.
    private var end = 0
    private var hasEntries = false
    private var failure: NetworkError?

    /// - Throws: ``/EasyNetwork/NetworkError/Code/cannotWriteFile``.
    init(_ file: URL) throws(NetworkError) {
        path = file.path
        guard file.isFileURL else {
            throw NetworkError(code: .cannotWriteFile, message: "\(file.withoutSecrets) is no address of a file")
        }
        // Opened first: without a descriptor nothing of this object is released.
        descriptor = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw .file("the recording \(path) cannot be made") }
        // Before the first secret is in it. A device or a pipe keeps its mode.
        var status = stat()
        let isFile = fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
        if isFile, fchmod(descriptor, 0o600) != 0 || ftruncate(descriptor, 0) != 0 {
            throw .file("the recording \(path) cannot be made readable by its owner only")
        }
        if let failure = write(Array(Self.beginning.utf8)) { throw failure }
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
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
        if failure == nil {
            var text: [UInt8] = []
            for entry in entries {
                text += (hasEntries ? "\n," : "\n").utf8
                entry.write(&text)
                hasEntries = true
            }
            failure = write(text)
        }
        let count = entries.reduce(0) { $0 + $1.count }
        load.withLock { $0.count -= count }
    }

    /// Returns when all entries up to now have been written.
    ///
    /// - Throws: the error of the first one that could not be.
    func settled() async throws(NetworkError) {
        let failure = await withCheckedContinuation { (continuation: CheckedContinuation<NetworkError?, Never>) in
            queue.settle({ self.write($0) }) {
                // Entries may have been dropped after the last one.
                if self.failure == nil { self.failure = self.write([]) }
                continuation.resume(returning: self.failure)
            }
        }
        if let failure { throw failure }
    }

    /// Writes a text and the end of the document in place of the end before.
    private func write(_ text: [UInt8]) -> NetworkError? {
        let dropped = load.withLock { $0.droppedEntries }
        let ending = "\n]" + (dropped == 0 ? "" : #","_dropped":\#(dropped)"#) + "}}\n"
        guard !writeAtEnd(text + ending.utf8) else {
            end += text.count
            return nil
        }
        let error = NetworkError.file("the recording \(path) cannot be written")
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
