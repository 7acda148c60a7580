import Foundation

/// The state of a partial file. It lies beside the part, so that a later download can resume it.
struct ResumeJournal: Codable, Equatable, Sendable {
    struct Segment: Codable, Equatable, Sendable {
        /// The offset of its first byte in the file.
        var lower: Int64
        /// The offset after its last byte; nil while it is not known.
        var upper: Int64?
        /// How many bytes of it have been written.
        var count: Int64 = 0
        /// How many of them have reached the disk, and survive a crash of the machine.
        var safeCount: Int64 = 0

        var isComplete: Bool { upper == lower + count }
    }

    static let currentVersion = 1

    var version = ResumeJournal.currentVersion
    /// The digest of the address, which may have secrets in it. Nil when the bytes are of several addresses.
    var resource: String?
    /// The digest of the address that answered, after redirects; nil when there were several.
    var location: String?
    /// Tells this state of the file from others; nil when no later download could use the part.
    var validator: RangeValidator?
    /// The length of the file; nil while it is not known.
    var total: Int64?
    var segments = [Segment(lower: 0)]
    /// The run of the machine in which it was written; nil when the system does not say. In the same run all that was
    /// written is there, even after a crash of the process.
    var boot: String?

    /// The journal as far as it can be trusted now.
    ///
    /// - Parameter size: of the part, in bytes.
    /// - Returns: nil when it says nothing about this part.
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

    /// Whether the segments cover the file, each byte once; the file may have been altered.
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

    /// No file is longer, and the sum of two such numbers fits.
    private static let lengthLimit = Int64.max / 4
}

// MARK: - Its file

extension ResumeJournal {
    /// No journal has more bytes: it has some hundred for each segment.
    private static let byteLimit = 16_777_216

    /// - Returns: nil when no readable journal of this user lies there.
    init?(at path: String) {
        guard let (descriptor, _) = try? RegularFile.open(path, O_RDONLY) else { return nil }
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        guard PartialFile.ownStatus(descriptor) != nil, let data = try? file.read(upToCount: Self.byteLimit),
            let journal = try? JSONDecoder().decode(Self.self, from: data)
        else { return nil }
        self = journal
    }

    /// Replaces the journal in one step. A failure costs bytes later, and is not an error now.
    func write(to path: String) {
        guard let data = try? JSONEncoder().encode(self) else { return }
        let new = path + ".new"
        // Left by a kill, or made by another program.
        unlink(new)
        let descriptor = open(new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            // On a full disk the existing journal stays, since its replacement might not fit.
            if errno != ENOSPC, errno != EDQUOT { overwrite(path, data) }
            return
        }
        DownloadLocation.letFileBeWrittenWhileLocked(new)
        let isWritten = data.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) } == data.count
        close(descriptor)
        if !isWritten || rename(new, path) != 0 { unlink(new) }
    }

    /// Overwrites the journal. No file can be created in a directory with the protection `complete`
    /// while the device is locked. A kill in between leaves a beginning, which is not read as a journal.
    private func overwrite(_ path: String, _ data: Data) {
        guard let (descriptor, _) = try? RegularFile.open(path, O_WRONLY) else { return }
        defer { close(descriptor) }
        guard PartialFile.ownStatus(descriptor) != nil, ftruncate(descriptor, 0) == 0 else { return }
        _ = data.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
    }

    /// Identifies the run of the machine; nil where the system does not tell.
    static let currentBoot: String? = {
        #if os(Linux)
        try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8).trimmed
        #elseif canImport(Darwin)
        // Not kern.boottime, which moves when the clock is set.
        var text = [UInt8](repeating: 0, count: 64)
        var size = text.count
        guard sysctlbyname("kern.bootsessionuuid", &text, &size, nil, 0) == 0 else { return nil }
        return String(decoding: text.prefix { $0 != 0 }, as: UTF8.self)
        #else
        nil
        #endif
    }()
}
