import EasyNetwork
import Foundation

/// An element of a document that all contenders read. Its properties are in the order of their names, which is that of
/// the document.
protocol JSONShape: ParsedItem, Codable, Equatable {
    static var name: String { get }
    /// - Parameter isSmall: whether the document has this element only, and 100 bytes.
    init(_ number: Int, isSmall: Bool)
    init(parsing json: JSONObject) throws
}

struct FlatObject: JSONShape {
    static let name = "flat"
    var city: String?, email: String, id: Int, isActive: Bool, name: String, score: Double

    init(_ number: Int, isSmall: Bool) {
        (id, name, email) = (number, "User \(number)", "user\(number)@example.com")
        (score, isActive, city) = (Double(number % 1_000) + 0.5, number % 2 == 0, number % 3 == 0 ? nil : "Zürich")
    }

    init(parsing json: JSONObject) throws {
        (city, email, id) = (try json.optional("city"), try json.required("email"), try json.required("id"))
        (isActive, name, score) = (
            try json.required("isActive"), try json.required("name"), try json.required("score")
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
        id = try json.required("id")
        let owner: JSONObject = try json.required("owner")
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
    var body: String, title: String

    init(_ number: Int, isSmall: Bool) {
        title = "\"\(number)\"\t/"
        body = String(repeating: "\"Zeile\"\n\t\\ \u{1} ", count: isSmall ? 2 : 8)
    }

    init(parsing json: JSONObject) throws {
        (body, title) = (try json.required("body"), try json.required("title"))
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
    var fractions: [Double], integers: [Int]

    init(_ number: Int, isSmall: Bool) {
        integers = (0..<(isSmall ? 4 : 20)).map { ($0 - 3) * 7_919 * (number + 1) }
        fractions = (0..<(isSmall ? 2 : 20)).map { Double($0 + number) / 7 }
    }

    init(parsing json: JSONObject) throws {
        (fractions, integers) = (try json.required("fractions"), try json.required("integers"))
    }
}

struct Dates: JSONShape {
    static let name = "dates"
    var changed: Date, ended: Date?, made: Date

    init(_ number: Int, isSmall: Bool) {
        made = Date(timeIntervalSince1970: 1_700_000_000 + Double(number))
        (changed, ended) = (made + 86_400, number % 2 == 0 ? nil : made + 1)
    }

    init(parsing json: JSONObject) throws {
        (changed, ended) = (try json.required("changed"), try json.optional("ended"))
        made = try json.required("made")
    }
}
