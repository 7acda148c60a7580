// Written by Generate from an OpenAPI document; what is changed here is lost when it is written again.
// swift-format-ignore-file

import EasyNetwork
import Foundation

nonisolated extension Shop {
    typealias ThingNumber = Int

    typealias Things = [Thing]

    /// What one can buy.
    struct Thing: Codable, Hashable, Sendable {
        var id: ThingNumber
        var name: String
        var price: Decimal
        var kind: Kind
        var color: String?
        var addedAt: Date?
        var page: URL?
        var serial: UUID?
        var photo: Data?
        var weight: Double?
        var hashValue2: Int?

        struct Kind: RawRepresentable, Codable, Hashable, Sendable {
            var rawValue: String

            static let furniture = Kind(rawValue: "furniture")
            static let paper = Kind(rawValue: "paper")
            static let kitchen = Kind(rawValue: "kitchen")
            static let `default` = Kind(rawValue: "default")
        }

        private enum CodingKeys: String, CodingKey {
            case id
            case name
            case price
            case kind
            case color
            case addedAt = "added_at"
            case page
            case serial
            case photo
            case weight
            case hashValue2 = "hashValue"
        }
    }

    struct Address: Codable, Hashable, Sendable {
        var city: String
        var zipCode: String?

        private enum CodingKeys: String, CodingKey {
            case city
            case zipCode = "zip code"
        }
    }

    /// Where an order is.
    struct OrderState: RawRepresentable, Codable, Hashable, Sendable {
        var rawValue: String

        static let new = OrderState(rawValue: "new")
        static let sent = OrderState(rawValue: "sent")
        static let lost = OrderState(rawValue: "lost")
    }

    struct Order: Codable, Hashable, Sendable {
        var id: Int
        /// The state.
        var state: OrderState
        var payment: Payment
        var parent: Order? {
            get { parentBox?.value }
            set { parentBox = newValue.map(Box.boxed) }
        }
        private var parentBox: Box<Order>?
        var notes: [String: String]?
        var thing: ThingItem?
        /// The other members.
        var additionalProperties: [String: JSONValue] = [:]

        init(id: Int, state: OrderState, payment: Payment, parent: Order? = nil, notes: [String: String]? = nil, thing: ThingItem? = nil, additionalProperties: [String: JSONValue] = [:]) {
            self.id = id
            self.state = state
            self.payment = payment
            self.parentBox = parent.map(Box.boxed)
            self.notes = notes
            self.thing = thing
            self.additionalProperties = additionalProperties
        }

        enum ThingItem: Codable, Hashable, Sendable {
            case thing(Thing)
            case integer(Int)
            /// A value of a kind that the document does not have.
            case other(JSONValue)

            init(from decoder: any Decoder) throws {
                let container = try decoder.singleValueContainer()
                if let value = try? container.decode(Thing.self) {
                    self = .thing(value)
                } else if let value = try? container.decode(Int.self) {
                    self = .integer(value)
                } else {
                    self = .other(try container.decode(JSONValue.self))
                }
            }

            func encode(to encoder: any Encoder) throws {
                var container = encoder.singleValueContainer()
                switch self {
                case .thing(let value): try container.encode(value)
                case .integer(let value): try container.encode(value)
                case .other(let value): try container.encode(value)
                }
            }
        }

        private enum CodingKeys: String, CodingKey {
            case id
            case state
            case payment
            case parentBox = "parent"
            case notes
            case thing
        }

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            self.id = try container.decode(Int.self, forKey: .id)
            self.state = try container.decode(OrderState.self, forKey: .state)
            self.payment = try container.decode(Payment.self, forKey: .payment)
            self.parentBox = try container.decodeIfPresent(Box<Order>.self, forKey: .parentBox)
            self.notes = try container.decodeIfPresent([String: String].self, forKey: .notes)
            self.thing = try container.decodeIfPresent(ThingItem.self, forKey: .thing)
            let others = try decoder.container(keyedBy: AnyKey.self)
            for key in others.allKeys where CodingKeys(stringValue: key.stringValue) == nil {
                additionalProperties[key.stringValue] = try others.decode(JSONValue.self, forKey: key)
            }
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(self.id, forKey: .id)
            try container.encode(self.state, forKey: .state)
            try container.encode(self.payment, forKey: .payment)
            try container.encodeIfPresent(self.parentBox, forKey: .parentBox)
            try container.encodeIfPresent(self.notes, forKey: .notes)
            try container.encodeIfPresent(self.thing, forKey: .thing)
            var others = encoder.container(keyedBy: AnyKey.self)
            for (key, value) in additionalProperties { try others.encode(value, forKey: AnyKey(key)) }
        }
    }

    struct Numbered: Codable, Hashable, Sendable {
        var id: Int
    }

    enum Payment: Codable, Hashable, Sendable {
        case card(Card)
        case invoice(Invoice)
        /// A value of a kind that the document does not have.
        case other(JSONValue)

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            let mark = try? decoder.container(keyedBy: AnyKey.self).decode(String.self, forKey: AnyKey("type"))
            switch mark {
            case "card": self = .card(try container.decode(Card.self))
            case "invoice": self = .invoice(try container.decode(Invoice.self))
            default:
                self = .other(try container.decode(JSONValue.self))
            }
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            switch self {
            case .card(let value): try container.encode(value)
            case .invoice(let value): try container.encode(value)
            case .other(let value): try container.encode(value)
            }
        }
    }

    struct Card: Codable, Hashable, Sendable {
        var type: String
        var digits: String
    }

    struct Invoice: Codable, Hashable, Sendable {
        var type: String
        var company: String?
    }

    struct Problem: Codable, Hashable, Sendable {
        var title: String
        var status: Int?
    }

    struct Shelf: Codable, Hashable, Sendable {
        var above: Shelf? {
            get { aboveBox?.value }
            set { aboveBox = newValue.map(Box.boxed) }
        }
        private var aboveBox: Box<Shelf>?
        var inside: [Shelf]?
        var holds: Holder? {
            get { holdsBox?.value }
            set { holdsBox = newValue.map(Box.boxed) }
        }
        private var holdsBox: Box<Holder>?

        init(above: Shelf? = nil, inside: [Shelf]? = nil, holds: Holder? = nil) {
            self.aboveBox = above.map(Box.boxed)
            self.inside = inside
            self.holdsBox = holds.map(Box.boxed)
        }

        private enum CodingKeys: String, CodingKey {
            case aboveBox = "above"
            case inside
            case holdsBox = "holds"
        }
    }

    indirect enum Holder: Codable, Hashable, Sendable {
        case shelf(Shelf)
        case string(String)
        /// A value of a kind that the document does not have.
        case other(JSONValue)

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if let value = try? container.decode(Shelf.self) {
                self = .shelf(value)
            } else if let value = try? container.decode(String.self) {
                self = .string(value)
            } else {
                self = .other(try container.decode(JSONValue.self))
            }
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            switch self {
            case .shelf(let value): try container.encode(value)
            case .string(let value): try container.encode(value)
            case .other(let value): try container.encode(value)
            }
        }
    }

    typealias Loop = JSONValue

    typealias Elsewhere = JSONValue

    struct ErrorItem: Codable, Hashable, Sendable {
        var message: String?
    }
}
