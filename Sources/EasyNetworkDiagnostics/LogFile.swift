import EasyNetwork
import Foundation

/// The file of a log.
///
/// Sendable because it is used only on the log's queue.
final class LogFile: @unchecked Sendable {
    private let files: RotatedFiles
    private let clock: any NetworkClock
    /// The file's descriptor; -1 while the file cannot be opened.
    private var descriptor: Int32 = -1
    private var isFile = false
    /// The bytes of the file, and the time at which it was started.
    private var count = 0
    private var beginning: TimeInterval = 0

    /// - Throws: ``/EasyNetwork/NetworkError/Code/cannotWriteFile`` if the file cannot be created.
    init(_ file: URL, _ rotation: FileRotation, _ clock: any NetworkClock) throws(NetworkError) {
        files = try RotatedFiles(file, rotation)
        self.clock = clock
        guard files.begin(), open() else { throw .file("the log \(files.path) cannot be created") }
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    /// Opens the file. A pipe is opened only if it has a reader, because waiting for one would block the app.
    private func open() -> Bool {
        guard let opened = files.open(O_WRONLY | O_APPEND | O_NONBLOCK) else { return false }
        (descriptor, isFile) = opened
        (count, beginning) = (0, clock.now)
        return true
    }

    /// Writes a line and its line feed, to a new file if the current one is full or old.
    ///
    /// - Returns: false if the file contains neither the line nor a part of it.
    func write(_ line: String) -> Bool {
        if descriptor < 0, !open() { return false }
        let length = line.utf8.count + 1
        if isFile, count > 0, files.rotation?.isOver(count + length, age: clock.now - beginning) ?? false {
            // If the full file cannot be moved, the line is lost, so that the file stays bounded.
            guard files.moveAside() else { return false }
            close(descriptor)
            descriptor = -1
            guard open() else { return false }
        }
        guard LogWriter.write(line, to: descriptor) else {
            // The part that was written is removed.
            if isFile { ftruncate(descriptor, off_t(count)) }
            return false
        }
        count += length
        return true
    }
}
