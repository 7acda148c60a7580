#if os(Linux) || os(macOS)
import Foundation

@testable import EasyNetwork

/// A real nginx with TLS, HTTP/2 and IPv6, to test transports against an independent server.
///
/// Every ``Listener`` serves:
///
/// - `/small`: ``smallCount`` bytes; `/big`: ``bigCount`` zero bytes; `/ranges`: ``rangesData``; all with ranges.
/// - `/text`: ``text``, compressed for clients that accept gzip.
/// - `/echo-protocol`: The protocol, the number of the connection and the count of its requests: `HTTP/2.0 17 1`.
/// - `/client`: The result for the client's certificate, and its name: `SUCCESS CN=…`, or `NONE `.
/// - `/modified`: Like `/small`, with `Last-Modified` and without `ETag`.
/// - `/redirect`: Status 302 with `Location: /small`.
/// - `/upload`: Reads and discards a body of any size with any method, and answers 200 with the number of bytes in head
///   and body. The body is buffered in an unnamed file.
/// - `/files/…`: PUT stores a file, GET returns it, DELETE removes it.
///
/// nginx ends and its folder is removed soon after ``stop()``, after the last release, and after this process has ended
/// for any reason.
final class NginxServer: Sendable {
    enum Listener: CaseIterable, Sendable {
        /// Without TLS, HTTP/1.1.
        case http
        /// TLS 1.2 and 1.3, HTTP/1.1.
        case https1
        /// TLS 1.2 and 1.3, HTTP/2 for clients that ask for it, HTTP/1.1 for others.
        case https2
        /// Like `https1`; without one of the test's client certificates it answers 400 after a successful handshake.
        case mutualTLS
        /// TLS 1.2 only, HTTP/1.1.
        case oldTLS
    }

    /// Whether the required programs are installed.
    static let isInstalled = Command.areInstalled("nginx", "openssl")
    /// Whether the listeners are on ::1, too.
    static var hasIPv6: Bool { FreePorts.hasIPv6 }

    /// The server that all suites share; it ends with the process. It starts on a Dispatch thread, to not block a task.
    static var shared: NginxServer {
        get async throws {
            try await withCheckedThrowingContinuation { continuation in
                DispatchQueue.global().async { continuation.resume(with: sharedResult) }
            }
        }
    }

    private static let sharedResult = Result { try NginxServer() }

    let certificates: TestCertificates
    /// The folder with all files of the server.
    let folder: URL
    private let ports: [Listener: UInt16]
    /// The write end of a pipe; the shell stops nginx when it closes. Nil once closed.
    private let lifeline: Locked<FileHandle?>

    /// Starts nginx, which blocks the calling thread for about two tenths of a second.
    ///
    /// - Throws: ``Command/Failure`` with nginx's error log if it does not listen within two minutes.
    convenience init() throws {
        var attempt = 1
        while true {
            do {
                try self.init(ports: try FreePorts.find(Listener.allCases.count))
                return
            } catch is PortTaken where attempt < 5 {
                attempt += 1
            }
        }
    }

    /// - Throws: ``PortTaken`` if one of the ports is in use.
    init(ports: [UInt16]) throws {
        self.ports = Dictionary(uniqueKeysWithValues: zip(Listener.allCases, ports))
        // The name is short because the path of a socket is limited to 104 bytes.
        let name = "nginx-\(UUID().uuidString.prefix(8))"
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(name)
        self.folder = folder
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        do {
            try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: folder.path)
            certificates = try TestCertificates(in: folder)
            try Self.writeFiles(in: folder, certificates, self.ports)
            lifeline = Locked(try Self.start(in: folder))
        } catch {
            try? FileManager.default.removeItem(at: folder)
            throw error
        }
    }

    deinit {
        stop()
    }

    /// Asynchronously ends nginx and removes its folder. Further calls have no effect.
    func stop() {
        try? lifeline.exchange(nil)?.close()
    }

    func port(of listener: Listener) -> UInt16 { ports[listener] ?? 0 }

    /// - Parameters:
    ///   - path: The path, with a leading slash.
    ///   - ipv6: Uses [::1] instead of 127.0.0.1.
    func url(_ listener: Listener, _ path: String, ipv6: Bool = false) -> URL {
        let scheme = listener == .http ? "http" : "https"
        let text = "\(scheme)://\(ipv6 ? "[::1]" : "127.0.0.1"):\(port(of: listener))\(path)"
        // An invalid URL fails its request with an error that names it.
        return URL(string: text) ?? URL(fileURLWithPath: text)
    }

    var caFile: URL { certificates.caFile }
    var caDirectory: URL { certificates.caDirectory }
    var otherCAFile: URL { certificates.otherCAFile }
    var clientCertificate: URL { certificates.clientCertificate }
    var clientKey: URL { certificates.clientKey }
    var pin: String { certificates.pin }
    var otherPin: String { certificates.otherPin }

    // MARK: - The process

    struct PortTaken: Error {}

    /// - Returns: The handle whose closing, also by the system when this process dies, ends nginx and removes the
    ///   folder.
    private static func start(in folder: URL) throws -> FileHandle {
        guard let nginx = Command.find("nginx") else { throw Command.Failure(description: "there is no nginx") }
        let lifeline = Pipe()
        let end = lifeline.fileHandleForWriting
        // A process started concurrently would otherwise keep it open.
        _ = fcntl(end.fileDescriptor, F_SETFD, FD_CLOEXEC)
        // Has no output, because a reader of the tests' output would otherwise wait for nginx to end.
        let shell = try ChildProcess(
            URL(fileURLWithPath: "/bin/sh"),
            ["-c", watch, "sh", nginx.path, folder.path],
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
                throw Command.Failure(description: "nginx does not start: \(text)")
            }
            // Paces the polling on a Dispatch thread; nginx sends no notification.
            usleep(5_000)
        }
    }
}
#endif
