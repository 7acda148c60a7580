import EasyNetwork
import EasyNetworkTesting
import Foundation
import Testing

/// What Generate has written for a shop, against the shop's own document.
@Suite("Requests from a document")
struct GeneratedShopTests {
    private let server: InMemoryTransport
    private let service: EasyNetworkService

    init() throws {
        let document = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("OpenAPI/shop.json")
        server = InMemoryTransport()
        try server.routes(openAPI: document)
        let transport = server
        service = EasyNetworkService(
            HostConfiguration(baseURL: Shop.Server.production.baseURL, transport: transport) { host in
                host.retry = .never
                try? Shop.Credential.token("abc").apply(to: &host)
            }
        )
    }

    private func item<Request: APIRequest>(of request: Request) async throws -> Request.Item {
        try request.item(from: try await service.send(request))
    }

    private func roundTrip<Value: Codable & Equatable>(_ value: Value) throws -> Bool {
        let encoder = JSONEncoder()
        encoder.dateEncodingStrategy = .iso8601
        let response = NetworkResponse(body: try encoder.encode(value))
        return try response.decode(Value.self, with: .json) == value
    }

    @Test("TOL-2: parameters stand where the document has them, in its styles")
    func parameters() async throws {
        var list = Shop.ListThings(xClient: "app", tags: ["a b", "c"], ids: [1, 2], order: .minusName, session: "s/1")
        list.since = Date(timeIntervalSince1970: 0)
        _ = try await item(of: list)
        let sent = try #require(server.requests.last)
        #expect(sent.path == "/v1/things")
        #expect(sent.query == "ids=1%2C2&order=-name&since=1970-01-01T00%3A00%3A00Z&size=20&tags=a%20b&tags=c")
        #expect(sent.headers["X-Client"] == "app" && sent.headers["Cookie"] == "session=s%2F1")
        #expect(sent.headers["Authorization"] == "Bearer abc")

        _ = try await item(of: Shop.ListThings())
        #expect(server.requests.last?.query == "size=20" && server.requests.last?.headers["Cookie"] == nil)
        _ = try await item(of: Shop.PutPhoto(thingId: 7, number: "a/b", payload: .data(Data([1]))))
        #expect(server.requests.last?.path == "/v1/things/7/photos/a%2Fb")
        #expect(server.requests.last?.headers["Content-Type"] == "image/png")
        _ = try await item(of: Shop.SearchOrders(filter: .init(state: .sent, minPrice: 2.5)))
        #expect(server.requests.last?.query == "filter%5Bmin_price%5D=2.5&filter%5Bstate%5D=sent")
        _ = try await item(of: Shop.GetHealth())
        #expect(server.requests.last?.headers["Authorization"] == nil)
    }

    @Test(
        "TOL-2: lists in a path have the commas, dots and names of their style; an empty one, or cookie, adds no mark"
    )
    func lists() async throws {
        var lists = Shop.GetLists(
            plain: ["a,b", "c"],
            label: ["d", "e"],
            matrix: [1, 2],
            labels: ["f", "/"],
            numbers: [3, 4],
            mark: ""
        )
        _ = try await item(of: lists)
        let sent = try #require(server.requests.last)
        #expect(sent.path == "/v1/lists/a%2Cb,c/.d,e/;matrix=1;matrix=2/.f.%2F/;numbers=3,4")
        #expect(sent.headers["Cookie"] == "mark=")
        lists.plain = []
        let error = await #expect(throws: NetworkError.self) { try await item(of: lists) }
        #expect(error?.code == .invalidRequest && server.requests.count == 1)
    }

