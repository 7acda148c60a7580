#if os(Linux)
import Foundation

@testable import EasyNetwork

/// A transport with the shared nginx as its server.
struct NginxClient: Sendable {
    /// A listener and an address family.
    struct Way: Sendable, CustomStringConvertible {
        let listener: NginxServer.Listener
        let ipv6: Bool

        var description: String { "\(listener) on \(host)" }
        var host: String { ipv6 ? "[::1]" : "127.0.0.1" }
        /// The protocol of a transport with HTTP/2.
        var networkProtocol: String { listener == .https2 ? "HTTP/2" : "HTTP/1.1" }

        /// All combinations of address families and listeners.
        static func all(_ listeners: [NginxServer.Listener]) -> [Way] {
            listeners.flatMap { listener in
                (NginxServer.hasIPv6 ? [false, true] : [false]).map { Way(listener: listener, ipv6: $0) }
            }
        }
    }

    let server: NginxServer
    let transport: CurlTransport

    /// - Parameter change: Changes a configuration that trusts the server's authority.
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
        // Releasing the transport would end the exchange.
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
    /// Starts an existing exchange, so that its events can pause it even before `start` returns.
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

    /// Whether the whole of `/small` arrived without faults.
    var isSmall: Bool {
        head?.statusCode == 200 && end?.error == nil && faults.isEmpty
            && body == Data(repeating: UInt8(ascii: "s"), count: NginxServer.smallCount)
    }

    /// The connection's number in the answer of `/echo-protocol`.
    var connection: Int? {
        let parts = text.split(separator: " ")
        return parts.count == 3 ? Int(parts[1]) : nil
    }
}
#endif
