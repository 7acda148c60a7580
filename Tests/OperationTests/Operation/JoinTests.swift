import EasyNetworkTesting
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Join", .timeLimit(.minutes(10)))
struct JoinTests {
    private let queue = NetworkQueue()
    private let transport = InMemoryTransport()
    private let service: EasyNetworkService

    init() throws {
        let base = try URLBuilder.base("https://example.com")
        service = EasyNetworkService(
            HostConfiguration(baseURL: base, deadlines: TransportDeadlines(idle: nil), transport: transport)
        )
        transport.route("GET", "/users/1") { _ in .json(["id": 1, "name": "Ada"]) }
        transport.route("GET", "/users/2") { _ in .json(["id": 2, "name": "Grace"]) }
        transport.route("GET", "/order") { _ in .status(200) }
    }

    private struct Order: APIRequest {
        typealias Item = NetworkResponse
        var names: [String]
        var api: String { "order" }
        var params: [String: Any]? { ["names": names.joined(separator: "-")] }
    }

    @Test("BEY-2: the items of two operations and of three make the next request")
    func items() async throws {
        let ada = RequestOperation(GetAccount(id: 1), service: service)
        let grace = RequestOperation(GetAccount(id: 2), service: service)
        let answer = RequestOperation(Get(api: "order"), service: service)
        let two = join(ada, grace) { Order(names: [$0.name, $1.name]) }
        let three = join(ada, grace, answer) { Order(names: [$0.name, $1.name, "\($2.statusCode)"]) }
        queue.addOperations([three, two, answer, grace, ada], waitUntilFinished: false)
        try await expect(two.value.statusCode, equals: 200)
        try await expect(three.value.statusCode, equals: 200)
        let queries = transport.requests(to: "/order").compactMap(\.query)
        expect(Set(queries), equals: ["names=Ada-Grace", "names=Ada-Grace-200"])
    }

    @Test("BEY-2: if one fails, whichever, the next sends nothing", arguments: [0, 1, 2])
    func failure(place: Int) async throws {
        let operations = (0..<3).map { RequestOperation(GetAccount(id: $0 == place ? 404 : 1), service: service) }
        let next = join(operations[0], operations[1], operations[2]) { first, _, _ in Order(names: [first.name]) }
        queue.addOperations(operations + [next], waitUntilFinished: false)
        let error = await #expect(throws: NetworkError.self) { try await next.value }
        expect(error?.code == .dependencyFailed && error?.rootCause.statusCode == 404)
        expect(transport.requests(to: "/order").isEmpty)
    }
}
