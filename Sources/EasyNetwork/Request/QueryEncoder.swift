import Foundation

/// An encoder that writes parameters into the query of a URL or into a form.
///
/// ```swift
/// var options: RequestOptions { RequestOptions(queryEncoder: QueryEncoder(arrayStyle: .repeated, nullSuffix: nil)) }
/// ```
///
/// The same parameters always give the same string, because keys are sorted. In a query, every character is
/// percent-encoded except the unreserved characters of RFC 3986, section 2.3. A form follows
/// application/x-www-form-urlencoded of WHATWG's URL standard. The table shows the strings without that encoding:
///
/// | parameters | string |
/// |-|-|
/// | `["a": 1, "b": true]` | `a=1&b=true`, see ``usesNumericBools`` |
/// | `["a": ["b": 1]]` | `a[b]=1`, see ``usesDotNotation`` |
/// | `["a": [1, 2]]` | `a[]=1&a[]=2`, see ``arrayStyle`` |
/// | `["a": [["b": 1], ["b": 2]]]` | `a[0][b]=1&a[1][b]=2`: `a[][b]` would not show where an element ends |
/// | `["a": nil]`, `["a": ""]` | `a`, `a=`, see ``nullSuffix`` |
/// | `["a": []]`, `["a": [:]]` | nothing, because an empty container has no representation |
///
/// A Double without a fraction is written as an integer, `5` and not `5.0`, as in JSON.
public struct QueryEncoder: Sendable {
    /// The style of an array of plain values. An array that contains arrays or dictionaries always has indices.
    ///
    /// ```swift
    /// var options: RequestOptions { RequestOptions(queryEncoder: QueryEncoder(arrayStyle: .indices)) }
    /// ```
    public enum ArrayStyle: Hashable, Sendable {
        /// `a[]=1&a[]=2`, the default.
        case brackets
        /// `a=1&a=2`.
        case repeated
        /// `a[0]=1&a[1]=2`.
        case indices
    }

    /// The style of arrays of plain values. Defaults to ``ArrayStyle/brackets``.
    public var arrayStyle: ArrayStyle
    /// Whether the keys of a dictionary in a dictionary are written with dots, `a.b=1`, instead of brackets, `a[b]=1`.
    /// A key that contains a dot then looks like two keys. Defaults to `false`.
    public var usesDotNotation: Bool
    /// Whether a Bool is written as `1` or `0` instead of `true` or `false`. Defaults to `false`.
    public var usesNumericBools: Bool
    /// The string after the key of nil and `NSNull`. The default `""` gives `a`, which differs from an empty string;
    /// `"="` gives `a=`, and `"=null"` gives `a=null`. With `nil`, the key is omitted; the other elements of an array
    /// keep their indices.
    public var nullSuffix: String?
    /// A closure that converts a Date to the value to send: a string, a number, or another value that parameters can
    /// contain. It also applies to parameters that become JSON. Defaults to `nil`: ISO 8601 in UTC,
    /// `2026-07-01T12:00:00Z`, with milliseconds if there are any (RFC 3339), for the years 1 to 9999.
    ///
    /// ```swift
    /// QueryEncoder(encodeDate: { Int64($0.timeIntervalSince1970) })
    /// ```
    public var encodeDate: (@Sendable (Date) -> Any)?

    /// Creates an encoder with the given properties.
    public init(
        arrayStyle: ArrayStyle = .brackets,
        usesDotNotation: Bool = false,
        usesNumericBools: Bool = false,
        nullSuffix: String? = "",
        encodeDate: (@Sendable (Date) -> Any)? = nil
    ) {
        self.arrayStyle = arrayStyle
        self.usesDotNotation = usesDotNotation
        self.usesNumericBools = usesNumericBools
        self.nullSuffix = nullSuffix
        self.encodeDate = encodeDate
    }

    static let formContentType = "application/x-www-form-urlencoded"

    /// Encodes the parameters, without `?`. The string is empty if there is nothing to write.
    ///
    /// - Throws: ``NetworkError/Code/invalidRequest`` with the place of a value that cannot be sent.
    func encode(_ parameters: [String: Any], isForm: Bool = false) throws(NetworkError) -> String {
        encode(try JSONValue.object(from: parameters, self), isForm: isForm)
    }

    func encode(_ parameters: [String: JSONValue], isForm: Bool) -> String {
        var pairs: [String] = []
        for (key, value) in parameters.sorted(by: { $0.key < $1.key }) {
            append(value, Self.escape(key, isForm), isForm, to: &pairs)
        }
        return pairs.joined(separator: "&")
    }

