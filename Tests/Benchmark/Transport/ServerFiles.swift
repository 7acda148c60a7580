#if os(Linux) || os(macOS)
import Foundation

/// The files and the configuration of a ``LocalServer``.
struct ServerFiles {
    let folder: URL
    let port: UInt16

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
        for folder in [folder, served] {
            try manager.setAttributes([.posixPermissions: 0o755], ofItemAtPath: folder.path)
        }
        try Data(configuration.utf8).write(to: folder.appendingPathComponent("nginx.conf"))
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

    private var configuration: String {
        let folder = folder.path
        return """
            daemon off;
            worker_processes 1;
            pid "\(folder)/nginx.pid";
            error_log "\(folder)/error.log";
            events { worker_connections 1024; }
            http {
                access_log off;
                log_format bytes '$body_bytes_sent';
                client_body_temp_path "\(folder)/body"; proxy_temp_path "\(folder)/proxy";
                fastcgi_temp_path "\(folder)/fastcgi"; uwsgi_temp_path "\(folder)/uwsgi"; scgi_temp_path "\(folder)/scgi";
                types {}
                default_type application/octet-stream;
                sendfile on;
                client_max_body_size 0;
                keepalive_timeout 60;
                keepalive_requests 1000000;
                server {
                    listen "unix:\(folder)/length";
                    location / { return 200 $http_request_length; }
                }
                server {
                    listen 127.0.0.1:\(port);
                    root "\(folder)/www";
                    location = /bulk {
                        access_log "\(folder)/bulk.log" bytes;
                        limit_rate \(LocalServer.bulkRate / LocalServer.bulkConnections);
                    }
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
            }

            """
    }
}
#endif
