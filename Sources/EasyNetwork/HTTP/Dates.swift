import Foundation

/// A day and a time of day in UTC. The Gregorian calendar also applies to the days before its introduction.
///
/// Foundation's calendar is Julian before 1582, and using it costs more than the rest of a header. `timegm` ends in
/// 2038 where `time_t` has 32 bits (watchOS).
struct CivilDate {
    var year = 1970
    var month = 1
    var day = 1
    var hour = 0
    var minute = 0
    var second = 0

    /// The date; nil for a day or a time that does not exist. Second 60 is the first second of the next minute.
    var date: Date? {
        guard (0...9_999).contains(year), (1...12).contains(month), (1...lengthOfMonth).contains(day),
            (0...23).contains(hour), (0...59).contains(minute), (0...60).contains(second)
        else { return nil }
        // In a year that begins in March, the leap day is the last day. Adding 400 years keeps the dividends positive.
        let years = year + 400 - (month <= 2 ? 1 : 0)
        let dayOfYear = ((month + 9) % 12 * 153 + 2) / 5 + day - 1
        let days = years * 365 + years / 4 - years / 100 + years / 400 + dayOfYear - 719_468 - 146_097
        return Date(
            timeIntervalSince1970: TimeInterval(days) * 86_400 + TimeInterval((hour * 60 + minute) * 60 + second)
        )
    }

    private var lengthOfMonth: Int {
        let isLeapYear = year.isMultiple(of: 4) && !year.isMultiple(of: 100) || year.isMultiple(of: 400)
        return month == 2 ? (isLeapYear ? 29 : 28) : 30 + (month + month / 8) % 2
    }
}

extension CivilDate {
    /// Creates the nearest date within the years 1 to 9999; 1970 for NaN.
    init(_ date: Date) {
        let seconds = date.timeIntervalSince1970.isNaN ? 0 : date.timeIntervalSince1970.rounded(.down)
        // Count from 0000-03-01.
        let moment = Int64(min(max(seconds, -62_135_596_800), 253_402_300_799)) + 719_468 * 86_400
        let (days, time) = (Int(moment / 86_400), Int(moment % 86_400))
        let dayOfPeriod = days % 146_097
        let leapDays = dayOfPeriod / 1_460 - dayOfPeriod / 36_524 + dayOfPeriod / 146_096
        let yearOfPeriod = (dayOfPeriod - leapDays) / 365
        let dayOfYear = dayOfPeriod - (365 * yearOfPeriod + yearOfPeriod / 4 - yearOfPeriod / 100)
        let marchMonth = (5 * dayOfYear + 2) / 153
        month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
        year = days / 146_097 * 400 + yearOfPeriod + (month <= 2 ? 1 : 0)
        day = dayOfYear - (153 * marchMonth + 2) / 5 + 1
        (hour, minute, second) = (time / 3_600, time / 60 % 60, time % 60)
    }

    fileprivate var timeOfDay: String { "\(padded(hour)):\(padded(minute)):\(padded(second))" }

    /// The date without a fraction and an offset from UTC: `2026-07-01T12:00:00`.
    fileprivate var rfc3339Text: String { "\(padded(year, 4))-\(padded(month))-\(padded(day))T\(timeOfDay)" }

    fileprivate static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    /// Returns the number of a month from the first three letters of its name, in any case.
    static func month(_ name: some Collection<UInt8>) -> Int? {
        let index = months.firstIndex { month in
            month.utf8.elementsEqual(name.prefix(3)) { $0.lowercasedASCII == $1.lowercasedASCII }
        }
        return index.map { $0 + 1 }
    }
}

extension Date {
    /// The names of the weekdays in order from 1970-01-01: first the short ones, then the long ones.
    fileprivate static let weekdays = [
        "Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed",
        "Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday",
    ]

