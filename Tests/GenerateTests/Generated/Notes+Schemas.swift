// Written by Generate from an OpenAPI document; what is changed here is lost when it is written again.
// swift-format-ignore-file

import EasyNetwork
import Foundation

nonisolated extension Notes {
    public struct Note: Codable, Hashable, Sendable {
        public var kind: Kind
        public var text: String?
        public var position: Position
        public var owner: Person?
        public var level: Level?
        public var `any`: JSONValue?
        public var shape: Shape?

        public init(kind: Kind, text: String? = nil, position: Position, owner: Person? = nil, level: Level? = nil, `any`: JSONValue? = nil, shape: Shape? = nil) {
            self.kind = kind
            self.text = text
            self.position = position
            self.owner = owner
            self.level = level
            self.any = `any`
            self.shape = shape
        }

        public struct Kind: RawRepresentable, Codable, Hashable, Sendable {
            public var rawValue: String
            public init(rawValue: String) { self.rawValue = rawValue }

            public static let note = Kind(rawValue: "note")
        }

        public enum Position: Codable, Hashable, Sendable {
            case integer(Int)
            case string(String)
            /// A value of a kind that the document does not have.
            case other(JSONValue)

            public init(from decoder: any Decoder) throws {
                let container = try decoder.singleValueContainer()
                if let value = try? container.decode(Int.self) {
                    self = .integer(value)
                } else if let value = try? container.decode(String.self) {
                    self = .string(value)
                } else {
                    self = .other(try container.decode(JSONValue.self))
                }
            }

            public func encode(to encoder: any Encoder) throws {
                var container = encoder.singleValueContainer()
                switch self {
                case .integer(let value): try container.encode(value)
                case .string(let value): try container.encode(value)
                case .other(let value): try container.encode(value)
                }
            }
        }

        public struct Level: RawRepresentable, Codable, Hashable, Sendable {
            public var rawValue: Int
            public init(rawValue: Int) { self.rawValue = rawValue }

            public static let _1 = Level(rawValue: 1)
            public static let _2 = Level(rawValue: 2)
            public static let minus1 = Level(rawValue: -1)
        }

        public enum Shape: Codable, Hashable, Sendable {
            case circle(Circle)
            case square(Square)
            /// A value of a kind that the document does not have.
            case other(JSONValue)

            public init(from decoder: any Decoder) throws {
                let container = try decoder.singleValueContainer()
                let mark = try? decoder.container(keyedBy: AnyKey.self).decode(String.self, forKey: AnyKey("form"))
                switch mark {
                case "circle": self = .circle(try container.decode(Circle.self))
                case "square": self = .square(try container.decode(Square.self))
                default:
                    self = .other(try container.decode(JSONValue.self))
                }
            }

            public func encode(to encoder: any Encoder) throws {
                var container = encoder.singleValueContainer()
                switch self {
                case .circle(let value): try container.encode(value)
                case .square(let value): try container.encode(value)
                case .other(let value): try container.encode(value)
                }
            }
        }
    }

    public struct Person: Codable, Hashable, Sendable {
        public var name: String

        public init(name: String) {
            self.name = name
        }
    }

    public struct Group: Codable, Hashable, Sendable {
        public var chief: Person?
        public var name: String?
        public var kind: String?

        public init(chief: Person? = nil, name: String? = nil, kind: String? = nil) {
            self.chief = chief
            self.name = name
            self.kind = kind
        }
    }

    public struct Circle: Codable, Hashable, Sendable {
        public var form: Form
        public var radius: Double

        public init(form: Form, radius: Double) {
            self.form = form
            self.radius = radius
        }

        public struct Form: RawRepresentable, Codable, Hashable, Sendable {
            public var rawValue: String
            public init(rawValue: String) { self.rawValue = rawValue }

            public static let circle = Form(rawValue: "circle")
        }
    }

    public struct Square: Codable, Hashable, Sendable {
        public var form: Form
        public var side: Double

        public init(form: Form, side: Double) {
            self.form = form
            self.side = side
        }

        public struct Form: RawRepresentable, Codable, Hashable, Sendable {
            public var rawValue: String
            public init(rawValue: String) { self.rawValue = rawValue }

            public static let square = Form(rawValue: "square")
        }
    }
}
