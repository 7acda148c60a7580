import Foundation

/// Reads dates of RFC 3339, section 5.6, in the same way on every platform: Foundation's readers differ in what they do with
/// fractions of seconds and with offsets.
enum InternetDate {
    /// - Parameter text: `2024-02-29T12:00:00Z`, with fractions of seconds or without, in any offset.
    /// - Returns: nil when it is no such date, or one that the calendar does not have.
    static func parse(_ text: String) -> Date? {
        var rest = Array(text.utf8)[...]
        guard let year = number(4, &rest), skip("-", &rest), let month = number(2, &rest), skip("-", &rest),
            let day = number(2, &rest), skip("Tt ", &rest), let hour = number(2, &rest), skip(":", &rest),
            let minute = number(2, &rest), skip(":", &rest), let second = number(2, &rest),
            let fraction = fraction(&rest), let offset = offset(&rest), rest.isEmpty
        else { return nil }
        // A leap second is the first one after it.
        guard (1...12).contains(month), day >= 1, day <= length(of: month, year), hour < 24, minute < 60, second <= 60
        else { return nil }
        let midnight = Double(daysSince1970(year, month, day)) * 86_400
        let seconds = hour * 3_600 + minute * 60 + second - offset
        return Date(timeIntervalSince1970: midnight + Double(seconds) + fraction)
    }

    private static func number(_ digits: Int, _ text: inout ArraySlice<UInt8>) -> Int? {
        let part = text.prefix(digits)
        guard part.count == digits, part.allSatisfy(\.isDigit) else { return nil }
        text = text.dropFirst(digits)
        return part.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
    }

    private static func skip(_ any: StaticString, _ text: inout ArraySlice<UInt8>) -> Bool {
        guard let byte = text.first, "\(any)".utf8.contains(byte) else { return false }
        text = text.dropFirst()
        return true
    }

    private static func fraction(_ text: inout ArraySlice<UInt8>) -> Double? {
        guard skip(".", &text) else { return 0 }
        let digits = text.prefix { $0.isDigit }
        text = text.dropFirst(digits.count)
        return digits.isEmpty ? nil : Double("0." + String(decoding: digits, as: UTF8.self))
    }

    /// Seconds east of Greenwich.
    private static func offset(_ text: inout ArraySlice<UInt8>) -> Int? {
        if skip("Zz", &text) { return 0 }
        let isWest = text.first == UInt8(ascii: "-")
        guard skip("+-", &text), let hours = number(2, &text), skip(":", &text), let minutes = number(2, &text),
            hours < 24, minutes < 60
        else { return nil }
        return (isWest ? -1 : 1) * (hours * 3_600 + minutes * 60)
    }

    private static func length(of month: Int, _ year: Int) -> Int {
        switch month {
        case 2: year.isMultiple(of: 4) && !year.isMultiple(of: 100) || year.isMultiple(of: 400) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    /// By years that begin in March, so that the leap day is the last.
    private static func daysSince1970(_ year: Int, _ month: Int, _ day: Int) -> Int {
        let fromMarch = (month + 9) % 12
        let marchYear = month <= 2 ? year - 1 : year
        // The year 0 begins in March of the year before: 400 years more keep divisions above zero.
        let years = marchYear + 400
        let leapDays = years / 4 - years / 100 + years / 400
        return years * 365 + leapDays + (fromMarch * 153 + 2) / 5 + day - 1 - 719_468 - 146_097
    }
}