    @Test("TOL-2: examples are decoded, encoded and decoded again, and are equal")
    func examples() async throws {
        let things = try await item(of: Shop.ListThings())
        #expect(
            things.map(\.kind) == [.furniture, .paper] && things[0].addedAt != nil
                && things[1].photo == Data([1, 2, 3])
        )
        #expect(try roundTrip(things))
        let orders = try await item(of: Shop.SearchOrders())
        #expect(try roundTrip(orders))
        #expect(orders[0].payment == .card(.init(type: "card", digits: "1234")))
        #expect(orders[0].parent?.payment == .invoice(.init(type: "invoice")) && orders[0].parent?.notes == ["a": "b"])
        #expect(orders[0].additionalProperties == ["gift": .bool(true)])
        #expect(try await item(of: Shop.OrderRequest(payload: .init(thing: 1))).number == "A-1")
        let shelf = Shop.Shelf(above: .init(inside: [.init()]), holds: .shelf(.init(holds: .string("books"))))
        #expect(try roundTrip(shelf))
        let note = Notes.Note(
            kind: .note,
            text: nil,
            position: .string("a"),
            owner: nil,
            level: .init(rawValue: 9),
            any: .array([.null]),
            shape: .square(.init(form: .square, side: 2))
        )
        #expect(try roundTrip(note))
    }

    @Test("TOL-2: a value that the document does not know is kept")
    func unknown() throws {
        let json = #"{"id": 1, "name": "a", "price": 1, "kind": "toy"}"#
        let thing = try NetworkResponse(body: Data(json.utf8)).decode(Shop.Thing.self, with: .json)
        #expect(thing.kind.rawValue == "toy")
        let payment = try NetworkResponse(body: Data(#"{"type": "cash", "coins": [1]}"#.utf8)).decode(Shop.Payment.self)
        #expect(payment == .other(.object(["type": .string("cash"), "coins": .array([.integer(1)])])))
        #expect(try roundTrip(payment))
    }

    @Test("TOL-2: bodies as JSON, a form, a form with files, and bytes; null and a missing member differ")
    func bodies() async throws {
        var thing = Shop.AddThing.Payload(name: "Cup", price: 4.25, labels: [.string("a"), .object(.init(name: "b"))])
        let answer = try await item(of: Shop.AddThing(payload: thing))
        #expect(answer?.price == Decimal(string: "4.25"))
        func sent() -> String { server.requests.last.map { String(decoding: $0.body, as: UTF8.self) } ?? "" }
        #expect(sent() == #"{"labels":["a",{"name":"b"}],"name":"Cup","note":null,"price":4.25}"#)
        thing.color = .some(nil)
        thing.note = "n"
        _ = try await item(of: Shop.AddThing(payload: thing))
        #expect(sent().hasPrefix(#"{"color":null,"labels""#) && sent().contains(#""note":"n""#))

        let order = Shop.OrderRequest(payload: .init(thing: 1, address: .init(city: "Rome", zipCode: "00")))
        _ = try await item(of: order)
        #expect(sent() == "address%5Bcity%5D=Rome&address%5Bzip+code%5D=00&thing=1")
        let list = Shop.FormFile.data(Data("x".utf8), filename: "a.txt")
        let text = try await item(
            of: Shop.ImportThings(list: list, photos: [list], title: "T", count: 2, options2: .init(replace: true))
        )
        #expect(text == "2 things")
        for type in ["text/markdown", "application/vnd.shop+json"] {
            #expect(sent().contains("Content-Type: \(type)\r\n"))
        }
        for part in [#"name="list"; filename="a.txt""#, #"name="photos""#, #"name="count""#, #"{"replace":true}"#] {
            #expect(sent().contains(part), "\(part)")
        }
    }

    @Test("TOL-2: an answer that may be missing, be null, or be of another type by its status")
    func answers() async throws {
        #expect(try await item(of: Shop.Sometimes()) == .init(a: 1))
        #expect(try Shop.Sometimes().item(from: NetworkResponse(statusCode: 204)) == nil)
        #expect(try Shop.OrNull().item(from: NetworkResponse(body: Data("null".utf8))) == nil)
        let named = NetworkResponse(body: Data(#"{"x": {"a": 1}}"#.utf8))
        #expect(try Shop.ByName().item(from: named) == ["x": .init(a: 1)])
        #expect(try await item(of: Shop.ByStatus()) == .ok(.init(a: 1)))
        let created = NetworkResponse(statusCode: 201, body: Data(#"{"b": 2}"#.utf8))
        #expect(try Shop.ByStatus().item(from: created) == .created(.init(b: 2)))
        #expect(try Shop.ByStatus().item(from: NetworkResponse(statusCode: 204)) == .noContent)
    }

    @Test("TOL-2: an answer that the document has for a failure is a typed error")
    func failures() async throws {
        func failure<Request: APIRequest>(_ request: Request, _ code: String) async -> NetworkError? {
            let host = HostConfiguration(baseURL: Shop.Server.production.baseURL, transport: server) { host in
                host.headers["Prefer"] = "code=\(code)"
                host.retry = .never
            }
            do throws(NetworkError) {
                _ = try await EasyNetworkService(host).send(request)
                return nil
            } catch {
                return error
            }
        }
        let add = Shop.AddThing(payload: .init(name: "a", price: 1))
        var error = try #require(await failure(add, "422"))
        #expect(
            try Shop.AddThing.Failure(error)
                == .unprocessableContent(.init(errors: [.init(field: "name", reason: "is taken")]))
        )
        error = try #require(await failure(add, "503"))
        #expect(try Shop.AddThing.Failure(error) == .other(.init(title: "Closed", status: 503)))
        error = try #require(await failure(Shop.SearchOrders(), "404"))
        #expect(try Shop.SearchOrders.Failure(error) == .notFound(.init(title: "Closed", status: 503)))
        // One that the document does not have, and one without an answer.
        error.statusCode = 500
        #expect(throws: NetworkError.self) { try Shop.SearchOrders.Failure(error) }
        let lost = NetworkError(code: .connectionLost)
        let thrown = #expect(throws: NetworkError.self) { try Shop.AddThing.Failure(lost) }
        #expect(thrown?.code == .connectionLost)
    }
}
