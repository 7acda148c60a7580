import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

/// Serialized, because the shared host is global.
@Suite("HostConfiguration", .serialized, .timeLimit(.minutes(10)))
struct HostConfigurationTests {
    @Test("CFG-2: before the host is set a path is a clear error of that job, and an absolute URL works")
    func noHost() async throws {
        HostConfiguration.shared = HostConfiguration(baseURL: nil)
        let server = try MockServer()
        server.route("GET", "/users/1") { _ in .json(["id": 1, "name": "Ada"]) }
        let queue = NetworkQueue()
        let relative = RequestOperation(GetAccount(id: 1))
        let absolute = RequestOperation(Get(api: server.baseURL.absoluteString + "/users/1"))
        queue.addOperation(relative)
        queue.addOperation(absolute)
        let error = await #expect(throws: NetworkError.self) { try await relative.value }
        expect(error?.code == .invalidRequest && error?.attempts == 0)
        expect(error?.localizedDescription.contains("HostConfiguration"), equals: true)
        try await expect(absolute.value.statusCode, equals: 200)
    }

    @Test("CFG-2: a bad URL throws and leaves the host as it was", arguments: ["", "nonsense", "ftp://a.b", "http://"])
    func badURL(string: String) {
        let before = HostConfiguration(baseURL: nil)
        HostConfiguration.shared = before
        let error = #expect(throws: NetworkError.self) { try HostConfiguration.baseURL(string) }
        expect(error?.code, equals: .invalidRequest)
        expect(HostConfiguration.shared === before)
    }

    @Test("CFG-2: a replaced host reaches later requests only")
    func replaced() async throws {
        let old = try MockServer()
        let new = try MockServer()
        for server in [old, new] {
            let port = server.baseURL.port ?? 0
            server.route("GET", "/users/1") { _ in .json(["id": port, "name": "Ada"]) }
        }
        let first = try HostConfiguration.baseURL(old.baseURL.absoluteString)
        expect(HostConfiguration.shared === first)
        let before = RequestOperation(GetAccount(id: 1))
        try HostConfiguration.baseURL(new.baseURL.absoluteString)
        let after = RequestOperation(GetAccount(id: 1))
        let queue = NetworkQueue()
        queue.addOperations([before, after], waitUntilFinished: false)
        try await expect(before.value.id, equals: old.baseURL.port)
        try await expect(after.value.id, equals: new.baseURL.port)
        HostConfiguration.shared = HostConfiguration(baseURL: nil)
    }
}
