/// Types that generated code needs and that Swift doesn't have.
enum SupportSource {
    static let anyKey = """
        /// A key that is known only at run time.
        struct AnyKey: CodingKey {
            var stringValue: String
            var intValue: Int? { nil }

            init(_ key: String) { stringValue = key }
            init?(stringValue: String) { self.init(stringValue) }
            init?(intValue: Int) { nil }
        }
        """

    static let box = """
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
        """

    static let parameterText = #"""
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
        """#

    static let formFile = """
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
        """
}
