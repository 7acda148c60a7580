import Foundation

@testable import EasyNetwork
@testable import TestSupport

/// Reading that keeps the index.
extension JSONIndex {
    func read<Value>(_ body: (JSONReader) -> Value) -> Value { withExtendedLifetime(self) { body(reader) } }
    func kind(_ position: Int) -> JSONWord.Kind { read { $0.kind(position) } }
    func isNull(_ position: Int) -> Bool { read { $0.isNull(position) } }
    func count(_ position: Int) -> Int { read { $0.count(position) } }
    func end(_ position: Int) -> Int { read { $0.end(position) } }
    func next(_ position: Int) -> Int { read { $0.next(position) } }
    func bool(_ position: Int) -> Bool? { read { $0.bool(position) } }
    func string(_ position: Int) -> String? { read { $0.string(position) } }
    func digits(_ position: Int) -> String? { read { $0.digits(position) } }
    func double(_ position: Int) -> Double? { read { $0.double(position) } }
    func value(of key: String, in object: Int, from hint: inout Int) -> Int? {
        read { $0.value(of: key, in: object, from: &hint) }
    }
    func integer<T: FixedWidthInteger>(_ position: Int, as type: T.Type = T.self) -> T? {
        read { $0.integer(position, as: type) }
    }
}

/// A JSON value, made of an index or by Foundation, to compare them.
enum JSONTree {
    case null
    case bool(Bool)
    case integer(Int64)
    case unsigned(UInt64)
    /// The bits of a Double; the same digits as a Decimal, which Foundation makes of many digits.
    case number(UInt64?, Decimal?)
    case string([Unicode.Scalar])
    case array([JSONTree])
    case object([String: JSONTree])

    init(_ index: JSONIndex) {
        self.init(index, 0)
    }

    private init(_ index: JSONIndex, _ position: Int) {
        switch index.kind(position) {
        case .null: self = .null
        case .bool: self = .bool(index.bool(position) ?? false)
        case .integer:
            if let value = index.integer(position) as Int64? {
                self = .integer(value)
            } else if let value = index.integer(position) as UInt64? {
                self = .unsigned(value)
            } else {
                self = .number(nil, index.digits(position).flatMap { Decimal(string: $0) })
            }
        case .number:
            self = .number(
                index.double(position)?.bitPattern,
                index.digits(position).flatMap { Decimal(string: $0) }
            )
        case .ascii, .text: self = .string(Array((index.string(position) ?? "").unicodeScalars))
        case .array:
            var elements: [JSONTree] = []
            var element = position + 1
            while element < index.end(position) {
                elements.append(JSONTree(index, element))
                element = index.next(element)
            }
            self = elements.count == index.count(position) ? .array(elements) : .null
        case .object:
            var members: [String: JSONTree] = [:]
            var key = position + 1
            while key < index.end(position) {
                // The last one counts, as for JSONSerialization.
                members[index.string(key) ?? ""] = JSONTree(index, key + 1)
                key = index.next(key + 1)
            }
            self = .object(members)
        }
    }

    /// The value as JSONSerialization reads it; nil if it refuses the text.
    static func foundation(_ text: Data) -> JSONTree? {
        (try? JSONSerialization.jsonObject(with: text, options: .fragmentsAllowed)).map { JSONTree(foundation: $0) }
    }

    private init(foundation value: Any) {
        switch value {
        case is NSNull: self = .null
        case let value as String: self = .string(Array(value.unicodeScalars))
        case let value as [Any]: self = .array(value.map { JSONTree(foundation: $0) })
        case let value as [String: Any]: self = .object(value.mapValues { JSONTree(foundation: $0) })
        default:
            switch JSONValue(number: value) {
            case .bool(let value): self = .bool(value)
            case .integer(let value): self = .integer(value)
            case .unsigned(let value): self = .unsigned(value)
            case .decimal(let value): self = .number(nil, value)
            case .double(let value): self = .number(value.bitPattern, nil)
            default: self = .null
            }
        }
    }
}

extension JSONTree: Equatable {
    static func == (left: JSONTree, right: JSONTree) -> Bool {
        switch (left, right) {
        case (.null, .null): true
        case (.bool(let left), .bool(let right)): left == right
        case (.integer(let left), .integer(let right)): left == right
        case (.unsigned(let left), .unsigned(let right)): left == right
        // By the decimal digits, if one of them knows no more.
        case (.number(nil, let left), .number(_, let right)), (.number(_, let left), .number(nil, let right)):
            left == right
        case (.number(let left, _), .number(let right, _)): left == right
        // Foundation makes a Decimal of a negative integer of 19 digits.
        case (.integer(let left), .number(nil, let right?)), (.number(nil, let right?), .integer(let left)):
            Decimal(left) == right
        case (.unsigned(let left), .number(nil, let right?)), (.number(nil, let right?), .unsigned(let left)):
            Decimal(left) == right
        case (.string(let left), .string(let right)): left == right
        case (.array(let left), .array(let right)): left == right
        case (.object(let left), .object(let right)): left == right
        default: false
        }
    }
}
