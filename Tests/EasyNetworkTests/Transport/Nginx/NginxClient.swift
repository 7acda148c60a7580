#if os(Linux)
import Foundation

@testable import EasyNetwork

/// A transport of its own with the nginx of all suites at its other end.
struct NginxClient: Sendable {
    /// How to reach a listener.
    struct Way: Sendable, CustomStringConvertible {
        let listener: NginxServer.Listener
        let ipv6: Bool

        var description: String { "\(listener) on \(host)" }
        var host: String { ipv6 ? "[::1]" : "127.0.0.1" }
        /// What a transport that knows HTTP/2 speaks there.
        var networkProtocol: String { listener == .https2 ? "HTTP/2" : "HTTP/1.1" }

        /// Every address of this machine with each of the listeners.
        static func all(_ listeners: [NginxServer.Listener]) -> [Way] {
            listeners.flatMap { listener in
                (NginxServer.hasIPv6 ? [false, true] : [false]).map { Way(listener: listener, ipv6: $0) }
            }
        }
    }

    let server: NginxServer
    let transport: CurlTransport

    /// - Parameter change: to a configuration that trusts the server's authority.
    init(_ change: (inout TransportConfiguration, NginxServer) throws -> Void = { _, _ in }) async throws {
        server = try await NginxServer.shared
        var configuration = TransportConfiguration(proxy: .none)
        configuration.tls.trust = .certificateFile(server.caFile)
        try change(&configuration, server)
        transport = CurlTransport(configuration)
    }

    func request(
        _ way: Way,
        _ path: String,
        _ method: NetworkService.Method = .get,
        _ body: TransportBody = .none
    ) -> TransportRequest {
        TransportRequest(
            method: method,
            url: server.url(way.listener, path, ipv6: way.ipv6),
            body: body,
            deadlines: TransportDeadlines(idle: nil)
        )
    }

    func start(_ request: TransportRequest) -> RecordedExchange {
        let recording = Recording {}
        return RecordedExchange(exchange: transport.start(request) { recording.note($0) }, recording: recording)
    }

    func outcome(_ request: TransportRequest) async -> Recording.Contents {
        // Let go of, the transport would end it.
        defer { withExtendedLifetime(transport) {} }
        return await start(request).end()
    }

    func outcome(
        _ listener: NginxServer.Listener,
        _ path: String,
        _ method: NetworkService.Method = .get,
        _ body: TransportBody = .none
    ) async -> Recording.Contents {
        await outcome(request(Way(listener: listener, ipv6: false), path, method, body))
    }
}

extension CurlTransport {
    /// Starts an exchange that was made before, so that its events can pause it: `start` may return after them.
    func start(
        _ request: TransportRequest,
        as exchange: CurlExchange,
        events: @escaping @Sendable (TransportEvent) -> Void
    ) {
        exchange.start(request, events: events)
    }
}

extension Recording.Contents {
    var text: String { String(decoding: body, as: UTF8.self) }
    var metrics: TransportMetrics? { end?.metrics }

    /// Whether the whole of `/small` came, as it should.
    var isSmall: Bool {
        head?.statusCode == 200 && end?.error == nil && faults.isEmpty
            && body == Data(repeating: UInt8(ascii: "s"), count: NginxServer.smallCount)
    }

    /// The number of the connection in the answer of `/echo-protocol`.
    var connection: Int? {
        let parts = text.split(separator: " ")
        return parts.count == 3 ? Int(parts[1]) : nil
    }
}
#endif
