import Foundation

/// Writes parameters into the query of a URL or into a form.
///
/// ```swift
/// var queryEncoder: QueryEncoder { QueryEncoder(arrays: .repeated, dates: .secondsSince1970) }
/// ```
///
/// The same parameters always give the same text: keys are sorted. All but the unreserved characters of RFC 3986,
/// section 2.3, are percent-encoded in a query; a form follows application/x-www-form-urlencoded of WHATWG's URL standard.
/// The table shows the text without that encoding:
///
/// | parameters | text |
/// |-|-|
/// | `["a": 1, "b": true]` | `a=1&b=true` |
/// | `["a": ["b": 1]]` | `a[b]=1`, see ``keys`` |
/// | `["a": [1, 2]]` | `a[]=1&a[]=2`, see ``arrays`` |
/// | `["a": [["b": 1], ["b": 2]]]` | `a[0][b]=1&a[1][b]=2`: `a[][b]` would not show where an element ends |
/// | `["a": nil]`, `["a": ""]` | `a`, `a=`, see ``nulls`` |
/// | `["a": []]`, `["a": [:]]` | nothing, as there is no text for an empty container |
///
/// A double without fraction is written as an integer, `5` and not `5.0`, as in JSON.
public struct QueryEncoder: Hashable, Sendable {
    /// How an array of plain values is written. An array that holds arrays or dictionaries always has indices.
    public enum ArrayStyle: Hashable, Sendable {
        /// `a[]=1&a[]=2`, the default.
        case brackets
        /// `a=1&a=2`.
        case repeated
        /// `a[0]=1&a[1]=2`.
        case indices
    }

    /// How a Bool is written.
    public enum BoolStyle: Hashable, Sendable {
        /// `true` and `false`, the default.
        case words
        /// `1` and `0`.
        case numbers
    }

    /// How a Date is written. All styles have a precision of a millisecond and hold for the years 0 to 9999.
    public enum DateStyle: Hashable, Sendable {
        /// `2026-07-01T12:00:00Z`, in UTC, with milliseconds if there are any; the default (RFC 3339).
        case iso8601
        /// `1782907200`, with a fraction if there is one; a number in JSON.
        case secondsSince1970
        /// `1782907200000`; a number in JSON.
        case millisecondsSince1970
        /// A pattern of `DateFormatter`, such as `yyyy-MM-dd`, in UTC, in the Gregorian calendar, in English.
        case pattern(String)
    }

    /// How a Data is written.
    public enum DataStyle: Hashable, Sendable {
        /// RFC 4648, section 4; the default.
        case base64
        /// RFC 4648, section 5, with `-` and `_` and without padding.
        case base64URL
        /// Two digits a byte, in lower case.
        case hexadecimal
    }

    /// How nil and `NSNull` are written.
    public enum NullStyle: Hashable, Sendable {
        /// `a`, the default, which differs from an empty text.
        case key
        /// `a=`.
        case empty
        /// `a=null`.
        case word
        /// Not at all. The other elements of an array keep their indices.
        case omitted
    }

    /// How a space is written.
    public enum SpaceStyle: Hashable, Sendable {
        /// `%20` in a query and `+` in a form, the default.
        case automatic
        /// `%20`, which every reader takes for a space.
        case percent
        /// `+`, which most readers of queries take for a space.
        case plus
    }

    /// How the keys of a dictionary in a dictionary are written.
    public enum KeyStyle: Hashable, Sendable {
        /// `a[b]=1`, the default.
        case brackets
        /// `a.b=1`. A key with a dot reads like two keys.
        case dots
    }

    /// The style of arrays of plain values. Default ``ArrayStyle/brackets``.
    public var arrays: ArrayStyle
    /// Default ``BoolStyle/words``.
    public var bools: BoolStyle
    /// The style of dates, which also applies to parameters that become JSON. Default ``DateStyle/iso8601``.
    public var dates: DateStyle
    /// The style of bytes, which also applies to parameters that become JSON. Default ``DataStyle/base64``.
    public var data: DataStyle
    /// Default ``NullStyle/key``.
    public var nulls: NullStyle
    /// Default ``SpaceStyle/automatic``.
    public var spaces: SpaceStyle
    /// The style of dictionaries in dictionaries. Default ``KeyStyle/brackets``.
    public var keys: KeyStyle

    private var isOfHost = false

    /// Stands for the host's encoder as long as none of its styles is changed.
    static let ofHost: QueryEncoder = {
        var encoder = QueryEncoder()
        encoder.isOfHost = true
        return encoder
    }()

