/// The numbers of entries, which are their order.
///
/// The file `sequence` begins with a number, its base, and counts from there by its length. Both may be damaged.
enum OutboxSequence {
    /// Numbers from here on are none of an outbox. An entry with such a number becomes a dead letter.
    static let limit: UInt64 = 1 << 62
    /// A base from here on is damaged, and no entry from here on has others come after it: below, all that a file
    /// counts stays below the limit.
    static let baseLimit = limit - 1 << 41
    /// A file of this length is damaged, or full.
    static let countLimit: UInt64 = 1 << 40
    /// The file may be shorter than it was by so much after a loss of power.
    private static let tolerance: UInt64 = 1 << 20

    /// What is to be done after the file has counted.
    enum Step: Equatable {
        /// This is the number of the next entry.
        case take(UInt64)
        /// The file is too short by so much.
        case extend(by: Int)
        /// The file is damaged, or full.
        case replace
    }

    /// - Parameters:
    ///   - base: that of the file, nil when it is damaged.
    ///   - count: what the file has counted.
    ///   - minimum: the number before the next one, below ``baseLimit``.
    static func step(base: UInt64?, count: UInt64, after minimum: UInt64) -> Step {
        guard let base, base < baseLimit, count > 0, count < countLimit else { return .replace }
        let number = base + count
        if number > minimum { return .take(number) }
        return minimum - number < tolerance ? .extend(by: Int(minimum - number) + 1) : .replace
    }
}
