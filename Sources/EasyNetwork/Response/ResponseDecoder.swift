import Foundation

/// A decoder of `Decodable` items from responses, for the format of a server and its ways to write dates and keys.
///
/// ```swift
/// let decoder = ResponseDecoder.json(dates: .rfc3339, keys: .convertFromSnakeCase)
/// let user = try response.decode(User.self, with: decoder)
/// ```
public struct ResponseDecoder: Sendable {
    enum Format: Sendable {
        /// Makes the decoder for one response.
        case json(@Sendable () -> JSONDecoder)
        case other(@Sendable (any Decodable.Type, NetworkResponse) throws -> any Decodable)
    }

    let format: Format

    private init(_ format: Format) {
        self.format = format
    }

    /// Creates a decoder of another format.
    ///
    /// ```swift
    /// let cbor = ResponseDecoder { type, response in try CBORDecoder().decode(type, from: response.body) }
    /// ```
    ///
    /// - Parameter decode: returns a value of the type. It is called on the thread that decodes, possibly on several at
    ///   the same time. An error that is not a ``NetworkError`` becomes ``NetworkError/Code/cannotParseResponse``.
    public init(
        _ decode: @escaping @Sendable (_ type: any Decodable.Type, _ response: NetworkResponse) throws -> any Decodable
    ) {
        format = .other(decode)
    }

    /// A decoder of JSON that reads dates as strings of RFC 3339, or as numbers: seconds since 2001.
    public static let json = ResponseDecoder.json { .standard }

    /// Returns a decoder of JSON.
    ///
    /// - Parameter makeDecoder: returns the `JSONDecoder` for one response. It must not be shared among threads.
    public static func json(_ makeDecoder: @escaping @Sendable () -> JSONDecoder) -> ResponseDecoder {
        ResponseDecoder(.json(makeDecoder))
    }

    /// Returns a decoder of JSON.
    ///
    /// - Parameters:
    ///   - dates: the format of dates. `.rfc3339` reads fractions of seconds, Foundation's `iso8601` does not. Defaults
    ///     to `nil`, the format of ``json``.
    ///   - keys: the format of keys. Defaults to the names of the properties.
    public static func json(
        dates: JSONDecoder.DateDecodingStrategy? = nil,
        keys: JSONDecoder.KeyDecodingStrategy = .useDefaultKeys
    ) -> ResponseDecoder {
        json { JSONDecoder(dates: dates, keys: keys) }
    }

    /// A decoder of property lists in XML and binary format.
    public static let propertyList = ResponseDecoder { type, response in try response.decodePropertyList(type) }
}

// MARK: - Arrays

/// An array that omits the elements that cannot be decoded, and reports them.
///
/// ```swift
/// struct Page: Decodable { let users: LenientArray<User> }
///
/// let users = try response.decode(LenientArray<User>.self)
/// for failure in users.failures { print(failure.index, failure.error.localizedDescription) }
/// ```
public struct LenientArray<Element: Decodable>: Decodable {
    /// The decoded elements, in order.
    public private(set) var items: [Element] = []

    /// The index of each omitted element, and the reason, in order. The reason is a ``NetworkError`` that names the
    /// place, with the `DecodingError` as its `underlying`.
    public private(set) var failures: [(index: Int, error: any Error)] = []

    /// Decodes the elements of an array one after the other.
    ///
    /// - Throws: `DecodingError` if there is no array.
    public init(from decoder: any Decoder) throws {
        var container = try decoder.unkeyedContainer()
        while !container.isAtEnd {
            let index = container.currentIndex
            // `superDecoder()` moves to the next element, whether or not this one can be decoded.
            let element = try container.superDecoder()
            do {
                // Decode through a container: `Element(from:)` would ignore the strategies for dates, data and URLs.
                items.append(try element.singleValueContainer().decode(Element.self))
            } catch {
                failures.append((index, NetworkError.mapping(error)))
            }
        }
    }
}

extension LenientArray: Sendable where Element: Sendable {}

// MARK: - Dates

