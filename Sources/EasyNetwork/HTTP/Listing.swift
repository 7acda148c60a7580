extension String {
    /// Creates the `description` of a value, on one line: `RetryPolicy(maximumRetryCount: 3, baseDelay: 2.0)`.
    ///
    /// - Parameters:
    ///   - type: The name of the value's type.
    ///   - properties: The properties of the value. Those that are `nil` are left out. Secrets that ``Redaction``
    ///     recognizes are replaced.
    package init(listing type: String, _ properties: [(name: String, value: Any?)]) {
        let parts = properties.compactMap { name, value in
            value.map { "\(name): \(Redaction.standard.isSecret(name) ? Redaction.mark : Self.shown($0))" }
        }
        self = "\(type)(\(parts.joined(separator: ", ")))"
    }

    private static func shown(_ value: Any) -> String {
        switch value {
        case let text as String: text == Redaction.mark ? text : quoted(text)
        // Each string is redacted separately, because two in a row would count as a name and its value.
        case let strings as [String]: "[\(strings.map(quoted).joined(separator: ", "))]"
        case let strings as Set<String>: "[\(strings.sorted().map(quoted).joined(separator: ", "))]"
        case let numbers as Set<Int>: numbers.ranges
        default: Redaction.standard.redacted("\(value)").cleaned()
        }
    }

    private static func quoted(_ text: String) -> String {
        "\"\(Redaction.standard.redacted(text).cleaned())\""
    }
}

extension Set<Int> {
    /// The numbers in order, with consecutive numbers combined into ranges: `[200...299, 404]`.
    fileprivate var ranges: String {
        var ranges: [ClosedRange<Int>] = []
        for number in sorted() {
            if let last = ranges.last, last.upperBound + 1 == number {
                ranges[ranges.count - 1] = last.lowerBound...number
            } else {
                ranges.append(number...number)
            }
        }
        return "[" + ranges.map { $0.count == 1 ? "\($0.lowerBound)" : "\($0)" }.joined(separator: ", ") + "]"
    }
}

/// The properties of a value that differ from the properties of a standard value, for its description.
struct Changes<Root> {
    let value: Root
    let standard: Root

    /// The property; nil if it equals the property of the standard value.
    subscript<Value: Equatable>(property: KeyPath<Root, Value>) -> Value? {
        value[keyPath: property] == standard[keyPath: property] ? nil : value[keyPath: property]
    }
}
