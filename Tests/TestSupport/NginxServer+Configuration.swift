#if os(Linux) || os(macOS)
import Foundation
import Programs

extension NginxServer {
    /// The content of `/text`, uncompressed.
    static let text = String(repeating: "The same line again and again is easy to compress.\n", count: 200)
    /// The content of `/ranges`.
    static let rangesData = Data((0..<100_000).map { UInt8($0 % 251) })
    static let smallCount = 1_024
    static let bigCount = 1 << 30

    /// Makes the certificates and the served files, and the servers of the configuration.
    static func prepare(in folder: URL, _ ports: [UInt16]) throws -> (servers: String, contents: TestCertificates) {
        let certificates = try TestCertificates(in: folder)
        let manager = FileManager.default
        let served = folder.appendingPathComponent("www")
        try manager.createDirectory(at: served, withIntermediateDirectories: false)
        let contents = [
            "small": Data(repeating: UInt8(ascii: "s"), count: smallCount),
            "text": Data(text.utf8),
            "ranges": rangesData,
            "big": Data(),
        ]
        for (name, data) in contents { try data.write(to: served.appendingPathComponent(name)) }
        let big = try FileHandle(forWritingTo: served.appendingPathComponent("big"))
        // A sparse file takes no space on the disk.
        try big.truncate(atOffset: UInt64(bigCount))
        try big.close()
        let kept = folder.appendingPathComponent("files")
        try manager.createDirectory(at: kept, withIntermediateDirectories: false)
        // If root starts nginx, its workers run as another user.
        for readable in try manager.subpathsOfDirectory(atPath: served.path).map(served.appendingPathComponent) {
            try manager.setAttributes([.posixPermissions: 0o644], ofItemAtPath: readable.path)
        }
        try manager.setAttributes([.posixPermissions: 0o755], ofItemAtPath: served.path)
        try manager.setAttributes([.posixPermissions: 0o777], ofItemAtPath: kept.path)
        return (servers(in: folder, certificates, ports), certificates)
    }

    private static func servers(in folder: URL, _ certificates: TestCertificates, _ ports: [UInt16]) -> String {
        let servers = zip(Listener.allCases, ports).map { server($0, port: $1, folder) }
        return """
            # Nobody is to be put out because the machine is slow.
            keepalive_timeout 1h;
            send_timeout 1h;
            client_header_timeout 1h;
            client_body_timeout 1h;
            keepalive_requests 100000;
            absolute_redirect off;
            ssl_session_cache shared:tls:1m;
            ssl_certificate "\(certificates.serverCertificate.path)";
            ssl_certificate_key "\(certificates.serverKey.path)";
            ssl_client_certificate "\(certificates.caFile.path)";
            \(servers.joined(separator: "\n"))
            """
    }

    private static func server(_ listener: Listener, port: UInt16, _ folder: URL) -> String {
        let (flags, more) =
            switch listener {
            case .http: ("", "")
            case .https1: (" ssl", "ssl_protocols TLSv1.2 TLSv1.3;")
            case .https2: (" ssl http2", "ssl_protocols TLSv1.2 TLSv1.3;")
            case .mutualTLS: (" ssl", "ssl_protocols TLSv1.2 TLSv1.3; ssl_verify_client on;")
            case .oldTLS: (" ssl", "ssl_protocols TLSv1.2;")
            }
        return """
            server {
                listen 127.0.0.1:\(port)\(flags);
                \(hasIPv6 ? "listen [::1]:\(port)\(flags) ipv6only=on;" : "")
                \(more)
                root "\(folder.path)/www";
                location = /text { default_type text/plain; gzip on; gzip_min_length 20; gzip_types text/plain; }
                location = /echo-protocol {
                    default_type text/plain;
                    return 200 "$server_protocol $connection $connection_requests";
                }
                location = /client { default_type text/plain; return 200 "$ssl_client_verify $ssl_client_s_dn"; }
                location = /resumed { default_type text/plain; keepalive_timeout 0; return 200 "$ssl_session_reused"; }
                location = /modified { etag off; alias "\(folder.path)/www/small"; }
                # Closes the connection without a response.
                location = /unanswered { return 444; }
                location = /redirect { return 302 /small; }
                location /expecting/ {
                    alias "\(folder.path)/files/";
                    dav_methods PUT;
                    default_type text/plain;
                    # At once, before the body has come.
                    if ($http_expect) { return 417 "expects nothing"; }
                }
                location /files/ { root "\(folder.path)"; dav_methods PUT DELETE; }
                \(Nginx.upload(in: folder))
            }
            """
    }
}
#endif
