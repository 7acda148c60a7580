import Foundation

/// Writes parameters as the query of a URL, or as a form.
///
/// The same parameters always give the same text: keys are sorted. Shown here without the percent-encoding:
///
/// | parameters | text |
/// |-|-|
/// | `["a": 1, "b": true]` | `a=1&b=true` |
/// | `["a": ["b": 1]]` | `a[b]=1`, see ``keys`` |
/// | `["a": [1, 2]]` | `a[]=1&a[]=2`, see ``arrays`` |
/// | `["a": [["b": 1], ["b": 2]]]` | `a[0][b]=1&a[1][b]=2`: with `a[][b]` nobody could tell where an element ends |
/// | `["a": nil]`, `["a": ""]` | `a`, `a=`, see ``nulls`` |
/// | `["a": []]`, `["a": [:]]` | nothing: there is no way to write an empty container |
///
/// A double without fraction is written as an integer, `5` and not `5.0`, as JSON has it.
public struct QueryEncoder: Hashable, Sendable {
    /// Arrays of plain values.
    public var arrays: ArrayStyle
    public var bools: BoolStyle
    /// Dates, also in parameters that become JSON.
    public var dates: DateStyle
    /// Bytes, also in parameters that become JSON.
    public var data: DataStyle
    public var nulls: NullStyle
    public var spaces: SpaceStyle
    /// Dictionaries in dictionaries.
    public var keys: KeyStyle

    private var isOfHost = false

    /// Says, as long as nothing of it is changed, that the encoder of the host is to be taken.
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
        spaces: SpaceStyle = .flavour,
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

    /// What is decided before it is known where the parameters go.
    var styles: ParameterStyles { ParameterStyles(dates: dates, data: data) }

    static let formContentType = "application/x-www-form-urlencoded"

    /// The parameters as text, without `?`; empty when there is nothing to write.
    ///
    /// - Parameter flavour: default ``Flavour/url``.
    /// - Throws: ``NetworkError/Code/invalidRequest`` that names the place of a value that cannot be sent.
    public func encode(_ parameters: [String: Any], as flavour: Flavour = .url) throws(NetworkError) -> String {
        encode(try ParameterValue.object(from: parameters, styles: styles), as: flavour)
    }

    func encode(_ parameters: [String: ParameterValue], as flavour: Flavour) -> String {
        var pairs: [String] = []
        for (key, value) in parameters.sorted(by: { $0.key < $1.key }) {
            append(value, escape(key, flavour), flavour, to: &pairs)
        }
        return pairs.joined(separator: "&")
    }

    /// - Parameter key: encoded already.
    private func append(_ value: ParameterValue, _ key: String, _ flavour: Flavour, to pairs: inout [String]) {
        switch value {
        case .null: appendNull(key, to: &pairs)
        case .bool(let value):
            pairs.append(key + "=" + (bools == .words ? (value ? "true" : "false") : (value ? "1" : "0")))
        case .integer(let value): pairs.append("\(key)=\(value)")
        case .unsigned(let value): pairs.append("\(key)=\(value)")
        case .double(let value): pairs.append(key + "=" + escape(Self.text(of: value), flavour))
        case .decimal(let value): pairs.append(key + "=" + escape(value.description, flavour))
        case .string(let value): pairs.append(key + "=" + escape(value, flavour))
        case .array(let values):
            let style: ArrayStyle = values.contains(where: \.isContainer) ? .indices : arrays
            for (index, value) in values.enumerated() {
                switch style {
                case .brackets: append(value, key + "%5B%5D", flavour, to: &pairs)
                case .repeated: append(value, key, flavour, to: &pairs)
                case .indices: append(value, "\(key)%5B\(index)%5D", flavour, to: &pairs)
                }
            }
        case .object(let values):
            for (name, value) in values.sorted(by: { $0.key < $1.key }) {
                let name = escape(name, flavour)
                append(value, key + (keys == .brackets ? "%5B\(name)%5D" : ".\(name)"), flavour, to: &pairs)
            }
        }
    }

    private func appendNull(_ key: String, to pairs: inout [String]) {
        switch nulls {
        // An empty key without `=` would be an empty pair, which readers pass over.
        case .key: pairs.append(key.isEmpty ? "=" : key)
        case .empty: pairs.append(key + "=")
        case .word: pairs.append(key + "=null")
        case .omitted: break
        }
    }

    private func escape(_ text: String, _ flavour: Flavour) -> String {
        let escaped = PercentEncoding.encode(text, flavour == .url ? .unreserved : .form)
        let hasPlus = spaces == .plus || spaces == .flavour && flavour == .form
        // A plus is encoded by then, so that the only `%20` are spaces.
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