extension JSONDecoder {
    /// A plain decoder that also reads dates as strings of RFC 3339. It never changes, so all threads can share it.
    static let standard = JSONDecoder(dates: nil, keys: .useDefaultKeys)

    /// - Parameter dates: nil for strings of RFC 3339, or numbers.
    fileprivate convenience init(dates: DateDecodingStrategy?, keys: KeyDecodingStrategy) {
        self.init()
        dateDecodingStrategy = dates ?? .custom { try Date.decodeRFC3339($0, orNumbers: true) }
        keyDecodingStrategy = keys
    }
}

extension JSONDecoder.DateDecodingStrategy {
    /// Decodes dates of RFC 3339, section 5.6, with or without fractions of seconds: `2024-02-29T12:00:00.25+01:00`.
    public static var rfc3339: JSONDecoder.DateDecodingStrategy {
        .custom { try Date.decodeRFC3339($0) }
    }

    /// Decodes dates in a server's own format, given in the letters of `DateFormatter`.
    ///
    /// ```swift
    /// let decoder = ResponseDecoder.json(dates: .format("dd.MM.yyyy HH:mm"))
    /// ```
    ///
    /// | field | meaning |
    /// |-|-|
    /// | `yyyy` | the year, which is required |
    /// | `MM`, `MMM` | the month as a number, or as an English name |
    /// | `dd` | the day |
    /// | `EEE` | the English name of the weekday, which is not compared with the date |
    /// | `HH`, or `hh` and `a` | the hour of 24, or of 12 with `AM` or `PM` |
    /// | `mm`, `ss` | the minute and the second |
    /// | `SSS` | the decimals of the second, in any number |
    /// | `Z`, `X`, `x` or `z` | an offset in any form: `Z`, `GMT`, `+01`, `+0100`, `+01:00` |
    ///
    /// A single `M`, `d`, `H`, `h`, `m` or `s` stands for one or two digits. Write text between single quotes; other
    /// characters stand for themselves. Omitted parts default to midnight on January 1.
    ///
    /// The whole string must match the format, and the date must exist. If a format has more than 100 bytes or other
    /// letters, decoding a date throws ``NetworkError/Code/invalidRequest``, with a message that names the problem.
    ///
    /// The strategy is safe to use on several threads, and many times faster than a `DateFormatter`.
    ///
    /// - Parameters:
    ///   - format: the format, such as `yyyy-MM-dd'T'HH:mm:ss.SSSZ`.
    ///   - timeZone: the time zone of strings without an offset. Defaults to GMT.
    public static func format(_ format: String, timeZone: TimeZone = .gmt) -> JSONDecoder.DateDecodingStrategy {
        let reader = Result { () throws(NetworkError) in try DateFormat(format, timeZone: timeZone) }
        return .custom { decoder in
            let reader = try reader.get()
            let container = try decoder.singleValueContainer()
            let text = try container.decode(String.self)
            if let date = reader.date(text) { return date }
            let reason = "\"\(text.quotable)\" is not a date of the format \"\(format)\""
            throw DecodingError.dataCorruptedError(in: container, debugDescription: reason)
        }
    }
}

extension Date {
    /// - Parameter orNumbers: whether a number is read, too, as seconds since 2001. Defaults to false.
    fileprivate static func decodeRFC3339(_ decoder: any Decoder, orNumbers: Bool = false) throws -> Date {
        let own = decoder as? JSONIndexDecoder
        if let date = own?.fixedDate { return date }
        let container = try decoder.singleValueContainer()
        // Read the number in a way that creates no error for each string.
        let number = orNumbers ? (own == nil ? try? container.decode(Double.self) : own?.number) : nil
        if let number { return Date(timeIntervalSinceReferenceDate: number) }
        let text = try container.decode(String.self)
        if let date = Date(rfc3339Text: text) { return date }
        let reason = "\"\(text.quotable)\" is not a date of RFC 3339"
        throw DecodingError.dataCorruptedError(in: container, debugDescription: reason)
    }
}
