import Foundation

/// How long a server asks to be left alone (RFC 9110, section 10.2.3).
struct RetryAfter: Hashable {
    /// Seconds from the moment at which the answer was looked at; 0 when the time is over already.
    var seconds: TimeInterval

    /// Of several fields the one that asks for the longest counts: none of them is to be disobeyed.
    ///
    /// - Parameter now: the wall clock's, for a field that has a date.
    /// - Returns: nil when no field says anything that can be understood.
    init?(_ headers: HTTPHeaders, now: Date) {
        let all = headers.values(for: "Retry-After").compactMap { RetryAfter($0, now: now) }
        guard let longest = all.max(by: { $0.seconds < $1.seconds }) else { return nil }
        self = longest
    }

    /// - Parameter value: a number of seconds, or a date in any of the three forms.
    init?(_ value: String, now: Date) {
        let text = value.drop { $0 == " " || $0 == "\t" }
        let digits = text.utf8.prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        let rest = text.utf8[digits.endIndex...]
        if !digits.isEmpty, rest.allSatisfy({ $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }) {
            // More digits than a number can have still mean very long.
            let number = Double(String(decoding: digits, as: UTF8.self)) ?? .greatestFiniteMagnitude
            seconds = min(number, .greatestFiniteMagnitude)
        } else if let date = Date(httpText: text.trimmed, now: now) {
            seconds = max(0, date.timeIntervalSince(now))
        } else {
            return nil
        }
    }
}
