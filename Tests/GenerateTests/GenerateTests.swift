import Foundation
import SampleSupport
import Testing

@testable import Generate

@Suite("Generate")
struct GenerateTests {
    private func generate(_ line: String, _ json: String) throws -> String {
        let words = line.split(separator: " ").map(String.init)
        guard case .generate(let arguments) = try Arguments.parse(words) else { throw CocoaError(.featureUnsupported) }
        return try Generate.text(for: arguments, Data(json.utf8))
    }

    @Test("TOL-1: a sample becomes a struct with nested structs and keys, and its request")
    func sample() throws {
        let text = try generate(
            "sample.json --name Profile --path users/me --method post",
            #"{"id": 1, "first_name": "Ada", "addresses": [{"city": "Rome"}, {"city": null}]}"#
        )
        #expect(
            text == """
                import EasyNetwork

                nonisolated struct Profile: Decodable {
                    let id: Int
                    let firstName: String
                    let addresses: [Address]

                    struct Address: Decodable {
                        let city: String?
                    }

                    private enum CodingKeys: String, CodingKey {
                        case id
                        case firstName = "first_name"
                        case addresses
                    }
                }

                struct PostProfile: APIRequest {
                    var api: String { "users/me" }
                    var method: NetworkService.Method { .post }

                    func item(from response: NetworkResponse) throws -> Profile {
                        try response.decode(Profile.self, with: .json)
                    }
                }

                """
        )
    }

    @Test("TOL-1: with --mapper a struct gets a mapper, as the older style has it")
    func mapper() throws {
        let text = try generate(
            "user-names.json --mapper",
            #"[{"id": 1, "tags": [{"a": 1}]}, {"id": 2}]"#
        )
        #expect(
            text == """
                import EasyNetwork

                struct UserName: ParsedItem {
                    let id: Int
                    let tags: [Tag]?

                    struct Tag: ParsedItem {
                        let a: Int
                    }
                }

                nonisolated final class UserNameMapper: ResponseMapper<UserName>, ResponseMapperProtocol {
                    static func process(_ json: Any?) throws -> UserName {
                        try process(json) { json in
                            UserName(
                                id: try json.required("id"),
                                tags: try json.optional("tags", as: [JSONObject].self).map { try $0.map(TagMapper.process) }
                            )
                        }
                    }

                    final class TagMapper: ResponseMapper<UserName.Tag>, ResponseMapperProtocol {
                        static func process(_ json: Any?) throws -> UserName.Tag {
                            try process(json) { json in
                                UserName.Tag(
                                    a: try json.required("a")
                                )
                            }
                        }
                    }
                }

                struct GetUserName: APIRequest {
                    var api: String { "user-name" }

                    func item(from response: NetworkResponse) throws -> [UserName] {
                        try ArrayResponseMapper.process(response, mapper: UserNameMapper.process)
                    }
                }

                """
        )
    }

    @Test(
        "TOL-1: any key becomes the name of a property and of a type, in ASCII",
        arguments: [
            ("class", "class", "Class"), ("1st", "_1st", "Item1st"), ("a-b", "aB", "AB"),
            ("snake_case", "snakeCase", "SnakeCase"),
            ("", "empty", "Empty"), ("é", "e", "E"), ("名", "u540d", "U540d"), ("URL", "url", "URLItem"),
            ("self", "selfValue", "SelfItem"),
            ("Type", "type", "TypeItem"), ("USER_ID", "userId", "UserId"), ("HTTPServer", "httpServer", "HTTPServer"),
            ("data", "data", "DataItem"), ("JSONObject", "jsonObject", "JSONObjectItem"), ("+1", "plus1", "Plus1"),
            ("item", "item", "ItemValue"),
        ]
    )
    func names(key: String, property: String, type: String) {
        #expect(Name.property(key) == property && Name.type(key) == type)
    }

    @Test("TOL-1: keywords, quotes and equal names are written so that they compile")
    func escapes() throws {
        let text = try generate("a.json", #"{"let": 1, "a_b": 1, "aB": 1, "\\(x)\"\n": 1, "a": {"a": {"String": {}}}}"#)
        let lines = text.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
        for line in [
            "let `let`: Int", "case aB2 = \"aB\"", #"case x = "\\(x)\"\u{A}""#, "let a: A2", "let a: A3",
            "let string: StringItem",
        ] { #expect(lines.contains(line), "\(line) is missing in \(text)") }
    }

    @Test("TOL-1: a host's decoder that converts keys is not asked where the struct has keys of its own")
    func ownKeys() throws {
        for (json, item) in [
            (#"{"a": [{"b_c": 1}]}"#, "Sample"), (#"[{"a_b": 1}]"#, "[Sample]"), (#"{"a": 1, "bC": 2}"#, nil),
        ] as [(String, String?)] {
            let text = try generate("samples.json --name Sample", json)
            let method = "func item(from response: NetworkResponse) throws -> \(item ?? "Sample") {"
            let call = "try response.decode(\(item ?? "Sample").self, with: .json)"
            #expect(text.contains(method) == (item != nil) && text.contains(call) == (item != nil), "\(text)")
            #expect(text.contains("typealias Item = Sample") == (item == nil))
        }
    }

    @Test("TOL-1: a struct in another may be called Item, and no name ends with Item twice")
    func items() throws {
        let text = try generate("order.json", #"{"items": [{"id": 1}]}"#)
        #expect(text.contains("let items: [Item]") && text.contains("    struct Item: Decodable {"))
        let alone = try generate("items.json", #"[{"id": 1}]"#)
        #expect(alone.contains("struct ItemValue: Decodable") && alone.contains("typealias Item = [ItemValue]"))
    }

    @Test("TOL-1: the element of a list is named by the singular")
    func singulars() {
        let words = ["users", "addresses", "stories", "boxes", "status", "movies", "series", "list", "is"]
        let singulars = ["user", "address", "story", "box", "status", "movie", "series", "list", "is"]
        #expect(words.map(Name.singular) == singulars)
    }

    @Test(
        "TOL-1: a wrong argument is named; with --help there is none",
        arguments: [
            ("", "no file is given"), ("a.json b.json", "b.json: is a second file"),
            ("a.json --nam x", "--nam: is not an option"),
            ("a.json --name", "--name needs a name"), ("a.json --path=", "--path : needs a path"),
            ("a.har --name x", "--name, --path and --method are for a sample"),
            ("a.json --method P/1", "--method P/1: needs a method"),
        ]
    )
    func misuse(line: String, message: String) throws {
        let error = #expect(throws: Misuse.self) { try generate(line, "") }
        #expect(error?.message.hasPrefix(message) == true)
        #expect(try Arguments.parse([line, "--help"]) == .help)
    }
}
