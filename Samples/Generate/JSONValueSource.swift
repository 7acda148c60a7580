/// The source of `JSONValue`, the type of values that have no single type. It is generated because the library has no
/// public type for this.
enum JSONValueSource {
    static let type = """
        /// A JSON value of one of several kinds, or of a kind that is not known.
        nonisolated enum JSONValue: Codable, Hashable, Sendable {
            case null
            case bool(Bool)
            case integer(Int)
            case double(Double)
            case string(String)
            case array([JSONValue])
            case object([String: JSONValue])

            init(from decoder: any Decoder) throws {
                let container = try decoder.singleValueContainer()
                if container.decodeNil() {
                    self = .null
                } else if let value = try? container.decode(Bool.self) {
                    self = .bool(value)
                } else if let value = try? container.decode(Int.self) {
                    self = .integer(value)
                } else if let value = try? container.decode(Double.self) {
                    self = .double(value)
                } else if let value = try? container.decode(String.self) {
                    self = .string(value)
                } else if let value = try? container.decode([JSONValue].self) {
                    self = .array(value)
                } else {
                    self = .object(try container.decode([String: JSONValue].self))
                }
            }

            func encode(to encoder: any Encoder) throws {
                var container = encoder.singleValueContainer()
                switch self {
                case .null: try container.encodeNil()
                case .bool(let value): try container.encode(value)
                case .integer(let value): try container.encode(value)
                case .double(let value): try container.encode(value)
                case .string(let value): try container.encode(value)
                case .array(let values): try container.encode(values)
                case .object(let values): try container.encode(values)
                }
            }
        }
        """

    static let mapping = """
        nonisolated extension JSONValue {
            /// - Parameter json: a value that `JSONSerialization` has read.
            init(_ json: Any) throws {
                let data = try JSONSerialization.data(withJSONObject: json, options: .fragmentsAllowed)
                self = try JSONDecoder().decode(JSONValue.self, from: data)
            }
        }
        """
}