    /// - Parameter key: the percent-encoded key.
    private func append(_ value: JSONValue, _ key: String, _ isForm: Bool, to pairs: inout [String]) {
        switch value {
        // Parsers skip an empty key without `=`.
        case .null: if let nullSuffix { pairs.append(key.isEmpty && nullSuffix.isEmpty ? "=" : key + nullSuffix) }
        case .bool(let value) where usesNumericBools: pairs.append("\(key)=\(value ? 1 : 0)")
        case .bool(let value): pairs.append("\(key)=\(value)")
        case .integer(let value): pairs.append("\(key)=\(value)")
        case .unsigned(let value): pairs.append("\(key)=\(value)")
        case .double(let value): pairs.append(key + "=" + Self.escape(Self.text(of: value), isForm))
        case .decimal(let value): pairs.append(key + "=" + Self.escape(value.description, isForm))
        case .string(let value): pairs.append(key + "=" + Self.escape(value, isForm))
        case .array(let values):
            let style: ArrayStyle = values.contains(where: \.isContainer) ? .indices : arrayStyle
            for (index, value) in values.enumerated() {
                switch style {
                case .brackets: append(value, key + "%5B%5D", isForm, to: &pairs)
                case .repeated: append(value, key, isForm, to: &pairs)
                case .indices: append(value, "\(key)%5B\(index)%5D", isForm, to: &pairs)
                }
            }
        case .object(let values):
            for (name, value) in values.sorted(by: { $0.key < $1.key }) {
                let name = Self.escape(name, isForm)
                append(value, key + (usesDotNotation ? ".\(name)" : "%5B\(name)%5D"), isForm, to: &pairs)
            }
        }
    }

    private static func escape(_ text: String, _ isForm: Bool) -> String {
        guard isForm else { return PercentEncoding.encode(text, .unreserved) }
        // The form encoding also escapes plus signs, so each `%20` in the result is a space.
        let encoded = PercentEncoding.encode(text, .form)
        return text.utf8.contains(0x20) ? encoded.replacingOccurrences(of: "%20", with: "+") : encoded
    }

    private static func text(of value: Double) -> String {
        // Beyond 2⁵³, a Double cannot represent every integer, so its integer digits would suggest false precision.
        guard let integer = Int64(exactly: value), integer.magnitude < 1 << 53 else { return value.description }
        return String(integer)
    }
}

// MARK: - Former names

extension QueryEncoder {
    /// The former name of ``arrayStyle``.
    @available(*, deprecated, renamed: "arrayStyle")
    public var arrays: ArrayStyle {
        get { arrayStyle }
        set { arrayStyle = newValue }
    }

    /// The former name of ``usesDotNotation``.
    @available(*, deprecated, renamed: "usesDotNotation")
    public var usesDots: Bool {
        get { usesDotNotation }
        set { usesDotNotation = newValue }
    }

    /// The former name of ``nullSuffix``.
    @available(*, deprecated, renamed: "nullSuffix")
    public var nulls: String? {
        get { nullSuffix }
        set { nullSuffix = newValue }
    }

    /// The former name of ``encodeDate``.
    @available(*, deprecated, renamed: "encodeDate")
    public var dates: (@Sendable (Date) -> Any)? {
        get { encodeDate }
        set { encodeDate = newValue }
    }

    /// Creates an encoder with the former labels of the properties.
    // Disfavored, because otherwise a call without any of these labels, such as `QueryEncoder()`, would be ambiguous.
    @available(*, deprecated, renamed: "init(arrayStyle:usesDotNotation:usesNumericBools:nullSuffix:encodeDate:)")
    @_disfavoredOverload
    public init(
        arrays: ArrayStyle = .brackets,
        usesDots: Bool = false,
        usesNumericBools: Bool = false,
        nulls: String? = "",
        dates: (@Sendable (Date) -> Any)? = nil
    ) {
        self.init(
            arrayStyle: arrays,
            usesDotNotation: usesDots,
            usesNumericBools: usesNumericBools,
            nullSuffix: nulls,
            encodeDate: dates
        )
    }
}

// MARK: - Encodable parameters

extension QueryEncoder {
    /// Returns the parameters of an `Encodable` value, with dates converted by ``encodeDate``.
    ///
    /// - Throws: ``NetworkError/Code/invalidRequest`` if the value cannot be encoded or has no keys.
    func parameters<Value: Encodable>(of value: Value) throws(NetworkError) -> [String: Any] {
        let role = "parameters"
        let data = try RequestBody.encode(value, as: role, by: JSONEncoder.stable(self).encode)
        do {
            let object = try JSONSerialization.jsonObject(with: data, options: .fragmentsAllowed)
            if let object = object as? [String: Any] { return object.mapValues(Self.withoutLongNumbers) }
        } catch {
            throw .encodable(error, Value.self, as: role)
        }
        throw .invalidRequest("parameters of type \(Value.self) have no keys; send a value without keys as a body")
    }

    /// Replaces each number that JSONSerialization reads as a decimal number, because it has many digits, by a Double,
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
}

extension JSONEncoder {
    /// Returns an encoder that always writes the same bytes for the same value: with sorted keys, unescaped slashes,
    /// and dates converted by the query encoder.
    static func stable(_ encoder: QueryEncoder = QueryEncoder()) -> JSONEncoder {
        let json = JSONEncoder()
        json.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        json.dateEncodingStrategy = .custom { date, container in
            let value = Result { () throws(EncodingError) in try JSONValue.date(date, encoder, 0) }
            try value.mapError { $0.under(container.codingPath) }.get().encode(to: container)
        }
        return json
    }
}
