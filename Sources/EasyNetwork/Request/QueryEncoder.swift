import Foundation

/// Writes parameters as the query of a URL, or as a form.
///
/// The same parameters always give the same text: keys are sorted. Shown here without the percent-encoding:
///
/// | parameters | text |
/// |-|-|
/// | `["a": 1, "b": true]` | `a=1&b=true` |
/// | `["a": ["b": 1]]` | `a[b]=1` |
/// | `["a": [1, 2]]` | `a[]=1&a[]=2`, see ``arrays`` |
/// | `["a": [["b": 1], ["b": 2]]]` | `a[0][b]=1&a[1][b]=2`: with `a[][b]` nobody could tell where an element ends |
/// | `["a": nil]`, `["a": ""]` | `a`, `a=` |
/// | `["a": []]`, `["a": [:]]` | nothing: there is no way to write an empty container |
///
/// A double without fraction is written as an integer, `5` and not `5.0`, as JSON has it.
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

    /// What is encoded, and how.
    public enum Flavour: Hashable, Sendable {
        /// All but the unreserved characters of RFC 3986, section 2.3; a space is `%20`.
        case url
        /// As WHATWG's URL standard defines application/x-www-form-urlencoded; a space is `+`.
        case form
    }

    public var arrays: ArrayStyle
    public var bools: BoolStyle

    public init(arrays: ArrayStyle = .brackets, bools: BoolStyle = .words) {
        self.arrays = arrays
        self.bools = bools
    }

    static let formContentType = "application/x-www-form-urlencoded"

    /// The parameters as text, without `?`; empty when there is nothing to write.
    ///
    /// - Parameter flavour: default ``Flavour/url``.
    /// - Throws: ``NetworkError/Code/invalidRequest`` that names the place of a value that cannot be sent.
    public func encode(_ parameters: [String: Any], as flavour: Flavour = .url) throws(NetworkError) -> String {
        encode(try ParameterValue.object(from: parameters), as: flavour)
    }

    func encode(_ parameters: [String: ParameterValue], as flavour: Flavour) -> String {
        var pairs: [String] = []
        for (key, value) in parameters.sorted(by: { $0.key < $1.key }) {
            append(value, Self.escape(key, flavour), flavour, to: &pairs)
        }
        return pairs.joined(separator: "&")
    }

    /// - Parameter key: encoded already.
    private func append(_ value: ParameterValue, _ key: String, _ flavour: Flavour, to pairs: inout [String]) {
        switch value {
        case .null:
            // An empty key without `=` would be an empty pair, which readers pass over.
            pairs.append(key.isEmpty ? "=" : key)
        case .bool(let value):
            pairs.append(key + "=" + (bools == .words ? (value ? "true" : "false") : (value ? "1" : "0")))
        case .integer(let value): pairs.append("\(key)=\(value)")
        case .unsigned(let value): pairs.append("\(key)=\(value)")
        case .double(let value): pairs.append(key + "=" + Self.escape(Self.text(of: value), flavour))
        case .decimal(let value): pairs.append(key + "=" + Self.escape(value.description, flavour))
        case .string(let value): pairs.append(key + "=" + Self.escape(value, flavour))
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
                append(value, key + "%5B" + Self.escape(name, flavour) + "%5D", flavour, to: &pairs)
            }
        }
    }

    private static func escape(_ text: String, _ flavour: Flavour) -> String {
        switch flavour {
        case .url: return PercentEncoding.encode(text, .unreserved)
        case .form:
            // A plus is encoded by then, so that the only `%20` are spaces.
            return PercentEncoding.encode(text, .form).replacingOccurrences(of: "%20", with: "+")
        }
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
