import Foundation
import Testing

@testable import EasyNetwork

@Suite("Reformer")
struct ReformerTests {
    private struct User: Codable, Equatable, Sendable {
        var id: Int
        var name: String
    }

    private struct Row: Reformer {
        func reform(_ user: User) throws -> String { "\(user.id). \(user.name)" }
    }

    private struct Initials: Reformer {
        func reform(_ user: User) throws -> String {
            guard let first = user.name.first else { throw ResponseMapperError.missing(key: "name") }
            return String(first)
        }
    }

    private struct Names: Reformer {
        func reform(_ response: NetworkResponse) throws -> [String] { try response.decode([User].self).map(\.name) }
    }

    private let ada = Result<User, NetworkError>.success(User(id: 1, name: "Ada"))

    @Test("RSP-5: several views are derived from one result")
    func views() throws {
        #expect(try ada.reformed(by: Row()).get() == "1. Ada")
        #expect(try ada.reformed(by: Initials()).get() == "A")
        #expect(try ada.reformed(by: ClosureReformer("id") { $0.id }).get() == 1)
        let length = ClosureReformer<String, Int>("length") { $0.count }
        #expect(try ada.reformed(by: Row().then(length)).get() == 6)
        #expect(try ada.get() == User(id: 1, name: "Ada"))
    }

    @Test("RSP-5: several under keys; one that fails names itself and leaves the others alone")
    func keyed() throws {
        let nobody = Result<User, NetworkError>.success(User(id: 2, name: ""))
        let views = nobody.reformed(by: ["row": Row(), "initials": Initials()])
        #expect(views.count == 2)
        #expect(try views["row"]?.get() == "2. ")
        let error = #expect(throws: NetworkError.self) { try views["initials"]?.get() }
        #expect(error?.code == .cannotParseResponse)
        #expect(error?.message == #"Initials: no value for key "name""#)
        #expect(error?.underlying as? ResponseMapperError == .missing(key: "name"))
    }

    @Test("RSP-5: a failure stays the failure it is, and no reformer is called")
    func failures() {
        let failed = Result<User, NetworkError>.failure(NetworkError(code: .timedOut, message: "m"))
        let never = ClosureReformer<User, Int>("never") { _ in
            Issue.record("called")
            return 0
        }
        let error = #expect(throws: NetworkError.self) { try failed.reformed(by: never).get() }
        #expect(error?.code == .timedOut)
        #expect(error?.message == "m")
        let own = ClosureReformer<User, Int>("own") { _ in throw NetworkError(code: .refused) }
        let refused = #expect(throws: NetworkError.self) { try ada.reformed(by: own).get() }
        #expect(refused?.code == .refused)
        #expect(refused?.message == "own")
    }

    @Test("RSP-5: views of an answer, whose errors have status, headers and body of it")
    func answers() throws {
        let body = Data(#"[{"id":1,"name":"Ada"},{"id":2,"name":null}]"#.utf8)
        let answer = NetworkResponse(headers: ["X": "1"], body: body)
        let error = #expect(throws: NetworkError.self) { try answer.reformed(by: Names()) }
        #expect(error?.message == "Names: [1].name: expected String but found null")
        #expect(error?.statusCode == 200)
        #expect(error?.responseBody == body)
        #expect(error?.underlying is DecodingError)
        let count = ClosureReformer<NetworkResponse, [String]>("count") { ["\($0.body.count)"] }
        let views = answer.reformed(by: [0: Names(), 1: count])
        #expect(try views[1]?.get() == ["\(body.count)"])
        #expect(throws: NetworkError.self) { try views[0]?.get() }
        let mapped = ClosureReformer<NetworkResponse, Int>("mapped") { _ in throw ResponseMapperError.invalid }
        let mapping = #expect(throws: NetworkError.self) { try answer.reformed(by: mapped) }
        #expect(mapping?.message == "mapped: the JSON is not of the expected form")
        #expect(mapping?.headers["X"] == "1")
    }
}
