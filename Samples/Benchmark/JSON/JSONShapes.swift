import EasyNetwork
import Foundation

/// An element of a document that all contenders read.
protocol JSONShape: ParsedItem, Codable, Equatable {
    static var name: String { get }
    /// - Parameter isSmall: whether the document has this element only, and 100 bytes.
    init(_ number: Int, isSmall: Bool)
    init(parsing json: JSONObject) throws
}

struct FlatObject: JSONShape {
    static let name = "flat"
    var id: Int, name: String, email: String, score: Double, isActive: Bool, city: String?

    init(_ number: Int, isSmall: Bool) {
        (id, name, email) = (number, "User \(number)", "user\(number)@example.com")
        (score, isActive, city) = (Double(number % 1_000) + 0.5, number % 2 == 0, number % 3 == 0 ? nil : "Zürich")
    }

    init(parsing json: JSONObject) throws {
        (id, name, email) = (try json.required("id"), try json.required("name"), try json.required("email"))
        (score, isActive, city) = (
            try json.required("score"), try json.required("isActive"), try json.optional("city")
        )
    }
}

struct NestedObject: JSONShape {
    static let name = "nested"
    struct Place: Codable, Equatable { var x: Int, y: Int }
    struct Owner: Codable, Equatable { var id: Int, place: Place }
    var id: Int, owner: Owner, path: [Place], tags: [String]

    init(_ number: Int, isSmall: Bool) {
        (id, owner) = (number, Owner(id: number, place: Place(x: number, y: -number)))
        path = (0..<(isSmall ? 1 : 5)).map { Place(x: $0, y: number) }
        tags = isSmall ? [] : ["red", "green", "blue"]
    }

    init(parsing json: JSONObject) throws {
        let owner: JSONObject = try json.required("owner")
        id = try json.required("id")
        self.owner = Owner(id: try owner.required("id"), place: try Self.place(try owner.required("place")))
        path = try json.required("path", as: [JSONObject].self).map(Self.place)
        tags = try json.required("tags")
    }

    private static func place(_ json: JSONObject) throws -> Place {
        Place(x: try json.required("x"), y: try json.required("y"))
    }
}

struct EscapedTexts: JSONShape {
    static let name = "escapes"
    var title: String, body: String

    init(_ number: Int, isSmall: Bool) {
        title = "\"\(number)\"\t/"
        body = String(repeating: "\"Zeile\"\n\t\\ \u{1} ", count: isSmall ? 2 : 8)
    }

    init(parsing json: JSONObject) throws {
        (title, body) = (try json.required("title"), try json.required("body"))
    }
}

struct LongText: JSONShape {
    static let name = "long text"
    var text: String

    init(_ number: Int, isSmall: Bool) {
        text = "\(number) " + String(repeating: "Grüße aus Köln, and more text. ", count: isSmall ? 2 : 100)
    }

    init(parsing json: JSONObject) throws {
        text = try json.required("text")
    }
}

struct Numbers: JSONShape {
    static let name = "numbers"
    var integers: [Int], fractions: [Double]

    init(_ number: Int, isSmall: Bool) {
        integers = (0..<(isSmall ? 4 : 20)).map { ($0 - 3) * 7_919 * (number + 1) }
        fractions = (0..<(isSmall ? 2 : 20)).map { Double($0 + number) / 7 }
    }

    init(parsing json: JSONObject) throws {
        (integers, fractions) = (try json.required("integers"), try json.required("fractions"))
    }
}

struct Dates: JSONShape {
    static let name = "dates"
    var made: Date, changed: Date, ended: Date?

    init(_ number: Int, isSmall: Bool) {
        made = Date(timeIntervalSince1970: 1_700_000_000 + Double(number))
        (changed, ended) = (made + 86_400, number % 2 == 0 ? nil : made + 1)
    }

    // As programs do it: a mapper has no strategy for dates.
    init(parsing json: JSONObject) throws {
        made = try Date(json.required("made"), strategy: .iso8601)
        changed = try Date(json.required("changed"), strategy: .iso8601)
        ended = try json.optional("ended").map { try Date($0, strategy: .iso8601) }
    }
}
