#if os(Linux) || os(macOS)
import Foundation
import Programs

/// A local nginx on 127.0.0.1 without TLS: `/small` has ``smallCount`` bytes, `/big` has ``bigCount``, `/bulk` sends
/// ``bulkCount`` slowly, and `/upload` reads a whole body and answers with the number of bytes of head and body.
///
/// The server and its folder disappear soon after ``stop()``, and after any end of this process.
final class LocalServer {
    static let smallCount = 1_024
    static let bigCount = 1 << 30
    static let bulkCount = 200_000_000
    /// Bytes a second of all connections for `/bulk` together, each of which has its share.
    static let bulkRate = 20_000_000
    static let bulkConnections = 6

    private let nginx: Nginx

    /// - Throws: An error without nginx, or when it does not start.
    init(in parent: URL) throws {
        nginx = try Nginx.start(portCount: 1, in: parent) { folder, ports in
            let files = ServerFiles(folder: folder, port: ports[0])
            try files.write()
            return (files.configuration, ())
        }.nginx
    }

    /// The folder of all files of the server, with room for others.
    var folder: URL { nginx.folder }

    /// Ends nginx and removes its folder, possibly after this method has returned.
    func stop() {
        nginx.stop()
    }

    /// - Parameter path: begins with a slash.
    func url(_ path: String) throws -> URL {
        let text = "http://127.0.0.1:\(nginx.ports[0])\(path)"
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
