import EasyNetwork
import Foundation
import Testing

@testable import EasyNetworkTesting
@testable import TestSupport

@Suite("MockServer's life", .timeLimit(.minutes(10)))
struct MockServerLifeTests {
    @Test("BEY-11: 1,000 requests over 200 open connections get their own answers")
    func load() async throws {
        let server = try MockServer()
        server.route("GET", "/*") { request in .text(request.path) }
        let clients = try await onThread { try (0..<200).map { _ in try RawClient(server) } }
        await expect(server.waitForConnections(200))
        let wrong = try await onThread {
            var wrong: [String] = []
            for round in 0..<5 {
                for (index, client) in clients.enumerated() {
                    try client.send("GET /\(index)/\(round) HTTP/1.1\r\nHost: a\r\n\r\n")
                }
                for (index, client) in clients.enumerated() {
                    let body = try client.receiveAnswer().body
                    if body != Data("/\(index)/\(round)".utf8) { wrong.append("/\(index)/\(round)") }
                }
            }
            return wrong
        }
        expect(wrong.isEmpty)
        expect(server.connectionCount, equals: 200)
        expect(server.requests.count, equals: 1000)
        let perConnection = Dictionary(grouping: server.requests, by: \.connection)
        expect(perConnection.count, equals: 200)
        expect(perConnection.values.allSatisfy { $0.count == 5 })
        for client in clients { client.close() }
        await expect(server.waitForConnections(0))
    }

    @Test("BEY-11: stop ends connections and the port, may be repeated, and keeps the received requests")
    func stop() async throws {
        let server = try MockServer()
        server.route("GET", "/") { _ in .fault(.stall) }
        let client = try RawClient(server)
        try client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        await expect(server.waitForRequests(1))
        server.stop()
        expect(server.connectionCount, equals: 0)
        server.stop()
        try await expect(onThread { try client.receiveToEnd() }, equals: "")
        // Another program may have taken the port by now.
        if let other = try? RawClient(server) { _ = try await onThread { try other.get("/") } }
        expect(server.requests.count == 1 && server.connectionCount == 0)
    }

    @Test("BEY-11: an answer that is ready after the server stopped is dropped")
    func lateAnswer() async throws {
        let server = try MockServer()
        let began = DispatchSemaphore(value: 0)
        let gate = DispatchSemaphore(value: 0)
        let ended = DispatchSemaphore(value: 0)
        server.route("GET", "/") { _ in
            began.signal()
            gate.wait()
            defer { ended.signal() }
            return .text("late")
        }
        let client = try RawClient(server)
        try client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        // The route must have started, because a stopped server calls no routes.
        let hasBegun = try await onThread { began.wait(timeout: .now() + 60) == .success }
        expect(hasBegun)
        server.stop()
        gate.signal()
        try await expect(onThread { try client.receiveToEnd() }, equals: "")
        let hasEnded = try await onThread { ended.wait(timeout: .now() + 60) == .success }
        expect(hasEnded)
    }

    @Test(
        "BEY-11: a client that closed while its answer was made does not keep the connection",
        arguments: [true, false]
    )
    func gaveUp(isStalled: Bool) async throws {
        let server = try MockServer()
        let gate = DispatchSemaphore(value: 0)
        server.route("GET", "/slow") { _ in
            gate.wait()
            return isStalled ? .fault(.stall) : MockResponse(delay: 3_600)
        }
        server.route("GET", "/other") { _ in .text("x") }
        let client = try RawClient(server)
        let other = try RawClient(server)
        try client.send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
        await expect(server.waitForRequests(1))
        client.finishWriting()
        // By the time it answers, the server has seen the first connection close.
        try await expect(onThread { try other.get("/other") }, equals: "x")
        gate.signal()
        await expect(server.waitForConnections(1))
    }

    @Test("BEY-11: a released server stops")
    func letGo() async throws {
        var client: RawClient?
        do {
            let server = try MockServer()
            server.route("GET", "/") { _ in .text("x") }
            client = try RawClient(server)
            let asked = try #require(client)
            try await expect(onThread { try asked.get("/") }, equals: "x")
        }
        let left = try #require(client)
        try await expect(onThread { try left.receiveToEnd() }, equals: "")
    }

    @Test("BEY-11: stop releases routes that hold the server")
    func cycle() async throws {
        final class Route: Sendable {
            let released: AsyncStream<Void>.Continuation

            init(_ released: AsyncStream<Void>.Continuation) {
                self.released = released
            }

            deinit { released.finish() }
        }
        let (release, released) = AsyncStream.makeStream(of: Void.self)
        do {
            let server = try MockServer()
            let route = Route(released)
            server.route("GET", "/") { _ in withExtendedLifetime(route) { .text("\(server.requests.count)") } }
            try await expect(onThread { try RawClient(server).get("/") }, equals: "1")
            server.stop()
        }
        // The thread that ran the route's closure releases it after sending the answer.
        for await _ in release {}
    }

    @Test("BEY-11: waiting ends when the task is cancelled, and when the time runs out")
    func waiting() async throws {
        let server = try MockServer()
        let waiting = Task { await server.waitForRequests(1, timeout: 3600) }
        waiting.cancel()
        await expect(waiting.value, equals: false)
        await expect(server.waitForRequests(1, timeout: 0), equals: false)
        await expect(server.waitForRequests(0, timeout: 0))
    }

    #if os(Linux)
    @Test("BEY-11: stop leaves no descriptor of the server")
    func descriptors() async throws {
        // Compares identities rather than counts, because other tests open and close descriptors too.
        func identities() throws -> [Int32: String] {
            let folder = "/proc/self/fd"
            var found: [Int32: String] = [:]
            for name in try FileManager.default.contentsOfDirectory(atPath: folder) {
                guard let number = Int32(name) else { continue }
                found[number] = try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\(name)")
            }
            return found
        }
        let server = try MockServer()
        server.route("GET", "/stall") { _ in .fault(.stall) }
        server.route("GET", "/late") { _ in MockResponse(delay: 3600) }
        let clients = try ["/stall", "/late", "/none"].map { path in
            let client = try RawClient(server)
            try client.send("GET \(path) HTTP/1.1\r\nHost: a\r\n\r\n")
            return client
        }
        await expect(server.waitForRequests(3))
        let before = try identities()
        let owned = server.descriptors.compactMap { before[$0] }
        expect(owned.count, equals: 6)
        server.stop()
        let after = Set(try identities().values)
        expect(owned.filter(after.contains), equals: [])
        for client in clients { client.close() }
    }
    #endif
}
