import Foundation

/// What is known of a file of which a part is there: what its journal holds.
struct PartRecord: Codable, Equatable, Sendable {
    struct Segment: Codable, Equatable, Sendable {
        /// The place of its first byte in the file.
        var lower: Int
        /// The place behind its last byte; nil while nobody knows.
        var upper: Int?
        /// How many bytes of it have been written.
        var count = 0
        /// How many of them the disk has, whatever becomes of the machine.
        var safeCount = 0

        var isComplete: Bool { upper == lower + count }
    }

    static let currentVersion = 1

    var version = PartRecord.currentVersion
    /// The digest of the address: a journal is to tell nobody of secrets in it.
    var resource: String
    /// What tells this state of the file from others.
    var validator: RangeValidator
    /// The length of the file; nil while nobody knows.
    var total: Int?
    var segments: [Segment]
    /// The run of the machine in which it was written: in it, what was written is there, also after a crash of the
    /// process. Nil when the system does not say.
    var boot: String?

    /// The record as it may be trusted now.
    ///
    /// - Parameters:
    ///   - size: of the part, in bytes.
    /// - Returns: nil when it says nothing of this resource, or of this part.
    func trusted(for resource: String, boot: String?, size: Int) -> PartRecord? {
        guard version == Self.currentVersion, isSound else { return nil }
        // A date alone does not tell one file from another.
        if case .date = validator, resource != self.resource { return nil }
        var record = self
        if boot == nil || boot != self.boot {
            for index in segments.indices { record.segments[index].count = segments[index].safeCount }
        }
        let isThere = record.segments.allSatisfy { $0.count == 0 || $0.lower + $0.count <= size }
        guard isThere, record.segments.contains(where: { $0.count > 0 }) else { return nil }
        record.resource = resource
        return record
    }

    /// Whether the segments cover the file, each byte once; a journal may come from anywhere.
    private var isSound: Bool {
        var position = 0
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
    private static let lengthLimit = Int.max / 4
}