    /// Reads a date in one of the three formats of a header field (RFC 9110, section 5.6.7), in any case. As some
    /// servers write it, the day can have one digit, and `UTC` or `+0000` can replace `GMT`.
    ///
    /// The day of the week is not compared with the date.
    ///
    /// - Parameters:
    ///   - now: The current date. It decides the century in the obsolete format, which has two digits for the year.
    ///   - isStrict: Whether only the three formats themselves are accepted. Defaults to `false`.
    package init?(httpText text: some StringProtocol, now: Date, isStrict: Bool = false) {
        var reader = DateReader(text)
        reader.isStrict = isStrict
        guard reader.weekday() else { return nil }
        var moment: CivilDate?
        if reader.skip(", ") {
            moment = reader.dayFirst(now: now)
        } else if reader.skip(" "), let month = reader.month(), reader.skip(" "),
            let day = reader.skip(" ") ? reader.number(1) : reader.day(), reader.skip(" "),
            var time = reader.time(), reader.skip(" "), let year = reader.number(4)
        {
            // The asctime format: Sun Nov  6 08:49:37 1994
            (time.year, time.month, time.day) = (year, month, day)
            moment = time
        }
        guard let moment, reader.isAtEnd, moment.year > 0, let date = moment.date else { return nil }
        self = date
    }

    /// The date in the format to send, IMF-fixdate: `Sun, 06 Nov 1994 08:49:37 GMT`. Years are clamped to 1 to 9999.
    var httpText: String {
        let moment = CivilDate(self)
        // Adding about ten thousand years, in whole weeks, keeps the remainder positive.
        let days = (moment.date ?? self).timeIntervalSince1970 / 86_400 + 3_650_003
        return "\(Self.weekdays[Int(days) % 7]), \(padded(moment.day)) \(CivilDate.months[moment.month - 1]) "
            + "\(padded(moment.year, 4)) \(moment.timeOfDay) GMT"
    }

    /// The date in the format of RFC 3339, section 5.6, in UTC, with milliseconds if there are any:
    /// `2026-07-01T12:00:00.250Z`. Nil outside of the years 1 to 9999.
    var rfc3339Text: String? {
        let milliseconds = (timeIntervalSince1970 * 1_000).rounded()
        guard (-62_135_596_800_000..<253_402_300_800_000).contains(milliseconds) else { return nil }
        let seconds = (milliseconds / 1_000).rounded(.down)
        let fraction = Int(milliseconds - seconds * 1_000)
        let moment = CivilDate(Date(timeIntervalSince1970: seconds))
        return moment.rfc3339Text + (fraction == 0 ? "Z" : ".\(padded(fraction, 3))Z")
    }

    /// The time in UTC with truncated milliseconds: `2026-07-01T12:00:00.250Z`. Years are clamped to 1 to 9999.
    package var timestamp: String {
        let seconds = timeIntervalSince1970
        let fraction = seconds.isFinite ? Int((seconds - seconds.rounded(.down)) * 1_000) : 0
        return "\(CivilDate(self).rfc3339Text).\(padded(fraction, 3))Z"
    }

    /// Reads a date in the format of RFC 3339, section 5.6: `2024-02-29T12:00:00.25+01:00`.
    ///
    /// Foundation's readers treat fractions of seconds and offsets differently on each platform.
    init?(rfc3339Text text: String) {
        var reader = DateReader(text)
        guard let year = reader.number(4), reader.skip("-"), let month = reader.number(2), reader.skip("-"),
            let day = reader.number(2), reader.skip("T") || reader.skip(" "), var moment = reader.time(),
            let fraction = reader.skip(".") ? reader.decimals() : 0, let offset = reader.offset(), reader.isAtEnd
        else { return nil }
        (moment.year, moment.month, moment.day) = (year, month, day)
        guard let date = moment.date else { return nil }
        self = date + fraction - offset
    }
}

extension HTTPHeaders {
    /// Returns the date of a field; nil if there is none, or if two fields differ.
    ///
    /// - Parameters:
    ///   - now: The current date. It decides the century in the obsolete format, which has two digits for the year.
    ///   - isStrict: As in ``Foundation/Date/init(httpText:now:isStrict:)``. Defaults to `false`.
    func httpDate(_ name: String, now: Date, isStrict: Bool = false) -> Date? {
        single(name, .unanimous) { Date(httpText: $0.trimmed, now: now, isStrict: isStrict) }
    }
}

/// Returns the number with leading zeros.
private func padded(_ number: Int, _ width: Int = 2) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
}

/// A reader of the parts of a date, from the beginning of a string to its end.
struct DateReader {
    private var rest: ArraySlice<UInt8>
    /// Whether only the formats of RFC 9110 are accepted.
    var isStrict = false

