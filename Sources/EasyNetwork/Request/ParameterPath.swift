import Foundation

/// Where among the parameters a value stands: `filter.tags[3]`.
struct ParameterPath {
    /// How deep containers may lie in one another. Deeper ones come from a container that holds itself.
    static let deepest = 100

    private(set) var text = ""
    private var depth = 0

    func appending(_ key: String) -> ParameterPath {
        var path = self
        path.text += text.isEmpty ? key : ".\(key)"
        return path
    }

    func appending(_ index: Int) -> ParameterPath {
        var path = self
        path.text += "[\(index)]"
        return path
    }

    /// - Throws: when this is too deep.
    func inside() throws(NetworkError) -> ParameterPath {
        guard depth < Self.deepest else {
            throw failure("containers lie more than \(Self.deepest) deep in one another; does one hold itself?")
        }
        var path = self
        path.depth += 1
        return path
    }

    func failure(_ reason: String) -> NetworkError {
        // A path of a hundred levels is long, and its beginning says where to look.
        let place = text.count > 200 ? text.prefix(200) + "…" : text
        return NetworkError(code: .invalidRequest, message: place.isEmpty ? reason : "parameter \(place): \(reason)")
    }

    /// The date as ISO 8601 in UTC, with milliseconds only if it has any: `2026-07-01T12:00:00Z`.
    ///
    /// - Throws: outside of the years 0 to 9999, for which there is no such text.
    func text(of date: Date) throws(NetworkError) -> String {
        let milliseconds = (date.timeIntervalSince1970 * 1_000).rounded()
        guard (-62_167_219_200_000..<253_402_300_800_000).contains(milliseconds) else {
            throw failure("a date outside of the years 0 to 9999 cannot be sent")
        }
        let (seconds, fraction) = Int64(milliseconds).flooredDivision(by: 1_000)
        let (days, secondOfDay) = seconds.flooredDivision(by: 86_400)
        let (year, month, day) = Self.civil(days: days)
        let text =
            Self.padded(year, 4) + "-" + Self.padded(month, 2) + "-" + Self.padded(day, 2) + "T"
            + Self.padded(secondOfDay / 3_600, 2) + ":" + Self.padded(secondOfDay / 60 % 60, 2) + ":"
            + Self.padded(secondOfDay % 60, 2)
        return text + (fraction == 0 ? "Z" : "." + Self.padded(fraction, 3) + "Z")
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
