import EasyNetworkOpenAPI

/// The common form of JSON values, such as the elements of an array or the responses of an endpoint.
struct Shape: Equatable {
    indirect enum Kind: Equatable {
        /// Only null was found, or nothing, as in an empty array.
        case unknown
        case bool, integer, double, string
        case array(Shape)
        /// An object. Each member has a different key.
        case object([Member])
        /// Values of several kinds.
        case mixed
    }

    struct Member: Equatable {
        let key: String
        var shape: Shape
    }

    var kind: Kind
    /// Whether the value can be null or missing.
    var isOptional = false
}

extension Shape {
    init(_ json: JSON) {
        switch json.value {
        case .null: self.init(kind: .unknown, isOptional: true)
        case .bool: self.init(kind: .bool)
        case .integer: self.init(kind: .integer)
        case .double: self.init(kind: .double)
        case .string: self.init(kind: .string)
        case .array(let elements):
            self.init(kind: .array(elements.reduce(Shape(kind: .unknown)) { $0.merged(with: Shape($1)) }))
        case .object(let pairs):
            // A key can occur more than once.
            let shapes = Dictionary(pairs.map { ($0.key, Shape($0.value)) }) { $0.merged(with: $1) }
            var known: Set<String> = []
            let keys = pairs.map(\.key).filter { known.insert($0).inserted }
            self.init(kind: .object(keys.compactMap { key in shapes[key].map { Member(key: key, shape: $0) } }))
        }
    }

    var optional: Shape { Shape(kind: kind, isOptional: true) }

    /// Returns the shape that both shapes fit into.
    func merged(with other: Shape) -> Shape {
        let kind: Kind =
            switch (kind, other.kind) {
            case (let left, let right) where left == right: left
            case (.unknown, let kind), (let kind, .unknown): kind
            case (.integer, .double), (.double, .integer): .double
            case (.array(let left), .array(let right)): .array(left.merged(with: right))
            case (.object(let left), .object(let right)): .object(Self.merge(left, right))
            default: .mixed
            }
        return Shape(kind: kind, isOptional: isOptional || other.isOptional)
    }

    private static func merge(_ left: [Member], _ right: [Member]) -> [Member] {
        var others = Dictionary(uniqueKeysWithValues: right.map { ($0.key, $0.shape) })
        let merged = left.map { member in
            let other = others.removeValue(forKey: member.key)
            return Member(key: member.key, shape: other.map(member.shape.merged) ?? member.shape.optional)
        }
        let added = right.filter { others[$0.key] != nil }
        return merged + added.map { Member(key: $0.key, shape: $0.shape.optional) }
    }

    /// The members of the object, or of the objects in the array.
    var members: [Member]? {
        switch kind {
        case .object(let members): members
        case .array(let element): element.members
        default: nil
        }
    }

    /// The keys of the object; `nil` for any other shape, including an array of objects.
    var keys: Set<String>? {
        if case .object(let members) = kind { Set(members.map(\.key)) } else { nil }
    }

    // MARK: Types

    /// Returns the Swift type.
    ///
    /// - Parameter object: The type of the object in the shape.
    func type(object: String) -> String {
        let type =
            switch kind {
            case .unknown, .mixed: "JSONValue"
            case .bool: "Bool"
            case .integer: "Int"
            case .double: "Double"
            case .string: "String"
            case .array(let element): "[\(element.asElement.type(object: object))]"
            case .object: object
            }
        return type + (isOptional ? "?" : "")
    }

    /// The shape as an element of an array. There, `JSONValue` has a case for null, so it is not optional.
    var asElement: Shape { kind == .unknown || kind == .mixed ? Shape(kind: kind) : self }
}
