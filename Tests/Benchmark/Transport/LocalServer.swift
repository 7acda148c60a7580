#if os(Linux) || os(macOS)
import Foundation
import Programs

/// A local nginx on 127.0.0.1 with a port for each ``Listener``: `/small` has ``smallCount`` bytes, `/big` has ``bigCount``, `/bulk` sends
/// ``bulkCount`` slowly, and `/upload` reads a whole body and answers with the number of bytes of head and body.
///
/// The server and its folder disappear soon after ``stop()``, and after any end of this process.
final class LocalServer {
    enum Listener: String, CaseIterable {
        case plain = "HTTP/1.1"
        case tls = "TLS"
        /// TLS and HTTP/2.
        case http2 = "HTTP/2"

        var scheme: String { self == .plain ? "http" : "https" }

        /// For the configuration of nginx.
        var flags: String {
            switch self {
            case .plain: ""
            case .tls: " ssl"
            case .http2: " ssl http2"
            }
        }
    }

    static let smallCount = 1_024
    static let bigCount = 1 << 30
    static let bulkCount = 200_000_000
    /// Bytes a second of all connections for `/bulk` together, each of which has its share.
    static let bulkRate = 20_000_000
    static let bulkConnections = 6

    private let nginx: Nginx
    private let certificates: TestCertificates

    /// - Throws: An error without nginx or openssl, or when nginx does not start.
    init(in parent: URL) throws {
        (nginx, certificates) = try Nginx.start(portCount: Listener.allCases.count, in: parent) { folder, ports in
            let certificates = try TestCertificates(in: folder)
            let files = ServerFiles(folder: folder, ports: ports, certificates: certificates)
            try files.write()
            return (files.configuration, certificates)
        }
    }

    /// The authority that signed the certificate of the listeners with TLS.
    var authority: URL { certificates.caFile }

    /// The folder of all files of the server, with room for others.
    var folder: URL { nginx.folder }

    /// Ends nginx and removes its folder, possibly after this method has returned.
    func stop() {
        nginx.stop()
    }

    func port(of listener: Listener) -> UInt16 {
        zip(Listener.allCases, nginx.ports).first { $0.0 == listener }?.1 ?? 0
    }

    /// - Parameters:
    ///   - path: begins with a slash.
    ///   - port: the port of a relay to the listener; nil means the listener's own port.
    func url(_ path: String, over listener: Listener = .plain, port: UInt16? = nil) throws -> URL {
        let text = "\(listener.scheme)://127.0.0.1:\(port ?? self.port(of: listener))\(path)"
        guard let url = URL(string: text) else {
            throw TransportBenchmark.Unavailable(description: "\(text) is no URL")
        }
        return url
    }

    /// The file behind `/bulk`.
    var bulk: URL { folder.appendingPathComponent("www/bulk") }

    /// The bytes of the answers for `/bulk` so far.
    func bulkBytesSent() throws -> Int64 {
        let log = folder.appendingPathComponent("bulk.log")
        guard let text = try? String(contentsOf: log, encoding: .utf8) else { return 0 }
        return text.split(separator: "\n").compactMap { Int64($0) }.reduce(0, +)
    }
}
#endif
