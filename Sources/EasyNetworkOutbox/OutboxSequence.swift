/// The numbers of entries, which define their order.
///
/// The file `sequence` contains a number, its base, and counts from the base by its length. Both can be damaged.
enum OutboxSequence {
    /// The end of the range of numbers. An entry with this number or a greater one becomes a dead letter.
    static let limit: UInt64 = 1 << 62
    /// The end of the range of bases. A base of this number or greater is damaged, and new numbers are not counted from
    /// an entry with such a number. From a smaller base, a file cannot count up to ``limit``.
    static let baseLimit = limit - 1 << 41
    /// The length at which a file is damaged or full.
    static let countLimit: UInt64 = 1 << 40
    /// The number of bytes that the file can lose when the power fails.
    private static let tolerance: UInt64 = 1 << 20

    /// The step that follows after the file has counted.
    enum Step: Equatable {
        /// The number is the next entry's.
        case take(UInt64)
        /// The file is too short by this number of bytes.
        case extend(by: Int)
        /// The file is damaged or full.
        case replace
    }

    /// - Parameters:
    ///   - base: the base of the file; `nil` if it is damaged.
    ///   - count: the number that the file has counted.
    ///   - minimum: the greatest number that is in use, below ``baseLimit``.
    static func step(base: UInt64?, count: UInt64, after minimum: UInt64) -> Step {
        guard let base, base < baseLimit, count > 0, count < countLimit else { return .replace }
        let number = base + count
        if number > minimum { return .take(number) }
        return minimum - number < tolerance ? .extend(by: Int(minimum - number) + 1) : .replace
    }
}
