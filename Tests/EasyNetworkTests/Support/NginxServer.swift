#if os(Linux) || os(macOS)
import Foundation

@testable import EasyNetwork

/// A real nginx with TLS, HTTP/2 and IPv6, for what a transport must get right with a server that is not ours.
///
/// On every ``Listener`` it has
///
/// - `/small`: ``smallCount`` bytes; `/big`: ``bigCount`` bytes, all zero; `/ranges`: ``rangesData``; all with ranges;
/// - `/text`: ``text``, compressed for clients that accept gzip;
/// - `/echo-protocol`: protocol, number of the connection, and how many requests it has had: `HTTP/2.0 17 1`;
/// - `/client`: what became of the client's certificate, and the name in it: `SUCCESS CN=…`, or `NONE `;
/// - `/modified`: as `/small`, with `Last-Modified` and without `ETag`;
/// - `/redirect`: status 302 with `Location: /small`;
/// - `/upload`: takes a body of any size with any method, reads all of it, keeps none of it, and answers 200 with the
///   number of bytes that head and body had. While it comes in, it is a file without name;
/// - `/files/…`: PUT keeps a file, GET gives it back, DELETE removes it.
///
/// nginx and its folder are gone soon after ``stop()``, after the last reference is, and after this process ended, in
/// whatever way it did.
final class NginxServer: Sendable {
    enum Listener: CaseIterable, Sendable {
        /// Without TLS, HTTP/1.1.
        case http
        /// TLS 1.2 and 1.3, HTTP/1.1.
        case https1
        /// TLS 1.2 and 1.3, HTTP/2 for those who ask for it, HTTP/1.1 for others.
        case https2
        /// As `https1`; without a client certificate of ours it answers 400, after a handshake that succeeds.
        case mutualTLS
        /// TLS 1.2 only, HTTP/1.1.
        case oldTLS
    }

    /// Whether the machine has what this needs.
    static let isInstalled = Command.areInstalled("nginx", "openssl")
    /// Whether the listeners are on ::1, too.
    static var hasIPv6: Bool { FreePorts.hasIPv6 }

    /// One for all suites; it ends with the process. It is started on a thread of Dispatch's, where nobody's turn is lost.
    static var shared: NginxServer {
        get async throws {
            try await withCheckedThrowingContinuation { continuation in
                DispatchQueue.global().async { continuation.resume(with: sharedResult) }
            }
        }
    }

    private static let sharedResult = Result { try NginxServer() }

    let certificates: TestCertificates
    /// Everything of the server's is in it.
    let folder: URL
    private let ports: [Listener: UInt16]
    /// The end of a pipe that is the shell's sign that we are alive; nil once closed.
    private let lifeline: Locked<FileHandle?>

    /// Starts it, which blocks the calling thread for about two tenths of a second.
    ///
    /// - Throws: ``Command/Failure`` with nginx's error log, when it does not listen within two minutes.
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

    /// - Throws: ``PortTaken`` when somebody listens on one of them.
    init(ports: [UInt16]) throws {
        self.ports = Dictionary(uniqueKeysWithValues: zip(Listener.allCases, ports))
        // Short, since the path of a socket may have 104 bytes.
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

    /// Ends nginx and removes its folder, soon, not before it returns. Once is enough.
    func stop() {
        try? lifeline.exchange(nil)?.close()
    }

    func port(of listener: Listener) -> UInt16 { ports[listener] ?? 0 }

    /// - Parameters:
    ///   - path: with its slash.
    ///   - ipv6: [::1] instead of 127.0.0.1.
    func url(_ listener: Listener, _ path: String, ipv6: Bool = false) -> URL {
        let scheme = listener == .http ? "http" : "https"
        let text = "\(scheme)://\(ipv6 ? "[::1]" : "127.0.0.1"):\(port(of: listener))\(path)"
        // What is no URL ends the request that it is for, and is named in its error.
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

    /// - Returns: what ends nginx and removes the folder when it is closed, by us or, at our death, by the system.
    private static func start(in folder: URL) throws -> FileHandle {
        guard let nginx = Command.find("nginx") else { throw Command.Failure(description: "there is no nginx") }
        let lifeline = Pipe()
        let end = lifeline.fileHandleForWriting
        // Another process that is started meanwhile would keep it open.
        _ = fcntl(end.fileDescriptor, F_SETFD, FD_CLOEXEC)
        // Without output: whoever reads what the tests write would otherwise wait for nginx to end.
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

    /// Becomes nginx, and leaves behind a shell that outlives the signals a terminal or a time limit sends to all: it has
    /// to clean up after them. Without `wait`, which never returns where the signals of children are blocked, as they
    /// are on Dispatch's threads and in what those start; and without asking for the process, which there would seem to
    /// live until somebody collects its status. nginx removes its number when it has ended its worker.
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

    /// nginx writes its number down when all its sockets listen; from then on connections wait for it, not it for them.
    private static func waitUntilListening(_ shell: ChildProcess, _ folder: URL) throws {
        let limit = DispatchTime.now() + 120
        let number = folder.appendingPathComponent("nginx.pid").path
        let log = folder.appendingPathComponent("error.log")
        while !FileManager.default.fileExists(atPath: number) {
            let isRunning = shell.isRunning
            let text = (try? String(contentsOf: log, encoding: .utf8)) ?? ""
            // By itself it would try for two and a half seconds more.
            if text.contains("Address already in use") { throw PortTaken() }
            guard isRunning, DispatchTime.now() < limit else {
                throw Command.Failure(description: "nginx does not start: \(text)")
            }
            // It tells nobody when it listens: a pause between two looks, on a thread of Dispatch's.
            usleep(5_000)
        }
    }
}
#endif
