import Foundation

/// The state of a partial file. It is stored next to the part, so that a later download can resume it.
struct ResumeJournal: Codable, Equatable, Sendable {
    struct Segment: Codable, Equatable, Sendable {
        /// The offset of its first byte in the file.
        var lower: Int64
        /// The offset after its last byte; `nil` while it is unknown.
        var upper: Int64?
        /// The number of its bytes that have been written.
        var count: Int64 = 0
        /// The number of its bytes that have reached the disk, and survive a crash of the machine.
        var safeCount: Int64 = 0

        var isComplete: Bool { upper == lower + count }
    }

    static let currentVersion = 1

    var version = ResumeJournal.currentVersion
    /// The digest of the URL, which can contain secrets; `nil` if the bytes are from several URLs.
    var resource: String?
    /// The digest of the URL that responded, after redirects; `nil` if there were several.
    var location: String?
    /// The validator, which distinguishes this state of the file from others; `nil` if no later download could use the
    /// part.
    var validator: RangeValidator?
    /// The length of the file; `nil` while it is unknown.
    var total: Int64?
    var segments = [Segment(lower: 0)]
    /// The identifier of the system boot in which the journal was written; `nil` if the system provides none. Until the
    /// next boot, all written bytes exist, even after a crash of the process.
    var boot: String?

    /// Returns the journal with the bytes that can currently be trusted.
    ///
    /// - Parameter size: the size of the part in bytes.
    /// - Returns: the journal; `nil` if it does not describe this part.
    func trusted(boot: String?, size: Int64) -> ResumeJournal? {
        guard version == Self.currentVersion, isSound else { return nil }
        var journal = self
        if boot == nil || boot != self.boot {
            for index in segments.indices { journal.segments[index].count = segments[index].safeCount }
        }
        let isThere = journal.segments.allSatisfy { $0.count == 0 || $0.lower + $0.count <= size }
        guard isThere, journal.segments.contains(where: { $0.count > 0 }) else { return nil }
        return journal
    }

    /// Whether the segments cover the file, each byte once. The journal's file may have been altered.
    private var isSound: Bool {
        var position: Int64 = 0
        for (index, segment) in segments.enumerated() {
            guard segment.lower == position, segment.count >= 0, segment.safeCount >= 0,
                segment.count <= Self.lengthLimit, segment.safeCount <= segment.count
            else { return false }
            guard let upper = segment.upper else { return index == segments.count - 1 && total == nil }
            guard upper >= segment.lower + segment.count, upper <= Self.lengthLimit else { return false }
            position = upper
        }
        return !segments.isEmpty && total == position
    }

    /// No file is longer than this limit, and the sum of two such numbers does not overflow.
    private static let lengthLimit = Int64.max / 4
}

// MARK: - Its file

extension ResumeJournal {
    /// No journal is longer than this limit, because it has several hundred bytes for each segment.
    private static let byteLimit = 16_777_216

    /// - Returns: `nil` if no readable journal of this user exists there.
    init?(at path: String) {
        guard let (descriptor, _) = try? RegularFile.open(path, O_RDONLY) else { return nil }
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        guard PartialFile.ownStatus(descriptor) != nil, let data = try? file.read(upToCount: Self.byteLimit),
            let journal = try? JSONDecoder().decode(Self.self, from: data)
        else { return nil }
        self = journal
    }

    /// Replaces the journal in one step. A failure is ignored now, but costs bytes later.
    func write(to path: String) {
        guard let data = try? JSONEncoder().encode(self) else { return }
        let new = path + ".new"
        // A kill can have left the file, or another program can have created it.
        unlink(new)
        let descriptor = open(new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            // On a full disk, keep the existing journal, because its replacement might not fit.
            if errno != ENOSPC, errno != EDQUOT { overwrite(path, data) }
            return
        }
        DownloadLocation.letFileBeWrittenWhileLocked(new)
        let isWritten = data.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) } == data.count
        close(descriptor)
        if !isWritten || rename(new, path) != 0 { unlink(new) }
    }

    /// Overwrites the journal. No file can be created in a directory with the protection `complete` while the device is
    /// locked. A kill during the write leaves an incomplete file, which is not read as a journal.
    private func overwrite(_ path: String, _ data: Data) {
        guard let (descriptor, _) = try? RegularFile.open(path, O_WRONLY) else { return }
        defer { close(descriptor) }
        guard PartialFile.ownStatus(descriptor) != nil, ftruncate(descriptor, 0) == 0 else { return }
        _ = data.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
    }

    /// The identifier of the current system boot; `nil` if the system provides none.
    static let currentBoot: String? = {
        #if os(Linux)
        try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8).trimmed
        #elseif canImport(Darwin)
        // kern.boottime is unsuitable, because it changes when the clock is set.
        var text = [UInt8](repeating: 0, count: 64)
        var size = text.count
        guard sysctlbyname("kern.bootsessionuuid", &text, &size, nil, 0) == 0 else { return nil }
        return String(decoding: text.prefix { $0 != 0 }, as: UTF8.self)
        #else
        nil
        #endif
    }()
}
