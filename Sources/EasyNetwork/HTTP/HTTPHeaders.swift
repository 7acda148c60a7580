/// The header fields of a message, in order, with repeats (RFC 9110, section 5).
///
/// Names compare without regard to case. Reading by subscript joins the values of a repeated field with `", "`, as
/// section 5.3 allows; ``values(for:)`` gives them one by one, which `Set-Cookie` needs.
///
/// ```swift
/// var headers: HTTPHeaders = ["Accept": "application/json"]
/// headers["accept"] = "text/plain"            // replaces
/// headers.add("gzip", for: "Accept-Encoding") // appends
/// ```
public struct HTTPHeaders: Hashable, Sendable {
    /// One header field.
    public struct Field: Hashable, Sendable {
        public var name: String
        public var value: String

        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }

        /// Equal when the value is the same and the name is, but for case.
        public static func == (left: Field, right: Field) -> Bool {
            left.value == right.value && left.name.isEqualIgnoringASCIICase(to: right.name)
        }

        public func hash(into hasher: inout Hasher) {
            hasher.combine(name.lowercased())
            hasher.combine(value)
        }
    }

    private var fields: [Field]

    public init() {
        fields = []
    }

    public init(_ fields: [Field]) {
        self.fields = fields
    }

    /// The fields of a dictionary, ordered by name so that the same dictionary gives the same message each time.
    public init(_ dictionary: [String: String]) {
        fields = dictionary.sorted { $0.key < $1.key }.map { Field(name: $0.key, value: $0.value) }
    }

    /// The values of the field, joined with `", "` in the order in which they came; nil when there is none.
    ///
    /// Setting a value replaces the first field of that name in its place and removes the others; setting nil removes
    /// them all.
    public subscript(name: String) -> String? {
        get {
            guard let first = index(of: name) else { return nil }
            var value = fields[first].value
            for field in fields[(first + 1)...] where field.name.isEqualIgnoringASCIICase(to: name) {
                value += ", " + field.value
            }
            return value
        }
        set {
            guard let newValue else { return remove(name) }
            guard let first = index(of: name) else { return add(newValue, for: name) }
            fields[first] = Field(name: name, value: newValue)
            var index = 0
            fields.removeAll { field in
                defer { index += 1 }
                return index > first && field.name.isEqualIgnoringASCIICase(to: name)
            }
        }
    }

    /// Where the first field of that name is.
    private func index(of name: String) -> Int? {
        fields.firstIndex { $0.name.isEqualIgnoringASCIICase(to: name) }
    }

    /// The values of every field of that name, in order.
    public func values(for name: String) -> [String] {
        fields.lazy.filter { $0.name.isEqualIgnoringASCIICase(to: name) }.map(\.value)
    }

    /// Appends a field and keeps those of the same name.
    public mutating func add(_ value: String, for name: String) {
        fields.append(Field(name: name, value: value))
    }

    /// Removes every field of that name.
    public mutating func remove(_ name: String) {
        fields.removeAll { $0.name.isEqualIgnoringASCIICase(to: name) }
    }

    /// Whether both are copies of one value that none of them has changed, and so equal to the byte. Asked of two that are
    /// there, it takes no time; two that are equal need not be such.
    func hasStorage(of other: HTTPHeaders) -> Bool {
        fields.withUnsafeBufferPointer { own in
            other.fields.withUnsafeBufferPointer { own.count == $0.count && own.baseAddress == $0.baseAddress }
        }
    }

    /// These headers with those of `other` in place of the fields that both have.
    public func merging(_ other: HTTPHeaders) -> HTTPHeaders {
        if other.isEmpty { return self }
        var merged = HTTPHeaders(fields.filter { field in other.index(of: field.name) == nil })
        merged.fields.append(contentsOf: other.fields)
        return merged
    }
}

extension HTTPHeaders: RandomAccessCollection {
    public var startIndex: Int { fields.startIndex }
    public var endIndex: Int { fields.endIndex }
    public subscript(position: Int) -> Field { fields[position] }
}

extension HTTPHeaders: ExpressibleByDictionaryLiteral {
    /// The fields in the order in which they are written, repeats included.
    public init(dictionaryLiteral elements: (String, String)...) {
        self.init(elements.map { Field(name: $0.0, value: $0.1) })
    }
}

extension HTTPHeaders: CustomStringConvertible, CustomReflectable {
    /// One `Name: value` a line, without the secrets that ``Redaction`` knows by name: the fields themselves have them.
    public var description: String {
        fields.map(\.description).joined(separator: "\n")
    }

    /// Without children, so that a dump has no secret either.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension HTTPHeaders.Field: CustomStringConvertible, CustomReflectable {
    /// `Name: value`, without the secrets that ``Redaction`` knows by name.
    public var description: String {
        let field = Redaction.standard.redacted(self)
        return "\(field.name): \(field.value)".cleaned()
    }

    /// Without children, so that a dump has no secret either.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
