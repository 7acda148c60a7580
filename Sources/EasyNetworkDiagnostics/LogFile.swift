import EasyNetwork
import Foundation

/// The file of a log.
///
/// Sendable because it is used on the log's queue only.
final class LogFile: @unchecked Sendable {
    private let files: RotatedFiles
    private let clock: any NetworkClock
    /// -1 while it cannot be opened.
    private var descriptor: Int32 = -1
    private var isFile = false
    /// The bytes of the file, and the moment of its beginning.
    private var count = 0
    private var beginning: TimeInterval = 0

    /// - Throws: ``/EasyNetwork/NetworkError/Code/cannotWriteFile``.
    init(_ file: URL, _ rotation: FileRotation, _ clock: any NetworkClock) throws(NetworkError) {
        files = try RotatedFiles(file, rotation)
        self.clock = clock
        guard files.begin(), open() else { throw .file("the log \(files.path) cannot be made") }
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    /// A pipe is opened only if somebody reads it: to wait for that would hold up the program.
    private func open() -> Bool {
        guard let opened = files.open(O_WRONLY | O_APPEND | O_NONBLOCK) else { return false }
        (descriptor, isFile) = opened
        (count, beginning) = (0, clock.now)
        return true
    }

    /// Writes a line and its line feed, in a new file if the current one is full or old.
    ///
    /// - Returns: false when the line is not in the file, nor a part of it.
    func write(_ line: String) -> Bool {
        if descriptor < 0, !open() { return false }
        let length = line.utf8.count + 1
        if isFile, count > 0, files.rotation?.isOver(count + length, age: clock.now - beginning) ?? false {
            // Without a new file the line is lost: the files stay bounded.
            guard files.moveAside() else { return false }
            close(descriptor)
            descriptor = -1
            guard open() else { return false }
        }
        guard LogWriter.write(line, to: descriptor) else {
            // The part for which there was room.
            if isFile { ftruncate(descriptor, off_t(count)) }
            return false
        }
        count += length
        return true
    }
}
