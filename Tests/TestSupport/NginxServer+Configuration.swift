#if os(Linux) || os(macOS)
import Foundation

extension NginxServer {
    /// The content of `/text`, uncompressed.
    static let text = String(repeating: "The same line again and again is easy to compress.\n", count: 200)
    /// The content of `/ranges`.
    static let rangesData = Data((0..<100_000).map { UInt8($0 % 251) })
    static let smallCount = 1_024
    static let bigCount = 1 << 30

    /// Writes the served files and the configuration.
    static func writeFiles(in folder: URL, _ certificates: TestCertificates, _ ports: [Listener: UInt16]) throws {
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
        let configuration = configuration(folder.path, certificates, ports)
        try Data(configuration.utf8).write(to: folder.appendingPathComponent("nginx.conf"))
    }

    private static func configuration(
        _ folder: String,
        _ certificates: TestCertificates,
        _ ports: [Listener: UInt16]
    ) -> String {
        let servers = ports.map { server($0.key, port: $0.value, folder, certificates) }
        return """
            daemon off;
            worker_processes 1;
            pid "\(folder)/nginx.pid";
            error_log "\(folder)/error.log";
            events { worker_connections 1024; }
            http {
                access_log off;
                client_body_temp_path "\(folder)/body"; proxy_temp_path "\(folder)/proxy";
                fastcgi_temp_path "\(folder)/fastcgi"; uwsgi_temp_path "\(folder)/uwsgi"; scgi_temp_path "\(folder)/scgi";
                types {}
                default_type application/octet-stream;
                sendfile on;
                client_max_body_size 0;
                # Nobody is to be put out because the machine is slow.
                keepalive_timeout 1h;
                send_timeout 1h;
                client_header_timeout 1h;
                client_body_timeout 1h;
                keepalive_requests 100000;
                absolute_redirect off;
                ssl_certificate "\(certificates.serverCertificate.path)";
                ssl_certificate_key "\(certificates.serverKey.path)";
                ssl_client_certificate "\(certificates.caFile.path)";
                server {
                    listen "unix:\(folder)/length";
                    location / { return 200 $http_request_length; }
                }
            \(servers.joined(separator: "\n"))
            }

            """
    }

    private static func server(
        _ listener: Listener,
        port: UInt16,
        _ folder: String,
        _ certificates: TestCertificates
    ) -> String {
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
                root "\(folder)/www";
                location = /text { default_type text/plain; gzip on; gzip_min_length 20; gzip_types text/plain; }
                location = /echo-protocol {
                    default_type text/plain;
                    return 200 "$server_protocol $connection $connection_requests";
                }
                location = /client { default_type text/plain; return 200 "$ssl_client_verify $ssl_client_s_dn"; }
                location = /modified { etag off; alias "\(folder)/www/small"; }
                location = /redirect { return 302 /small; }
                location /expecting/ {
                    alias "\(folder)/files/";
                    dav_methods PUT;
                    default_type text/plain;
                    # At once, before the body has come.
                    if ($http_expect) { return 417 "expects nothing"; }
                }
                location /files/ { root "\(folder)"; dav_methods PUT DELETE; }
                # Buffered: whoever passes a body on while it comes gets an early answer from one who does not read it.
                location = /upload {
                    client_body_buffer_size 1m;
                    proxy_method GET;
                    proxy_pass_request_body off;
                    proxy_set_header Content-Length "";
                    proxy_set_header Request-Length $request_length;
                    proxy_pass "http://unix:\(folder)/length:/";
                }
            }
            """
    }
}
#endif