    init(_ text: some StringProtocol) {
        rest = Array(text.utf8)[...]
    }

    var isAtEnd: Bool { rest.isEmpty }

    mutating func letters() -> String {
        let letters = rest.prefix(while: \.isLetter)
        rest = rest.dropFirst(letters.count)
        return String(decoding: letters, as: UTF8.self)
    }

    /// Skips this text in any case, if it is next.
    mutating func skip(_ text: StaticString) -> Bool {
        let text = UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
        guard rest.count >= text.count, zip(rest, text).allSatisfy({ $0.lowercasedASCII == $1.lowercasedASCII })
        else { return false }
        rest = rest.dropFirst(text.count)
        return true
    }

    mutating func skip(_ text: [UInt8]) -> Bool {
        guard rest.starts(with: text) else { return false }
        rest = rest.dropFirst(text.count)
        return true
    }

    mutating func number(_ digits: Int) -> Int? {
        let part = rest.prefix(digits)
        guard part.count == digits, part.allSatisfy(\.isDigit) else { return nil }
        rest = rest.dropFirst(digits)
        return part.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
    }

    /// Reads the day of a month, with two digits or one.
    mutating func day() -> Int? { number(2) ?? (isStrict ? nil : number(1)) }

    mutating func month() -> Int? {
        guard let month = CivilDate.month(rest) else { return nil }
        rest = rest.dropFirst(3)
        return month
    }

    /// Reads a time such as `08:49:37`, on the first of January 1970.
    mutating func time() -> CivilDate? {
        guard let hour = number(2), skip(":"), let minute = number(2), skip(":"), let second = number(2)
        else { return nil }
        return CivilDate(hour: hour, minute: minute, second: second)
    }

    /// Reads `06 Nov 1994 08:49:37 GMT` or `06-Nov-94 08:49:37 GMT`.
    mutating func dayFirst(now: Date) -> CivilDate? {
        guard let day = day() else { return nil }
        let isObsolete = skip("-")
        guard isObsolete || skip(" "), let month = month(), skip(isObsolete ? "-" : " "),
            var year = number(isObsolete ? 2 : 4), skip(" "), var moment = time(),
            skip(" GMT") || !isStrict && (skip(" UTC") || skip(" +0000"))
        else { return nil }
        if isObsolete {
            let today = CivilDate(now)
            year += today.year / 100 * 100
            // A date more than fifty years ahead belongs to the past, and one equally far back to the next century.
            let limit = (today.year + 50, today.month, today.day)
            if (year, month, day) > limit { year -= 100 }
            if year < 9_900, (year + 100, month, day) <= limit { year += 100 }
        }
        (moment.year, moment.month, moment.day) = (year, month, day)
        return moment
    }

    /// Reads the English name of a weekday, short or long.
    mutating func weekday() -> Bool {
        let name = letters()
        return Date.weekdays.contains { $0.isEqualIgnoringASCIICase(to: name) }
    }

    /// Reads the digits after a decimal point.
    mutating func decimals() -> TimeInterval? {
        let digits = rest.prefix(while: \.isDigit)
        rest = rest.dropFirst(digits.count)
        return digits.isEmpty ? nil : Double("0." + String(decoding: digits, as: UTF8.self))
    }

    /// Reads an offset from UTC, in seconds east of Greenwich: `Z` or `+01:00`.
    ///
    /// - Parameter inAnyForm: Whether `GMT`, `UTC`, `+01`, `+0100` and `GMT+01:00` are accepted, too. Defaults to
    ///   `false`.
    mutating func offset(inAnyForm: Bool = false) -> TimeInterval? {
        let isNamed = skip("Z") || inAnyForm && (skip("GMT") || skip("UTC"))
        if isNamed, !inAnyForm { return 0 }
        let isEast = skip("+")
        guard isEast || skip("-") else { return isNamed ? 0 : nil }
        guard let hour = number(2) else { return nil }
        let hasColon = skip(":")
        guard hasColon || inAnyForm, let minute = number(2) ?? (hasColon ? nil : 0),
            let offset = CivilDate(hour: hour, minute: minute).date?.timeIntervalSince1970
        else { return nil }
        return isEast ? offset : -offset
    }
}
