import Foundation

/// Seconds as caching fields have them (RFC 9111, section 1.2.2).
enum DeltaSeconds {
    /// What a greater number becomes: sixty-eight years.
    static let maximum: TimeInterval = 2_147_483_648

    /// - Returns: nil for what is not made of digits alone.
    static func parse(_ text: some StringProtocol) -> TimeInterval? {
        guard !text.isEmpty, text.utf8.allSatisfy(\.isDigit) else { return nil }
        return min(Double(String(text)) ?? maximum, maximum)
    }

    /// The form to send, rounded down.
    static func text(_ seconds: TimeInterval) -> String {
        String(Int64(seconds.isFinite ? min(max(seconds, 0), maximum) : maximum))
    }
}
