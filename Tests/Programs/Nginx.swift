#if os(Linux) || os(macOS)
import EasyNetwork
import Foundation

/// An nginx that listens on free ports of this machine, with a folder for all of its files.
///
/// nginx ends and its folder is removed soon after ``stop()``, after the last release, and after this process has ended
/// for any reason.
package final class Nginx: Sendable {
    /// Another process took a port before nginx started.
    package struct PortTaken: Error {}

    package let folder: URL
    package let ports: [UInt16]
    /// The write end of a pipe; the shell stops nginx when it closes. Nil once closed.
    private let lifeline: Locked<FileHandle?>

    /// Starts nginx on free ports, which blocks the calling thread for about two tenths of a second.
    ///
    /// - Parameters:
    ///   - parent: Where the folder is made.
    ///   - prepare: Writes the served files into the folder, and returns the servers of the configuration, and what the
    ///     caller wants back.
    /// - Throws: ``ChildProcess/Failure`` with nginx's error log if it does not listen within two minutes.
    package static func start<Contents>(
        portCount: Int,
        in parent: URL = FileManager.default.temporaryDirectory,
        _ prepare: (_ folder: URL, _ ports: [UInt16]) throws -> (servers: String, contents: Contents)
    ) throws -> (nginx: Nginx, contents: Contents) {
        var attempt = 1
        while true {
            do {
                return try start(ports: FreePorts.find(portCount), in: parent, prepare)
            } catch is PortTaken where attempt < 5 {
                attempt += 1
            }
        }
    }

    /// - Throws: ``PortTaken`` if one of the ports is in use.
    package static func start<Contents>(
        ports: [UInt16],
        in parent: URL = FileManager.default.temporaryDirectory,
        _ prepare: (_ folder: URL, _ ports: [UInt16]) throws -> (servers: String, contents: Contents)
    ) throws -> (nginx: Nginx, contents: Contents) {
        guard let program = ChildProcess.find("nginx") else {
            throw ChildProcess.Failure(description: "there is no nginx in PATH or /usr/sbin")
        }
        let manager = FileManager.default
        // The name is short because the path of a socket is limited to 104 bytes.
        let folder = parent.appendingPathComponent("nginx-\(UUID().uuidString.prefix(8))")
        try manager.createDirectory(at: folder, withIntermediateDirectories: false)
        do {
            // If root starts nginx, its workers run as another user.
            try manager.setAttributes([.posixPermissions: 0o755], ofItemAtPath: folder.path)
            let (servers, contents) = try prepare(folder, ports)
            let configuration = Data(configuration(folder.path, servers).utf8)
            try configuration.write(to: folder.appendingPathComponent("nginx.conf"))
            let nginx = Nginx(folder, ports, lifeline: try start(program, in: folder))
            return (nginx, contents)
        } catch {
            try? manager.removeItem(at: folder)
            throw error
        }
    }

    private init(_ folder: URL, _ ports: [UInt16], lifeline: FileHandle) {
        self.folder = folder
        self.ports = ports
        self.lifeline = Locked(lifeline)
    }

    deinit {
        stop()
    }

    /// Asynchronously ends nginx and removes its folder. Further calls have no effect.
    package func stop() {
        try? lifeline.exchange(nil)?.close()
    }

    // MARK: - The configuration

    private static func configuration(_ folder: String, _ servers: String) -> String {
        """
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
            server {
                listen "unix:\(folder)/length";
                location / { return 200 $http_request_length; }
            }
        \(servers)
        }

        """
    }

    /// The location `/upload`: reads and discards a body of any size with any method, and answers 200 with the number of
    /// bytes in head and body. The body is buffered in an unnamed file.
    package static func upload(in folder: URL) -> String {
        """
        # Buffered: whoever passes a body on while it comes gets an early answer from one who does not read it.
        location = /upload {
            client_body_buffer_size 1m;
            proxy_method GET;
            proxy_pass_request_body off;
            proxy_set_header Content-Length "";
            proxy_set_header Request-Length $request_length;
            proxy_pass "http://unix:\(folder.path)/length:/";
        }
        """
    }

    // MARK: - The process

    /// - Returns: The handle whose closing, also by the system when this process dies, ends nginx and removes the
    ///   folder.
    private static func start(_ program: URL, in folder: URL) throws -> FileHandle {
        let lifeline = Pipe()
        let end = lifeline.fileHandleForWriting
        // A process started concurrently would otherwise keep it open.
        _ = fcntl(end.fileDescriptor, F_SETFD, FD_CLOEXEC)
        // Has no output, because a reader of the tests' output would otherwise wait for nginx to end.
        let shell = try ChildProcess(
            URL(fileURLWithPath: "/bin/sh"),
            ["-c", watch, "sh", program.path, folder.path],
            input: lifeline.fileHandleForReading
        )
        do {
            try lifeline.fileHandleForReading.close()
            try waitUntilListening(shell, folder)
        } catch {
            try? end.close()
            throw error
        }
        return end
    }

    /// Runs nginx, and a shell that ignores the signals of a terminal or a time limit, so that it can clean up. It
    /// cannot use `wait`, which never returns while SIGCHLD is blocked, as it is on Dispatch threads and their
    /// children. It cannot poll the process either, which exists until it is reaped. nginx removes its pid file when
    /// its worker has ended.
    private static let watch = """
        trap '' HUP INT QUIT TERM
        exec 3<&0 </dev/null
        {
            read -r _ <&3
            kill -TERM $$
            looks=0
            while [ -e "$2/nginx.pid" ] && [ $looks -lt 100 ]; do
                looks=$((looks + 1))
                sleep 0.02
            done
            kill -KILL $$
            rm -rf "$2"
        } &
        exec "$1" -c "$2/nginx.conf" -e "$2/error.log" 3<&-
        """

    /// nginx writes its pid file once all of its sockets listen; later connections wait in the backlog.
    private static func waitUntilListening(_ shell: ChildProcess, _ folder: URL) throws {
        let limit = DispatchTime.now() + 120
        let number = folder.appendingPathComponent("nginx.pid").path
        let log = folder.appendingPathComponent("error.log")
        while !FileManager.default.fileExists(atPath: number) {
            let isRunning = shell.isRunning
            let text = (try? String(contentsOf: log, encoding: .utf8)) ?? ""
            // nginx would keep trying for two and a half seconds.
            if text.contains("Address already in use") { throw PortTaken() }
            guard isRunning, DispatchTime.now() < limit else {
                throw ChildProcess.Failure(description: "nginx does not start: \(text)")
            }
            // Paces the polling on a Dispatch thread; nginx sends no notification.
            usleep(5_000)
        }
    }
}
#endif
