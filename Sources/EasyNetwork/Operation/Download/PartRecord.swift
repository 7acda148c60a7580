import Foundation

/// What is known of a file of which a part is there: what its journal holds.
struct PartRecord: Codable, Equatable, Sendable {
    struct Segment: Codable, Equatable, Sendable {
        /// The place of its first byte in the file.
        var lower: Int64
        /// The place behind its last byte; nil while nobody knows.
        var upper: Int64?
        /// How many bytes of it have been written.
        var count: Int64 = 0
        /// How many of them the disk has, whatever becomes of the machine.
        var safeCount: Int64 = 0

        var isComplete: Bool { upper == lower + count }
    }

    static let currentVersion = 1

    var version = PartRecord.currentVersion
    /// The digest of the address: a journal is to tell nobody of secrets in it. Nil when the bytes are of several
    /// addresses.
    var resource: String?
    /// The digest of the address that answered, redirects followed; nil when there were several.
    var location: String?
    /// What tells this state of the file from others.
    var validator: RangeValidator
    /// The length of the file; nil while nobody knows.
    var total: Int64?
    var segments: [Segment]
    /// The run of the machine in which it was written: in it, what was written is there, also after a crash of the
    /// process. Nil when the system does not say.
    var boot: String?

    /// The record as it may be trusted now.
    ///
    /// - Parameter size: of the part, in bytes.
    /// - Returns: nil when it says nothing of this part.
    func trusted(boot: String?, size: Int64) -> PartRecord? {
        guard version == Self.currentVersion, isSound else { return nil }
        var record = self
        if boot == nil || boot != self.boot {
            for index in segments.indices { record.segments[index].count = segments[index].safeCount }
        }
        let isThere = record.segments.allSatisfy { $0.count == 0 || $0.lower + $0.count <= size }
        guard isThere, record.segments.contains(where: { $0.count > 0 }) else { return nil }
        return record
    }

    /// Whether the segments cover the file, each byte once; a journal may come from anywhere.
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

    /// No file is longer; sums of two such numbers fit.
    private static let lengthLimit = Int64.max / 4
}
