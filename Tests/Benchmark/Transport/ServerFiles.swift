#if os(Linux) || os(macOS)
import Foundation
import Programs

/// The files and the configuration of a ``LocalServer``.
struct ServerFiles {
    let folder: URL
    let ports: [UInt16]
    let certificates: TestCertificates

    func write() throws {
        let manager = FileManager.default
        let served = folder.appendingPathComponent("www")
        try manager.createDirectory(at: served, withIntermediateDirectories: false)
        let small = served.appendingPathComponent("small")
        try Data(repeating: UInt8(ascii: "s"), count: LocalServer.smallCount).write(to: small)
        let big = served.appendingPathComponent("big")
        try Self.makeSparse(big)
        let bulk = served.appendingPathComponent("bulk")
        try Self.makeBulk(bulk)
        // The worker of an nginx of root runs as another user.
        for file in [small, big, bulk] {
            try manager.setAttributes([.posixPermissions: 0o644], ofItemAtPath: file.path)
        }
        try manager.setAttributes([.posixPermissions: 0o755], ofItemAtPath: served.path)
    }

    /// Writes a sparse file of ``LocalServer/bigCount`` zeros.
    static func makeSparse(_ file: URL) throws {
        try Data().write(to: file)
        let handle = try FileHandle(forWritingTo: file)
        try handle.truncate(atOffset: UInt64(LocalServer.bigCount))
        try handle.close()
    }

    /// Writes ``LocalServer/bulkCount`` bytes, each megabyte of which differs from the others.
    private static func makeBulk(_ file: URL) throws {
        try Data().write(to: file)
        let handle = try FileHandle(forWritingTo: file)
        var random = SystemRandomNumberGenerator()
        var block = [UInt64](repeating: 0, count: 125_000)
        for _ in 0..<LocalServer.bulkCount / 1_000_000 {
            for index in block.indices { block[index] = random.next() }
            try handle.write(contentsOf: block.withUnsafeBytes { Data($0) })
        }
        try handle.close()
    }

    /// The server, for the configuration.
    var configuration: String {
        let listeners = zip(LocalServer.Listener.allCases, ports).map { "listen 127.0.0.1:\($1)\($0.flags);" }
        return """
            log_format bytes '$body_bytes_sent';
            keepalive_timeout 60;
            keepalive_requests 1000000;
            ssl_protocols TLSv1.2 TLSv1.3;
            ssl_certificate "\(certificates.serverCertificate.path)";
            ssl_certificate_key "\(certificates.serverKey.path)";
            server {
                \(listeners.joined(separator: " "))
                root "\(folder.path)/www";
                location = /bulk {
                    access_log "\(folder.path)/bulk.log" bytes;
                    limit_rate \(LocalServer.bulkRate / LocalServer.bulkConnections);
                }
                \(Nginx.upload(in: folder))
            }
            """
    }
}
#endif
