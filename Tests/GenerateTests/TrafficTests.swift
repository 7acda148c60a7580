import EasyNetworkOpenAPI
import Foundation
import Testing

@testable import Generate

@Suite("Traffic")
struct TrafficTests {
    /// - Parameter entries: method, URL, status and body of the answer, and the body of the request.
    private func endpoints(_ entries: [(String, String, Int, String, String?)]) throws -> [Endpoint] {
        let entries = entries.map { method, url, status, answer, body -> [String: Any] in
            var request: [String: Any] = ["method": method, "url": url]
            if let body { request["postData"] = ["mimeType": "application/json; charset=utf-8", "text": body] }
            let content = ["mimeType": answer.isEmpty ? "" : "application/json", "text": answer]
            return ["request": request, "response": ["status": status, "content": content]]
        }
        let har = try JSONSerialization.data(withJSONObject: ["log": ["entries": entries]])
        return Endpoint.find(in: try Exchange.read(JSON.parse(har)))
    }

    private func lines(_ endpoints: [Endpoint]) -> [String] {
        SwiftWriter().text(of: endpoints).split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
    }

    @Test("TOL-1: segments that vary become properties, for all methods and below; a segment that does not vary stays")
    func paths() throws {
        let user = #"{"id": 1}"#
        let found = try endpoints([
            ("GET", "https://h/v2/users/1", 200, user, nil), ("DELETE", "https://h/v2/users/3", 204, "", nil),
            ("GET", "https://h/v2/users/2", 200, user, nil), ("GET", "https://h/v2/users/1/posts/7", 200, "[]", nil),
            ("GET", "https://h/v2/users/2/posts/8", 200, "[]", nil),
            ("GET", "https://h/v2/repos/swift", 200, user, nil),
            ("GET", "https://h/v2/repos/nio", 200, user, nil), ("GET", "https://h/v2/repos/top", 200, "[]", nil),
            ("GET", "https://h/years/2026", 200, "[]", nil), ("GET", "wss://h/socket", 101, "", nil),
        ])
        #expect(
            found.map(\.name) == ["GetUser", "DeleteUser", "GetUserPost", "GetRepo", "GetReposTop", "GetYears2026"]
        )
        let apis = lines(found).filter { $0.hasPrefix("var api") }.map { $0.split(separator: "\"")[1] }
        #expect(
            apis == [
                "v2/users/\\(id)", "v2/users/\\(id)", "v2/users/\\(userID)/posts/\\(postID)", "v2/repos/\\(id)",
                "v2/repos/top",
                "years/2026",
            ]
        )
    }

    @Test("TOL-1: a prefix such as v1 of all paths belongs to the base URL, and a UUID is no part of a name")
    func prefix() throws {
        let id = "3F2504E0-4F89-11D3-9A0C-0305E82C3301"
        let found = try endpoints([
            ("GET", "https://h/api/v1/users/\(id)", 200, #"{"id": 1}"#, nil),
            ("GET", "https://h/api/v1/v2", 200, #"{"id": 1}"#, nil),
        ])
        #expect(found.map(\.name) == ["GetUser", "GetRoot"] && found[0].itemName == "User")
        let apis = lines(found).filter { $0.hasPrefix("var api") }.map { $0.split(separator: "\"")[1] }
        #expect(apis == ["users/\(id)", "v2"])
        let har =
            #"{"log": {"entries": [{"request": {"method": "GET", "url": "https://h/v1/a"}, "#
            + #""response": {"status": 204}}]}}"#
        let arguments = Arguments(file: "a.har")
        let text = try Generate.text(for: arguments, Data(har.utf8))
        #expect(text.contains("// The base URL is https://h/v1") && text.contains(#"var api: String { "a" }"#))
        // Not all paths.
        let some = try endpoints([("GET", "https://h/v1/a", 200, "{}", nil), ("GET", "https://h/b", 200, "{}", nil)])
        #expect(lines(some).contains(#"var api: String { "v1/a" }"#))
    }

    @Test("TOL-1: query items that vary become properties, others stay; a secret never stays")
    func queries() throws {
        let found = try endpoints([
            ("GET", "https://h/a?sort=new&page=1&tag=x&token=t&in=true", 200, "{}", nil),
            ("GET", "https://h/a?sort=new&page=2&tag=y&tag=z&q=a%20b&token=t&in=false", 200, "{}", nil),
        ])
        #expect(found.map(\.constants) == [["sort=new"]])
        let types = found[0].parameters.map { "\($0.key) \($0.name): \($0.type)" }
        #expect(types == ["page page: Int", "tag tag: [String]", "token token: String", "in in: Bool", "q q: String?"])
        let text = lines(found)
        #expect(text.contains(#"var api: String { "a?sort=new" }"#) && !text.joined().contains("\"t\""))
        #expect(
            text.contains(
                "var options: RequestOptions { RequestOptions(queryEncoder: QueryEncoder(arrayStyle: .repeated, nullSuffix: nil)) }"
            )
        )
    }

    @Test("TOL-1: bodies and successful answers are merged over all entries; equal structs are one")
    func bodies() throws {
        let found = try endpoints([
            ("POST", "https://h/users", 201, #"{"id": 1, "name": null}"#, #"{"name": "a"}"#),
            ("POST", "https://h/users", 400, #"{"error": "e"}"#, #"{"name": "b", "age": 1}"#),
            ("GET", "https://h/users", 200, #"[{"id": 1.5, "name": "a"}]"#, nil),
            ("GET", "https://h/draft", 200, #"{"a": 1}"#, nil), ("GET", "https://h/draft", 204, "", nil),
        ])
        let text = lines(found)
        let words = text.map { $0.split(separator: " ").drop { $0 == "nonisolated" } }
        let structs = words.filter { $0.first == "struct" }.compactMap { $0.dropFirst().first }
        #expect(structs == ["User:", "PostUsers:", "Payload:", "GetUsers:", "Draft:", "GetDraft:"])
        #expect(text.contains("let id: Double") && text.contains("let name: String?") && text.contains("var age: Int?"))
        #expect(text.contains("typealias Item = [User]") && text.contains("typealias Item = Draft?"))
        #expect(text.contains("var body: RequestBody? { .json(payload) }"))
    }

    @Test("TOL-1: requests to several hosts have absolute addresses")
    func hosts() throws {
        let found = try endpoints([("GET", "https://h/a", 200, "{}", nil), ("GET", "http://i:81/b", 200, "{}", nil)])
        let text = lines(found)
        #expect(
            text.contains(#"var api: String { "https://h/a" }"#)
                && text.contains(#"var api: String { "http://i:81/b" }"#)
        )
    }

    @Test(
        "TOL-1: a recording without a field is refused at the object that lacks it",
        arguments: [
            (#"{"a": 1}"#, "\"log\" is missing here", 0),
            (#"{"log": {"entries": 1}}"#, "\"entries\" is not an array", 20),
            (#"{"log": {"entries": [{"request": {}, "response": {}}]}}"#, "\"url\" is missing here", 33),
            (
                #"{"log": {"entries": [{"request": {"url": "a"}, "response": {}}]}}"#, "\"url\" is not an absolute URL",
                41
            ),
        ]
    )
    func misfits(har: String, message: String, offset: Int) {
        #expect(throws: InputError(message: "this is not HAR 1.2: " + message, offset: offset)) {
            try Exchange.read(JSON.parse(Data(har.utf8)))
        }
    }
}
