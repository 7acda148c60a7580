import Foundation

/// How parameters are written that have no form of their own in a query, a form or JSON.
struct ParameterStyles: Hashable, Sendable {
    var dates = QueryEncoder.DateStyle.iso8601
    var data = QueryEncoder.DataStyle.base64

    func text(of data: Data) -> String {
        switch self.data {
        case .base64: return data.base64EncodedString()
        case .base64URL:
            return data.base64EncodedString()
                .replacingOccurrences(of: "+", with: "-")
                .replacingOccurrences(of: "/", with: "_")
                .replacingOccurrences(of: "=", with: "")
        case .hexadecimal: return data.hexadecimal
        }
    }

    /// - Throws: outside of the years 0 to 9999, for which there is no text.
    func value(of date: Date, at path: ParameterPath) throws(NetworkError) -> ParameterValue {
        let milliseconds = (date.timeIntervalSince1970 * 1_000).rounded()
        guard (-62_167_219_200_000..<253_402_300_800_000).contains(milliseconds) else {
            throw path.failure("a date outside of the years 0 to 9999 cannot be sent")
        }
        switch dates {
        case .iso8601: return .string(Self.iso8601(milliseconds: Int64(milliseconds)))
        case .secondsSince1970:
            let (seconds, fraction) = Int64(milliseconds).quotientAndRemainder(dividingBy: 1_000)
            return fraction == 0 ? .integer(seconds) : .double(milliseconds / 1_000)
        case .millisecondsSince1970: return .integer(Int64(milliseconds))
        case .pattern(let pattern): return .string(Self.text(of: date, pattern))
        }
    }

    private static func text(of date: Date, _ pattern: String) -> String {
        // Made each time: a formatter is no value that could be kept in one.
        let formatter = DateFormatter()
        formatter.calendar = Calendar(identifier: .gregorian)
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(secondsFromGMT: 0)
        // Without it, days before 1582 are those of the Julian calendar.
        formatter.gregorianStartDate = .distantPast
        formatter.dateFormat = pattern
        return formatter.string(from: date)
    }

    /// ISO 8601 in UTC, with milliseconds only if there are any: `2026-07-01T12:00:00Z`.
    private static func iso8601(milliseconds: Int64) -> String {
        let (seconds, fraction) = milliseconds.flooredDivision(by: 1_000)
        let (days, secondOfDay) = seconds.flooredDivision(by: 86_400)
        let (year, month, day) = civil(days: days)
        let text =
            padded(year, 4) + "-" + padded(month, 2) + "-" + padded(day, 2) + "T" + padded(secondOfDay / 3_600, 2) + ":"
            + padded(secondOfDay / 60 % 60, 2) + ":" + padded(secondOfDay % 60, 2)
        return text + (fraction == 0 ? "Z" : "." + padded(fraction, 3) + "Z")
    }

    /// Year, month and day of the Gregorian calendar from the days since 1970, counted in years that begin in March so
    /// that the leap day is the last. Integers instead of a formatter: formatters cut milliseconds, and cost far more.
    private static func civil(days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let (era, dayOfEra) = (days + 719_468).flooredDivision(by: 146_097)
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shifted = (5 * dayOfYear + 2) / 153
        let month = shifted < 10 ? shifted + 3 : shifted - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * shifted + 2) / 5 + 1)
    }

    private static func padded(_ number: Int64, _ width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
}

extension Int64 {
    /// Quotient and remainder with a remainder that is never negative.
    fileprivate func flooredDivision(by divisor: Int64) -> (quotient: Int64, remainder: Int64) {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
    }
}
