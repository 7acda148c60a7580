#if os(Linux)
import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("How far a request came over libcurl", .timeLimit(.minutes(10)))
struct CurlPhaseTests {
    private let clock = ManualClock()
    private let transport: CurlTransport

    init() {
        // A foreign libcurl may look for the system's authorities in a missing file.
        let tls = TLSConfiguration(trust: .dangerouslyTrustingEveryServer)
        transport = CurlTransport(TransportConfiguration(tls: tls, proxy: .none), clock: clock)
    }

    private func start(_ request: TransportRequest) -> RecordedExchange {
        let recording = Recording {}
        return RecordedExchange(exchange: transport.start(request) { recording.note($0) }, recording: recording)
    }

    @Test("BEY-1: the idle deadline in the phase .send ends a request that its server stops reading")
    func send() async throws {
        let server = try DeafListener(.open)
        var request = TransportRequest(method: .put, url: server.url, deadlines: TransportDeadlines(idle: 5))
        // More than the buffers of both ends can hold.
        request.body = .data(Data(count: 64 << 20))
        let exchange = start(request)
        await expect(eventually { !exchange.recording.contents.sent.isEmpty })
        await expect(
            eventually {
                clock.advance(by: 5)
                return exchange.recording.contents.end != nil
            }
        )
        let error = exchange.recording.contents.end?.error
        expect(error?.code == .timedOut && error?.phase == .send && error?.mayHaveReachedServer == true)
        withExtendedLifetime(server) {}
    }

    /// Starts an exchange with a server that accepts the connection and is silent in the handshake.
    private func stalled() async throws -> (server: MockServer, exchange: RecordedExchange) {
        let server = try MockServer()
        server.failNextRequests(with: .stall(at: .requestStart))
        let address = server.baseURL.absoluteString.replacingOccurrences(of: "http:", with: "https:")
        let deadlines = TransportDeadlines(connect: 2, idle: nil)
        let exchange = start(TransportRequest(url: try #require(URL(string: address)), deadlines: deadlines))
        await server.waitForFaults(1)
        // The server has the connection; once another exchange has ended, the loop has it, too.
        let other = try MockServer()
        other.route("GET", "/") { _ in .status(200) }
        let next = TransportRequest(url: other.baseURL, deadlines: TransportDeadlines(idle: nil))
        await expect(start(next).end().code == nil)
        return (server, exchange)
    }

    @Test("SEC-2: the deadline for the connection holds for TLS, too, and nothing has reached the server")
    func handshake() async throws {
        let (server, exchange) = try await stalled()
        clock.advance(by: 1.9)
        expect(exchange.recording.contents.end == nil)
        clock.advance(by: 0.2)
        let error = await exchange.end().end?.error
        expect(error?.code == .timedOut && error?.phase == .tls && error?.mayHaveReachedServer == false)
        withExtendedLifetime(server) {}
    }

    @Test("OPQ-2: a cancel while the connection is made secure ends it at once")
    func cancel() async throws {
        let (server, exchange) = try await stalled()
        exchange.exchange.cancel()
        let outcome = await exchange.end()
        expect(outcome.code == .cancelled && outcome.end?.error?.phase == .tls && outcome.faults.isEmpty)
        expect(outcome.end?.error?.mayHaveReachedServer, equals: false)
        withExtendedLifetime(server) {}
    }
}
#endif