    public init(
        arrays: ArrayStyle = .brackets,
        bools: BoolStyle = .words,
        dates: DateStyle = .iso8601,
        data: DataStyle = .base64,
        nulls: NullStyle = .key,
        spaces: SpaceStyle = .automatic,
        keys: KeyStyle = .brackets
    ) {
        self.arrays = arrays
        self.bools = bools
        self.dates = dates
        self.data = data
        self.nulls = nulls
        self.spaces = spaces
        self.keys = keys
    }

    static let formContentType = "application/x-www-form-urlencoded"

    /// The parameters as text, without `?`; empty when there is nothing to write.
    ///
    /// - Throws: ``NetworkError/Code/invalidRequest`` that names the place of a value that cannot be sent.
    func encode(_ parameters: [String: Any], isForm: Bool = false) throws(NetworkError) -> String {
        encode(try ParameterValue.object(from: parameters, self), isForm: isForm)
    }

    func encode(_ parameters: [String: ParameterValue], isForm: Bool) -> String {
        var pairs: [String] = []
        for (key, value) in parameters.sorted(by: { $0.key < $1.key }) {
            append(value, escape(key, isForm), isForm, to: &pairs)
        }
        return pairs.joined(separator: "&")
    }

    /// The parameters of an `Encodable`, with dates and bytes in the styles of this encoder.
    ///
    /// - Throws: ``NetworkError/Code/invalidRequest``, also for a value that has no keys.
    func parameters<Value: Encodable>(of value: Value) throws(NetworkError) -> [String: Any] {
        let role = "parameters"
        let data = try RequestBody.encode(value, as: role, by: JSONEncoder.stable(self).encode)
        do {
            let object = try JSONSerialization.jsonObject(with: data, options: .fragmentsAllowed)
            if let object = object as? [String: Any] { return object.mapValues(Self.withoutLongNumbers) }
        } catch {
            throw .encodable(error, Value.self, as: role)
        }
        throw NetworkError(
            code: .invalidRequest,
            message: "parameters of type \(Value.self) have no keys; send a value without keys as a body"
        )
    }

    /// The value with a Double for each number that JSONSerialization reads as a decimal number because of its many digits,
    /// if the Double has the same digits.
    private static func withoutLongNumbers(_ value: Any) -> Any {
        switch value {
        case let number as NSDecimalNumber:
            guard let double = Double("\(number)"), Decimal(string: "\(double)") == number.decimalValue else {
                return number
            }
            return double
        case let values as [Any]: return values.map(withoutLongNumbers)
        case let values as [String: Any]: return values.mapValues(withoutLongNumbers)
        default: return value
        }
    }

    /// - Parameter key: percent-encoded.
    private func append(_ value: ParameterValue, _ key: String, _ isForm: Bool, to pairs: inout [String]) {
        switch value {
        case .null: appendNull(key, to: &pairs)
        case .bool(let value):
            pairs.append(key + "=" + (bools == .words ? (value ? "true" : "false") : (value ? "1" : "0")))
        case .integer(let value): pairs.append("\(key)=\(value)")
        case .unsigned(let value): pairs.append("\(key)=\(value)")
        case .double(let value): pairs.append(key + "=" + escape(Self.text(of: value), isForm))
        case .decimal(let value): pairs.append(key + "=" + escape(value.description, isForm))
        case .string(let value): pairs.append(key + "=" + escape(value, isForm))
        case .array(let values):
            let style: ArrayStyle = values.contains(where: \.isContainer) ? .indices : arrays
            for (index, value) in values.enumerated() {
                switch style {
                case .brackets: append(value, key + "%5B%5D", isForm, to: &pairs)
                case .repeated: append(value, key, isForm, to: &pairs)
                case .indices: append(value, "\(key)%5B\(index)%5D", isForm, to: &pairs)
                }
            }
        case .object(let values):
            for (name, value) in values.sorted(by: { $0.key < $1.key }) {
                let name = escape(name, isForm)
                append(value, key + (keys == .brackets ? "%5B\(name)%5D" : ".\(name)"), isForm, to: &pairs)
            }
        }
    }

    private func appendNull(_ key: String, to pairs: inout [String]) {
        switch nulls {
        // Readers skip an empty key without `=`.
        case .key: pairs.append(key.isEmpty ? "=" : key)
        case .empty: pairs.append(key + "=")
        case .word: pairs.append(key + "=null")
        case .omitted: break
        }
    }

