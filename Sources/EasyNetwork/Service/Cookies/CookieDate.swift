import Foundation

/// The dates of cookies, which come in every form that anybody ever wrote (RFC 6265, section 5.1.1).
enum CookieDate {
    /// Takes the pieces of the text for time, day, month and year by what they look like; the first of each counts.
    ///
    /// - Returns: nil when one is missing, or no calendar has the day.
    static func parse(_ text: String) -> Date? {
        var time: (hour: Int, minute: Int, second: Int)?
        var day: Int?
        var month: Int?
        var year: Int?
        for word in text.utf8.split(whereSeparator: isDelimiter) {
            if time == nil, let found = self.time(word) {
                time = found
            } else if day == nil, let found = number(word, digits: 1...2) {
                day = found
            } else if month == nil, let found = self.month(word) {
                month = found
            } else if year == nil, let found = number(word, digits: 2...4) {
                year = found
            }
        }
        guard let time, let day, let month, var year else { return nil }
        if (70...99).contains(year) { year += 1_900 }
        if (0...69).contains(year) { year += 2_000 }
        guard year >= 1_601, time.second <= 59 else { return nil }
        return HTTPDate.date(
            year: year,
            month: month,
            day: day,
            hour: time.hour,
            minute: time.minute,
            second: time.second
        )
    }

    private static func isDelimiter(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x09, 0x20...0x2F, 0x3B...0x40, 0x5B...0x60, 0x7B...0x7E: true
        default: false
        }
    }

    /// `8:49:37`, with anything behind it that does not begin with a digit.
    private static func time(_ word: Substring.UTF8View) -> (hour: Int, minute: Int, second: Int)? {
        let parts = word.split(separator: UInt8(ascii: ":"), maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, let hour = whole(parts[0]), let minute = whole(parts[1]),
            let second = number(parts[2], digits: 1...2)
        else { return nil }
        return (hour, minute, second)
    }

    private static func month(_ word: Substring.UTF8View) -> Int? {
        HTTPDate.month(String(decoding: word.prefix(3), as: UTF8.self))
    }

    /// One or two digits and nothing else.
    private static func whole(_ text: Substring.UTF8View) -> Int? {
        text.count <= 2 ? number(text, digits: 1...2).flatMap { text.allSatisfy(isDigit) ? $0 : nil } : nil
    }

    /// The digits at the beginning, if they are as many.
    private static func number(_ text: Substring.UTF8View, digits: ClosedRange<Int>) -> Int? {
        let found = text.prefix(while: isDigit)
        return digits.contains(found.count) ? Int(Substring(found)) : nil
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
    }
}
