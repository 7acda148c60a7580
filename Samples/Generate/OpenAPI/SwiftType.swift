/// A type as written in Swift.
indirect enum SwiftType: Hashable, Sendable {
    /// `Int`, or the name of a declaration.
    case named(String)
    case array(SwiftType)
    case dictionary(SwiftType)
    case optional(SwiftType)

    static let any = named("JSONValue")

    var text: String {
        switch self {
        case .named(let name): name
        case .array(let element): "[\(element.text)]"
        case .dictionary(let value): "[String: \(value.text)]"
        case .optional(let type): type.text + "?"
        }
    }

    /// The type as an optional. An optional type stays the same.
    var asOptional: SwiftType { isOptional ? self : .optional(self) }

    var isOptional: Bool {
        if case .optional = self { true } else { false }
    }

    /// The type without `?`.
    var unwrapped: SwiftType {
        if case .optional(let type) = self { type.unwrapped } else { self }
    }

    /// The name of the type that is stored inline in the value; `nil` for an array or a dictionary, which store their
    /// values elsewhere.
    var heldName: String? {
        switch self {
        case .named(let name): name
        case .optional(let type): type.heldName
        case .array, .dictionary: nil
        }
    }

    /// The name of the innermost type.
    var innerName: String {
        switch self {
        case .named(let name): name
        case .array(let type), .dictionary(let type), .optional(let type): type.innerName
        }
    }
}

/// A type to generate, with its nested types.
struct Declaration {
    struct Property {
        let key: String
        let name: String
        var type: SwiftType
        let comment: Comment
        /// Whether `nil` is written as null, because the property is required.
        var writesNull = false
        /// The name of the property that stores the value indirectly, because its type contains this one.
        var box: String?
    }

    /// A case with a value.
    struct Case {
        let name: String
        let type: SwiftType
        /// The values of the discriminator.
        var marks: [String] = []
    }

    enum Kind {
        /// - additional: The type of the members that have no name in the document.
        case structure([Property], additional: SwiftType?)
        /// Strings or numbers, as literals. Other values are kept, too.
        case values([(name: String, literal: String)], raw: String)
        /// - key: The key of the discriminator.
        case union([Case], key: String?)
        case alias(SwiftType)
    }

    let name: String
    let comment: Comment
    var kind: Kind
    var nested: [Declaration] = []
    /// Whether a value can contain a value of the same type.
    var isIndirect = false

    /// The types of its members and of the types nested in it.
    var held: [SwiftType] {
        let own: [SwiftType] =
            switch kind {
            case .structure(let properties, let additional): properties.map(\.type) + (additional.map { [$0] } ?? [])
            case .values: []
            case .union(let cases, _): cases.map(\.type)
            case .alias(let type): [type]
            }
        return own + nested.flatMap(\.held)
    }
}

// MARK: - Types that hold themselves

extension [Declaration] {
    /// Marks the values that must be stored indirectly so that types are finite. Turns an alias that only refers to
    /// itself into `JSONValue`.
    ///
    /// - Returns: The names of these aliases.
    mutating func breakCircles() -> [String] {
        let broken = circularAliases()
        for index in broken { self[index].kind = .alias(.any) }
        let circles = circles()
        for index in indices {
            if let circle = circles[self[index].name] { self[index].keepApart(circle) }
        }
        return broken.map { self[$0].name }
    }

    /// Returns the first alias of each cycle.
    private func circularAliases() -> [Int] {
        let places = Dictionary(indices.map { (self[$0].name, $0) }, uniquingKeysWith: { first, _ in first })
        var (known, broken): (Set<Int>, [Int]) = ([], [])
        for start in indices {
            var (path, next): ([Int], Int?) = ([], start)
            while let index = next, case .alias(let type) = self[index].kind, known.insert(index).inserted {
                path.append(index)
                next = places[type.innerName]
            }
            if let next, let begin = path.firstIndex(of: next), let first = path[begin...].min() {
                broken.append(first)
            }
        }
        return broken.sorted()
    }

    /// Returns, for each type that contains itself, all types of its cycle.
    private func circles() -> [String: Set<String>] {
        let edges = Dictionary(
            map { ($0.name, Set($0.held.compactMap(\.heldName))) },
            uniquingKeysWith: { $0.union($1) }
        )
        // Find the strongly connected components with Tarjan's algorithm, without recursion.
        var (numbers, lows, stack, open): ([String: Int], [String: Int], [String], Set<String>) = ([:], [:], [], [])
        var circles: [String: Set<String>] = [:]
        for root in map(\.name) where numbers[root] == nil {
            var path: [(name: String, rest: [String])] = []
            func enter(_ name: String) {
                (numbers[name], lows[name]) = (numbers.count, numbers.count)
                stack.append(name)
                open.insert(name)
                path.append((name, edges[name]?.sorted() ?? []))
            }
            enter(root)
            while let name = path.last?.name {
                if let next = path[path.count - 1].rest.popLast() {
                    guard edges[next] != nil else { continue }
                    if let number = numbers[next] {
                        if open.contains(next) { lows[name] = Swift.min(lows[name] ?? number, number) }
                    } else {
                        enter(next)
                    }
                    continue
                }
                path.removeLast()
                if let outer = path.last?.name, let low = lows[name] {
                    lows[outer] = Swift.min(lows[outer] ?? low, low)
                }
                guard lows[name] == numbers[name], let begin = stack.lastIndex(of: name) else { continue }
                let circle = Set(stack[begin...])
                stack.removeSubrange(begin...)
                open.subtract(circle)
                guard circle.count > 1 || edges[name]?.contains(name) == true else { continue }
                for name in circle { circles[name] = circle }
            }
        }
        return circles
    }
}

extension Declaration {
    fileprivate mutating func keepApart(_ circle: Set<String>) {
        func isHeld(_ type: SwiftType) -> Bool { type.heldName.map(circle.contains) ?? false }
        switch kind {
        case .structure(var properties, let additional):
            var taken = Set(properties.map(\.name)).union(["additionalProperties"])
            for index in properties.indices where isHeld(properties[index].type) {
                properties[index].box = Name.unique(properties[index].name + "Box", &taken)
            }
            kind = .structure(properties, additional: additional)
        case .union(let cases, _): isIndirect = cases.contains { isHeld($0.type) }
        case .values, .alias: break
        }
        for index in nested.indices { nested[index].keepApart(circle) }
    }
}
