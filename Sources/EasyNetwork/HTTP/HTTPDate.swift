import Foundation

/// A moment in the forms that header fields have (RFC 9110, section 5.6.7).
///
/// Foundation's formatters are classes that ask for a locale and cost more than the rest of a header; these forms are
/// fixed, in English and in UTC.
struct HTTPDate: Hashable {
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    /// The day 0 of Unix was a Thursday.
    private static let weekdays = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]

    var date: Date

    init(_ date: Date) {
        self.date = date
    }

    /// All three forms, without regard to case; whether the day of the week is the right one is not looked at.
    ///
    /// - Parameter now: decides the century of the obsolete form that has two digits for the year.
    /// - Returns: nil for anything else, and for a day that no calendar has.
    init?(_ text: some StringProtocol, now: Date) {
        let words = String(text).utf8.split { " \t,".utf8.contains($0) }.map { Substring($0) }
        let parsed: Date? =
            switch words.count {
            // Sun, 06 Nov 1994 08:49:37 GMT
            case 6 where words[5].isGMT:
                Self.date(year: words[3], month: words[2], day: words[1], time: words[4])
            // Sunday, 06-Nov-94 08:49:37 GMT
            case 4 where words[3].isGMT:
                Self.obsoleteDate(words[1], time: words[2], now: now)
            // Sun Nov  6 08:49:37 1994
            case 5:
                Self.date(year: words[4], month: words[1], day: words[2], time: words[3])
            default:
                nil
            }
        guard let parsed, Self.isWeekday(words[0]) else { return nil }
        date = parsed
    }

    /// The form to send, IMF-fixdate: `Sun, 06 Nov 1994 08:49:37 GMT`. Years before 1 and after 9999 become these.
    var text: String {
        let range = -62_135_596_800.0...253_402_300_799.0
        // What is no number is no less and no greater than anything.
        let seconds = date.timeIntervalSince1970.isNaN ? 0 : date.timeIntervalSince1970.rounded(.down)
        let moment = Int64(min(max(seconds, range.lowerBound), range.upperBound))
        let time = Int(moment.remainder(86_400))
        let days = Int(moment.quotient(86_400))
        let (year, month, day) = Self.civil(days)
        let clock = [time / 3_600, time / 60 % 60, time % 60].map { Self.padded($0, 2) }.joined(separator: ":")
        let name = Self.weekdays[days.remainder(7)]
        return "\(name), \(Self.padded(day, 2)) \(Self.months[month - 1]) \(Self.padded(year, 4)) \(clock) GMT"
    }

    private static func padded(_ number: Int, _ width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
}

extension HTTPDate {
    /// A moment in UTC, in the calendar of today also for the days before it was introduced.
    ///
    /// - Parameter second: 60 for a leap second.
    /// - Returns: nil for what no calendar or clock has.
    static func date(year: Int, month: Int, day: Int, hour: Int, minute: Int, second: Int) -> Date? {
        guard (1...9_999).contains(year), (1...12).contains(month), (1...31).contains(day),
            (0...23).contains(hour), (0...59).contains(minute), (0...60).contains(second)
        else { return nil }
        let days = self.days(year, month, day)
        // A 31st of April is the first of May to the calculation.
        guard civil(days) == (year, month, day) else { return nil }
        return Date(
            timeIntervalSince1970: TimeInterval(days) * 86_400 + TimeInterval((hour * 60 + minute) * 60 + second)
        )
    }

    /// The number of a month by the first three letters of its name, in any case.
    static func month(_ name: some StringProtocol) -> Int? {
        let name = String(name.prefix(3))
        return months.firstIndex { $0.isEqualIgnoringASCIICase(to: name) }.map { $0 + 1 }
    }

    private static func date(year: Substring, month: Substring, day: Substring, time: Substring) -> Date? {
        guard year.utf8.count == 4, month.utf8.count == 3, (1...2).contains(day.utf8.count),
            let year = year.digits, let month = Self.month(month), let day = day.digits
        else { return nil }
        return date(year, month, day, time)
    }

    private static func obsoleteDate(_ text: Substring, time: Substring, now: Date) -> Date? {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0].utf8.count == 2, parts[1].utf8.count == 3, parts[2].utf8.count == 2,
            let day = parts[0].digits, let month = Self.month(parts[1]), let short = parts[2].digits
        else { return nil }
        let days = now.timeIntervalSince1970 / 86_400
        let (thisYear, thisMonth, today) = civil(days.isFinite && abs(days) < 3_000_000 ? Int(days.rounded(.down)) : 0)
        var year = thisYear - thisYear.remainder(100) + short
        // More than fifty years ahead is the past, and as far back in this century the next.
        if (year, month, day) > (thisYear + 50, thisMonth, today) { year -= 100 }
        if (year + 100, month, day) <= (thisYear + 50, thisMonth, today) { year += 100 }
        return date(year, month, day, time)
    }

    private static func date(_ year: Int, _ month: Int, _ day: Int, _ time: Substring) -> Date? {
        let parts = time.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 3, parts.allSatisfy({ $0.utf8.count == 2 }),
            let hour = parts[0].digits, let minute = parts[1].digits, let second = parts[2].digits
        else { return nil }
        return date(year: year, month: month, day: day, hour: hour, minute: minute, second: second)
    }

    private static func isWeekday(_ name: Substring) -> Bool {
        let whole = ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"]
        return (weekdays + whole).contains { $0.isEqualIgnoringASCIICase(to: String(name)) }
    }

    /// Days since the day 0 of Unix, counted in years that begin in March, so that the leap day is the last.
    private static func days(_ year: Int, _ month: Int, _ day: Int) -> Int {
        let marchYear = month > 2 ? year : year - 1
        let marchMonth = (month + 9) % 12
        let leapDays = marchYear.quotient(4) - marchYear.quotient(100) + marchYear.quotient(400)
        return marchYear * 365 + leapDays + (marchMonth * 153 + 2) / 5 + day - 1 - 719_468
    }

    /// The other way round, within periods of 400 years, which all have as many days.
    private static func civil(_ days: Int) -> (year: Int, month: Int, day: Int) {
        let shifted = days + 719_468
        let period = shifted.quotient(146_097)
        let dayOfPeriod = shifted.remainder(146_097)
        let leapDays = dayOfPeriod / 1_460 - dayOfPeriod / 36_524 + dayOfPeriod / 146_096
        let yearOfPeriod = (dayOfPeriod - leapDays) / 365
        let dayOfYear = dayOfPeriod - (365 * yearOfPeriod + yearOfPeriod / 4 - yearOfPeriod / 100)
        let marchMonth = (5 * dayOfYear + 2) / 153
        let month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
        let year = period * 400 + yearOfPeriod + (month <= 2 ? 1 : 0)
        return (year, month, dayOfYear - (153 * marchMonth + 2) / 5 + 1)
    }
}

extension SignedInteger {
    /// Rounded down, also below zero.
    fileprivate func quotient(_ divisor: Self) -> Self {
        (self - remainder(divisor)) / divisor
    }

    /// Never below zero.
    fileprivate func remainder(_ divisor: Self) -> Self {
        let rest = self % divisor
        return rest < 0 ? rest + divisor : rest
    }
}

extension Substring {
    fileprivate var isGMT: Bool { String(self).isEqualIgnoringASCIICase(to: "GMT") }

    /// The number, when there is nothing but digits.
    fileprivate var digits: Int? {
        utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } ? Int(self) : nil
    }
}
