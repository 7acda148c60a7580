// Written by Generate from an OpenAPI document; what is changed here is lost when it is written again.
// swift-format-ignore-file

import EasyNetwork
import Foundation

/// Shop 1.2.
///
/// A shop with things, orders and people.
nonisolated enum Shop {
    /// A server of the API.
    struct Server: Hashable, Sendable {
        fileprivate let text: String
        /// The base URL for a `HostConfiguration`; `nil` if the text is not a URL.
        var baseURL: URL? { URL(string: text) }

        /// Production.
        static let production = Server(text: "https://api.shop.example/v1")

        /// A region.
        static func aRegion(region: String = "eu", port: String = "443") -> Server {
            Server(text: "https://\(region).shop.example:\(port)/v1")
        }
    }

    /// A credential of the client.
    enum Credential: Hashable, Sendable {
        /// A token of the shop.
        case token(String)
        case key(String)
        case person(user: String, password: String)

        /// Adds the credential to all requests of a host: `HostConfiguration(baseURL: url) { try? credential.apply(to: &$0) }`.
        /// To refresh a token, use `AuthenticationSession`.
        func apply(to settings: inout HostSettings) throws(NetworkError) {
            switch self {
            case .token(let value):
                settings.headers["Authorization"] = try HTTPCredential.bearer(value).authorization
            case .key(let value):
                settings.headers["X-Shop-Key"] = value
                settings.secretNames.insert("X-Shop-Key")
            case .person(let user, let password):
                settings.headers["Authorization"] = try HTTPCredential.basic(user: user, password: password).authorization
            }
        }
    }
}

nonisolated extension Shop {
    /// A JSON value of one of several kinds, or of a kind that is not known.
    enum JSONValue: Codable, Hashable, Sendable {
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

    /// A key that is known only at run time.
    struct AnyKey: CodingKey {
        var stringValue: String
        var intValue: Int? { nil }

        init(_ key: String) { stringValue = key }
        init?(stringValue: String) { self.init(stringValue) }
        init?(intValue: Int) { nil }
    }

    /// Stores a value indirectly, so that a type can contain itself.
    indirect enum Box<Value: Codable & Hashable & Sendable>: Codable, Hashable, Sendable {
        case boxed(Value)

        init(from decoder: any Decoder) throws {
            self = .boxed(try decoder.singleValueContainer().decode(Value.self))
        }

        var value: Value {
            switch self {
            case .boxed(let value): value
            }
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(value)
        }
    }

    /// Encodes parameters for cookies and paths. Only letters, digits and `-._~` are not percent-encoded.
    enum ParameterText {
        static func encoded(_ text: String) -> String {
            let letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
            let unreserved = CharacterSet(charactersIn: letters + "0123456789-._~")
            return text.addingPercentEncoding(withAllowedCharacters: unreserved) ?? ""
        }

        /// An empty list is rejected like an empty segment, because it would lead to another resource.
        static func segment(_ texts: [String], separator: String) -> String {
            texts.isEmpty ? "\(segment: "")" : texts.map { "\(segment: $0)" }.joined(separator: separator)
        }
    }

    /// A file in a form.
    enum FormFile: Sendable {
        /// A file that is read while it is sent.
        case file(URL)
        case data(Data, filename: String)

        /// - Parameter contentType: `nil` means the type that the file name implies.
        func append(to form: inout MultipartForm, name: String, contentType: String? = nil) {
            switch self {
            case .file(let url): form.append(file: url, name: name, contentType: contentType)
            case .data(let data, let filename):
                form.append(data, name: name, filename: filename, contentType: contentType)
            }
        }

        /// Appends a value as JSON. A number that JSON cannot express becomes a string.
        static func append(
            _ value: some Encodable,
            to form: inout MultipartForm,
            name: String,
            contentType: String = "application/json"
        ) {
            let encoder = JSONEncoder()
            encoder.dateEncodingStrategy = .iso8601
            encoder.nonConformingFloatEncodingStrategy = .convertToString(
                positiveInfinity: "Infinity",
                negativeInfinity: "-Infinity",
                nan: "NaN"
            )
            if let data = try? encoder.encode(value) {
                form.append(data, name: name, contentType: contentType)
            }
        }
    }
}
