/// Types that generated code needs for what Swift has no word for.
enum SupportSource {
    static let anyKey = """
        /// A key that is known when the program runs.
        struct AnyKey: CodingKey {
            var stringValue: String
            var intValue: Int? { nil }

            init(_ key: String) { stringValue = key }
            init?(stringValue: String) { self.init(stringValue) }
            init?(intValue: Int) { nil }
        }
        """

    static let box = """
        /// Keeps a value apart from the one that it is a part of, so that a type can hold itself.
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
        /// Texts of parameters in cookies and paths, of which all but letters, digits and `-._~` is percent-encoded.
        enum ParameterText {
            static func encoded(_ text: String) -> String {
                let letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                let unreserved = CharacterSet(charactersIn: letters + "0123456789-._~")
                return text.addingPercentEncoding(withAllowedCharacters: unreserved) ?? ""
            }

            /// An empty list is refused as an empty segment is: it would lead to another resource.
            static func segment(_ texts: [String], separator: String) -> String {
                texts.isEmpty ? "\(segment: "")" : texts.map { "\(segment: $0)" }.joined(separator: separator)
            }
        }
        """#

    static let formFile = """
        /// A file in a form.
        enum FormFile: Sendable {
            /// Read while it is sent.
            case file(URL)
            case data(Data, filename: String)

            /// - Parameter contentType: nil for the type that the file name implies.
            func append(to form: inout MultipartForm, name: String, contentType: String? = nil) {
                switch self {
                case .file(let url): form.append(file: url, name: name, contentType: contentType)
                case .data(let data, let filename):
                    form.append(data, name: name, filename: filename, contentType: contentType)
                }
            }

            /// Appends a value as JSON. A number that JSON does not have is a text.
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
