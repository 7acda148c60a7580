import EasyNetwork
import Foundation
import Testing

@testable import TestSupport

// Imported without `@testable`, so that everything used here must be public.

private struct Coordinates: Decodable, Sendable, Equatable, ParsedItem {
    var latitude: Double
}

private struct GetCoordinates: APIRequest {
    typealias Item = Coordinates
    var api: String { "position" }
}

private struct GetData: APIRequest {
    typealias Item = Data
    let api = "data"
}

private struct GetResponse: APIRequest {
    typealias Item = NetworkResponse
    let api = "response"
}

private struct Ping: APIRequest {
    typealias Item = Void
    let api = "ping"
}

private struct GetNames: APIRequest {
    typealias Item = [String]
    let api = "names"
}

private struct Mapped: APIRequest {
    let api = "mapped"
    func item(from response: NetworkResponse) throws -> Coordinates {
        Coordinates(latitude: try CoordinatesMapper.process(try response.json()).latitude + 1)
    }
}

private final class CoordinatesMapper: ResponseMapper<Coordinates>, ResponseMapperProtocol {
    static func process(_ json: Any?) throws -> Coordinates {
        try process(json, parse: { json in Coordinates(latitude: try json.required("latitude")) })
    }
}

private struct Everything: BaseAPIRequest {
    let api = "everything"
    var method: NetworkService.Method { .post }
    var query: NetworkService.QueryType { .path }
    var params: [String: Any]? { ["a": 1] }
    var headers: [String: String]? { defaultJsonHeader() }
    var body: RequestBody? { .json(["a": 1]) }
    var options: RequestOptions {
        RequestOptions(timeout: 3, priority: .high, validation: ResponseValidation(statusCodes: 200...399))
    }
}

@Suite("APIRequest")
struct APIRequestTests {
    private let response = NetworkResponse(body: Data(#"{"latitude":1.5}"#.utf8))

    @Test("RSP-2: the type of the item decides how the answer is read")
    func items() throws {
        try expect(GetCoordinates().item(from: response), equals: Coordinates(latitude: 1.5))
        try expect(GetData().item(from: response), equals: response.body)
        try expect(GetResponse().item(from: response).body, equals: response.body)
        try expect(GetNames().item(from: NetworkResponse(body: Data(#"["a"]"#.utf8))), equals: ["a"])
        try expect(Mapped().item(from: response), equals: Coordinates(latitude: 2.5))
        try Ping().item(from: response)
        try Ping().item(from: NetworkResponse(statusCode: 204))
    }

    @Test("RSP-2: the defaults also apply to a request of unknown type")
    func generic() throws {
        func item<Request: APIRequest>(of request: Request) throws -> Request.Item { try request.item(from: response) }
        try expect(item(of: GetData()), equals: response.body)
        try expect(item(of: GetCoordinates()), equals: Coordinates(latitude: 1.5))
        #expect(throws: NetworkError.self) { try item(of: GetNames()) }
    }

    @Test("REQ-1: every property of a request can be given")
    func everything() {
        let request: any BaseAPIRequest = Everything()
        expect(request.options.priority, equals: .high)
        expect(request.options.validation?.accepts(statusCode: 302), equals: true)
    }
}
