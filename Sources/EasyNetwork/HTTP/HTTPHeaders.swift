/// The header fields of a message, in order, with repeats (RFC 9110, section 5).
///
/// Names are case-insensitive. The subscript joins the values of a repeated field with `", "`, as section 5.3 allows.
/// ``values(for:)`` returns them separately, as `Set-Cookie` requires.
///
/// ```swift
/// var headers: HTTPHeaders = ["Accept": "application/json"]
/// headers["accept"] = "text/plain"            // replaces
/// headers.add("gzip", for: "Accept-Encoding") // appends
/// ```
public struct HTTPHeaders: Hashable, Sendable {
    /// A header field.
    ///
    /// ```swift
    /// for field in response.headers { print(field.name, field.value) }
    /// ```
    public struct Field: Hashable, Sendable {
        /// The name as it is sent. Comparisons ignore its case.
        public var name: String
        /// The value. If its bytes are not UTF-8, it is read as ISO 8859-1. The field preserves the bytes: a copy of
        /// the field is sent with the same bytes.
        public var value: String {
            get { raw.fieldText }
            set { raw = newValue }
        }
        /// The value with its bytes, as `String(fieldBytes:)` stores them.
        package var raw: String

        /// Creates a field. A transport checks its syntax before sending it.
        public init(name: String, value: String) {
            self.name = name
            raw = value
        }

        /// Compares values exactly, and names without regard to case.
        public static func == (left: Field, right: Field) -> Bool {
            left.raw == right.raw && left.name.isEqualIgnoringASCIICase(to: right.name)
        }

        public func hash(into hasher: inout Hasher) {
            hasher.combine(name.lowercased())
            hasher.combine(raw)
        }
    }

    private var fields: [Field] = []

    /// Creates headers without fields.
    public init() {}

    /// Creates headers from fields, in their order.
    public init(_ fields: [Field]) {
        self.fields = fields
    }

    /// Creates headers from a dictionary. They are ordered by name, so that equal dictionaries produce equal messages.
    public init(_ dictionary: [String: String]) {
        fields = dictionary.sorted { $0.key < $1.key }.map { Field(name: $0.key, value: $0.value) }
    }

    /// The values of the field, in order, joined with `", "`; nil if there is none.
    ///
    /// Setting a value replaces the first field of that name in its place and removes the others. Setting nil removes
    /// all of them.
    public subscript(name: String) -> String? {
        get {
            guard let first = index(of: name) else { return nil }
            // Most fields occur once.
            guard index(of: name, from: first + 1) != nil else { return fields[first].value }
            return values(for: name).joined(separator: ", ")
        }
        set {
            guard let newValue else { return remove(name) }
            guard let first = index(of: name) else { return add(newValue, for: name) }
            fields[first] = Field(name: name, value: newValue)
            guard index(of: name, from: first + 1) != nil else { return }
            fields[(first + 1)...].removeAll { $0.name.isEqualIgnoringASCIICase(to: name) }
        }
    }

    /// Searches by index. Iterating over the fields would copy each, which costs more than the comparison.
    private func index(of name: String, from start: Int = 0) -> Int? {
        (start..<fields.count).first { fields[$0].name.isEqualIgnoringASCIICase(to: name) }
    }

    /// Returns the values of all fields of that name, in order.
    public func values(for name: String) -> [String] {
        rawValues(for: name).map(\.fieldText)
    }

    /// Returns the values with their bytes, for fields that are sent back to the server.
    package func rawValues(for name: String) -> [String] {
        fields.indices.filter { fields[$0].name.isEqualIgnoringASCIICase(to: name) }.map { fields[$0].raw }
    }

    /// A rule that selects the value of a repeated field.
    enum Choice { case first, last, unanimous }

    /// Returns the value of a field that a message must have at most once (RFC 9110, section 5.5), parsed from its
    /// bytes. Some servers and proxies add another one.
    ///
    /// - Parameter choice: The first or the last valid value; or any value, if all are valid and equal.
    func single<Value: Equatable>(_ name: String, _ choice: Choice, _ read: (String) -> Value?) -> Value? {
        guard let first = index(of: name) else { return nil }
        // Most fields occur once.
        guard index(of: name, from: first + 1) != nil else { return read(fields[first].raw) }
        let values = rawValues(for: name)
        switch choice {
        case .first: return values.lazy.compactMap(read).first
        case .last: return values.reversed().lazy.compactMap(read).first
        case .unanimous:
            let value = read(values[0])
            return values.allSatisfy { read($0) == value } ? value : nil
        }
    }

    /// Appends a field and keeps existing fields of the same name.
    public mutating func add(_ value: String, for name: String) {
        fields.append(Field(name: name, value: value))
    }

    /// Removes all fields of that name.
    public mutating func remove(_ name: String) {
        fields.removeAll { $0.name.isEqualIgnoringASCIICase(to: name) }
    }

    /// Returns whether both are unchanged copies of one value, and therefore equal. The check is fast, but equal
    /// headers can have different storage.
    func hasStorage(of other: HTTPHeaders) -> Bool {
        fields.withUnsafeBufferPointer { own in
            other.fields.withUnsafeBufferPointer { own.count == $0.count && own.baseAddress == $0.baseAddress }
        }
    }

    /// Returns these headers with the fields of `other` added. They replace fields of the same name.
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
    /// Creates headers with the fields in the written order, including repeated ones.
    public init(dictionaryLiteral elements: (String, String)...) {
        self.init(elements.map { Field(name: $0.0, value: $0.1) })
    }
}

extension HTTPHeaders: CustomStringConvertible, CustomReflectable {
    /// A line `Name: value` per field, without the secrets that ``Redaction`` recognizes.
    public var description: String {
        fields.map(\.description).joined(separator: "\n")
    }

    /// An empty mirror, so that a dump shows no secrets.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension HTTPHeaders.Field: CustomStringConvertible, CustomReflectable {
    /// `Name: value`, without the secrets that ``Redaction`` recognizes.
    public var description: String {
        let field = Redaction.standard.redacted(self)
        return "\(field.name): \(field.value)".cleaned()
    }

    /// An empty mirror, so that a dump shows no secrets.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension HTTPHeaders {
    /// The approximate size in memory, in bytes.
    package var size: Int { reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + 64 } }

    /// The fields that identify the sender, see ``Redaction/isSecret(_:)``. A redirect to another origin drops them.
    /// The cache and ``RepeatPolicy/join`` keep responses with different credentials apart.
    var credentials: HTTPHeaders {
        HTTPHeaders(filter(\.isCredential))
    }

    var withoutCredentials: HTTPHeaders {
        HTTPHeaders(filter { !$0.isCredential })
    }

    /// Returns the headers without the ``credentials`` that are unchanged since `original`.
    func withoutCredentials(of original: HTTPHeaders) -> HTTPHeaders {
        HTTPHeaders(filter { !$0.isCredential || original[$0.name] != $0.value })
    }
}

extension HTTPHeaders.Field {
    var isCredential: Bool { Redaction.standard.isSecret(name) }

    var isCookie: Bool { name.isEqualIgnoringASCIICase(to: "Cookie") }
}