    private func escape(_ text: String, _ isForm: Bool) -> String {
        let escaped = PercentEncoding.encode(text, isForm ? .form : .unreserved)
        let hasPlus = spaces == .plus || spaces == .automatic && isForm
        // A plus is encoded by now, so that each `%20` is a space.
        return hasPlus ? escaped.replacingOccurrences(of: "%20", with: "+") : escaped
    }

    private static func text(of value: Double) -> String {
        // Beyond 2⁵³ a Double is no exact integer, and its digits would claim more than it knows.
        guard let integer = Int64(exactly: value), integer.magnitude < 1 << 53 else { return value.description }
        return String(integer)
    }
}

extension ParameterValue {
    fileprivate var isContainer: Bool {
        switch self {
        case .array, .object: true
        default: false
        }
    }
}

extension QueryEncoder.DataStyle {
    func text(of data: Data) -> String {
        switch self {
        case .base64: return data.base64EncodedString()
        case .base64URL:
            return data.base64EncodedString()
                .replacingOccurrences(of: "+", with: "-")
                .replacingOccurrences(of: "/", with: "_")
                .replacingOccurrences(of: "=", with: "")
        case .hexadecimal: return data.hexadecimal
        }
    }
}

extension QueryEncoder.DateStyle {
    /// - Throws: for a date outside of the years 0 to 9999, which has no text.
    func parameter(_ date: Date) throws(EncodingError) -> ParameterValue {
        let milliseconds = (date.timeIntervalSince1970 * 1_000).rounded()
        guard (-62_167_219_200_000..<253_402_300_800_000).contains(milliseconds) else {
            throw .invalid(date, "a date outside of the years 0 to 9999 cannot be sent")
        }
        switch self {
        case .iso8601: return .string(Self.iso8601(milliseconds))
        case .secondsSince1970:
            let (seconds, fraction) = Int64(milliseconds).quotientAndRemainder(dividingBy: 1_000)
            return fraction == 0 ? .integer(seconds) : .double(milliseconds / 1_000)
        case .millisecondsSince1970: return .integer(Int64(milliseconds))
        case .pattern(let pattern):
            // Made each time: a shared formatter would need a lock.
            let formatter = DateFormatter()
            formatter.calendar = Calendar(identifier: .gregorian)
            formatter.locale = Locale(identifier: "en_US_POSIX")
            formatter.timeZone = TimeZone(secondsFromGMT: 0)
            // By default days before 1582 are those of the Julian calendar.
            formatter.gregorianStartDate = .distantPast
            formatter.dateFormat = pattern
            return .string(formatter.string(from: date))
        }
    }

    /// ISO 8601 in UTC, with milliseconds only if there are any. Foundation's formatter cuts milliseconds that a Double does
    /// not hold exactly, and writes days before 1582 in the Julian calendar.
    private static func iso8601(_ milliseconds: Double) -> String {
        let seconds = (milliseconds / 1_000).rounded(.down)
        let fraction = Int(milliseconds - seconds * 1_000)
        // The Gregorian calendar repeats after 400 years: days before 1600 are formatted 1,600 years later.
        let isEarly = seconds < -11_676_096_000
        var text = Date(timeIntervalSince1970: isEarly ? seconds + 50_491_123_200 : seconds).formatted(.iso8601)
        if isEarly, let year = Int(text.prefix(4)) {
            text = "\(String(year - 1_600 + 10_000).dropFirst())\(text.dropFirst(4))"
        }
        return fraction == 0 ? text : "\(text.dropLast()).\(String(fraction + 1_000).dropFirst())Z"
    }
}

extension JSONEncoder {
    /// An encoder that writes the same value as the same bytes: with sorted keys and plain slashes, and dates and bytes
    /// in the styles of a query encoder.
    static func stable(_ styles: QueryEncoder = QueryEncoder()) -> JSONEncoder {
        let json = JSONEncoder()
        json.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        json.dateEncodingStrategy = .custom { date, encoder in
            let value: ParameterValue
            do throws(EncodingError) {
                value = try styles.dates.parameter(date)
            } catch {
                throw error.under(encoder.codingPath)
            }
            try value.encode(to: encoder)
        }
        if styles.data != .base64 {
            json.dataEncodingStrategy = .custom { data, encoder in
                try styles.data.text(of: data).encode(to: encoder)
            }
        }
        return json
    }
}
