#if os(Linux)
import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

/// Consecutive exchanges use the same handle of libcurl.
@Suite("Messages over a reused handle of libcurl", .timeLimit(.minutes(10)))
struct CurlHandleTests {
    private let server: MockServer
    private let transport = CurlTransport(TransportConfiguration(proxy: .none))

    init() throws {
        server = try MockServer()
    }

    private func outcome(_ request: TransportRequest) async -> Recording.Contents {
        let recording = Recording {}
        let exchange = transport.start(request) { recording.note($0) }
        return await RecordedExchange(exchange: exchange, recording: recording).end()
    }

    private func request(_ address: String, _ method: NetworkService.Method = .get) throws -> TransportRequest {
        TransportRequest(method: method, url: try #require(URL(string: address)), deadlines: .init(idle: nil))
    }

    @Test(
        "SEC-2: each message is sent as if it were the first, whatever came before",
        arguments: UInt64(1)...UInt64(TestLoad.count(4, part: 1))
    )
    func inAnyOrder(seed: UInt64) async throws {
        server.route("*", "*") { _ in .text("answer") }
        let address = server.baseURL.absoluteString
        let withUser = address.replacingOccurrences(of: "http://", with: "http://user:secret@")
        var generator = SeededGenerator(seed: seed)
        var shared: HTTPHeaders = ["X-Shared": "0"]
        for round in 0..<100 {
            let kind = Int.random(in: 0..<8, using: &generator)
            // Often repeats the address and the fields of the previous message.
            let path = "/\(Int.random(in: 0..<3, using: &generator))"
            var message = try request("\(kind == 0 ? withUser : address)\(path)")
            var names: Set = ["host", "accept", "accept-encoding"]
            switch Int.random(in: 0..<6, using: &generator) {
            case 0: shared["X-Shared"] = "\(round)"
            case 1...3:
                message.headers = shared
                names.insert("x-shared")
            default: break
            }
            switch kind {
            case 1: message.method = .head
            case 2: message.method = .delete
            case 3:
                message.method = .put
                message.body = .data(Data("body".utf8))
                names.insert("content-length")
            case 4:
                message.method = .post
                names.insert("content-length")
            case 5:
                message.headers["X-\(round)"] = "\(round)"
                message.headers["Authorization"] = "secret"
                names.formUnion(["x-\(round)", "authorization"])
            case 6:
                message.method = .get
                message.body = .data(Data("body".utf8))
                names.insert("content-length")
            default: break
            }
            let outcome = await outcome(message)
            let place: Comment = "seed \(seed), round \(round), kind \(kind)"
            expect(outcome.code == nil && outcome.body == Data((kind == 1 ? "" : "answer").utf8), place)
            let received = try #require(server.requests.last)
            expect(received.method == message.method.rawValue && received.path == path, place)
            expect(received.headers["X-Shared"], equals: message.headers["X-Shared"], place)
            expect(Set(received.headers.map { $0.name.lowercased() }), equals: names, place)
            expect(received.body, equals: Data((kind == 3 || kind == 6 ? "body" : "").utf8), place)
        }
        expect(Set(server.requests.map(\.connection)).count, equals: 1, "seed \(seed)")
    }

    @Test("BEY-17: the retry policy decides about sending again, and the history shows it", arguments: [true, false])
    func closedConnections(retries: Bool) async throws {
        let count = Locked(0)
        server.route("GET", "/a") { _ in
            let number = count.withLock { count in
                defer { count += 1 }
                return count
            }
            // Every second request is lost, on a reused connection.
            return number % 2 == 1 ? .fault(.close) : .text("answer")
        }
        struct Call: APIRequest {
            typealias Item = NetworkResponse
            var api = "a"
        }
        let host = HostConfiguration(baseURL: server.baseURL, transport: transport) { host in
            host.retry = retries ? RetryPolicy(baseDelay: 0) : .never
        }
        let service = EasyNetworkService(host)
        for round in 0..<12 {
            do {
                let response = try await service.send(Call())
                let isRepeated = round > 0 && retries
                expect(
                    response.history.map(\.reason),
                    equals: (isRepeated ? [.first, .retry] : [.first]),
                    "round \(round)"
                )
            } catch {
                expect(!retries && round % 2 == 1 && error.code == .connectionLost && error.history.count == 1)
            }
        }
        expect(server.requests.count, equals: (retries ? 23 : 12))
    }

    @Test(
        "BEY-1: a transport alternates between hosts with and without TLS",
        .enabled(if: NginxServer.isInstalled)
    )
    func withAndWithoutTLS() async throws {
        let nginx = try await NginxClient()
        for listener in [NginxServer.Listener.https2, .http, .https2, .http] {
            let outcome = await nginx.outcome(listener, "/echo-protocol")
            let version = String(decoding: outcome.body, as: UTF8.self)
            expect(outcome.code == nil && version.hasPrefix(listener == .http ? "HTTP/1.1" : "HTTP/2"), "\(version)")
        }
    }

    @Test("REQ-5: an exchange that is late at once reports nothing of the one before")
    func lateAtOnce() async throws {
        server.route("GET", "/") { _ in .text("answer") }
        let address = server.baseURL.absoluteString + "/"
        let first = await outcome(try request(address))
        expect(first.end?.metrics?.connect != nil && first.end?.metrics?.bytesReceived ?? 0 > 6)
        var late = try request(address)
        late.deadlines.total = 0
        let second = await outcome(late)
        expect(second.code == .timedOut && second.end?.error?.phase == .resolve)
        let metrics = try #require(second.end?.metrics)
        expect(metrics.connect == nil && metrics.firstByte == nil && metrics.nameLookup == nil)
        expect(metrics.bytesReceived == 0 && metrics.bytesSent == 0 && server.requests.count == 1)
    }
}
#endif
