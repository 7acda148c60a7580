import EasyNetwork
import Foundation
import Testing

@testable import EasyNetworkTesting
@testable import TestSupport

@Suite("MockRoutes")
struct MockRoutesTests {
    private func answer(_ routes: MockRoutes, _ method: String, _ target: String) -> Int {
        let request = MockRequest(method: method, target: target)
        return routes.answer(for: request)(request).statusCode
    }

    @Test("BEY-11: exact path, prefix, any method; the latest of the matching routes")
    func matching() {
        var routes = MockRoutes()
        routes.add("GET", "/a") { _ in .status(201) }
        routes.add("GET", "/a/*") { _ in .status(202) }
        routes.add("*", "/any") { _ in .status(203) }
        expect(answer(routes, "GET", "/a?x=1"), equals: 201)
        expect(answer(routes, "GET", "/a/"), equals: 202)
        expect(answer(routes, "GET", "/a/b/c"), equals: 202)
        expect(answer(routes, "POST", "/any"), equals: 203)
        expect(answer(routes, "POST", "/a"), equals: 404)
        expect(answer(routes, "get", "/a"), equals: 404, "methods have a case")
        expect(answer(routes, "GET", "/%61"), equals: 404, "paths are compared raw")
        routes.add("get", "*") { _ in .status(299) }
        expect(answer(routes, "GET", "/a"), equals: 299)
        expect(answer(routes, "GET", "/nowhere"), equals: 299)
        routes.add("GET", "/a") { _ in .status(205) }
        expect(answer(routes, "GET", "/a"), equals: 205)
        expect(answer(routes, "GET", "/a/b"), equals: 299)
    }

    @Test("BEY-11: without a route the answer names method and path")
    func missing() throws {
        let request = MockRequest(method: "GET", target: "/x?y")
        let response = MockRoutes().answer(for: request)(request)
        expect(response.statusCode, equals: 404)
        expect(response.body, equals: .data(Data(#"{"error":"no route for GET /x"}"#.utf8)))
        expect(response.headers["Content-Type"], equals: "application/json")
    }
}
