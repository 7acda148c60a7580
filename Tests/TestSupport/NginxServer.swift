#if os(Linux) || os(macOS)
import Foundation
import Programs

@testable import EasyNetwork

/// A real nginx with TLS, HTTP/2 and IPv6, to test transports against an independent server.
///
/// Every ``Listener`` serves:
///
/// - `/small`: ``smallCount`` bytes; `/big`: ``bigCount`` zero bytes; `/ranges`: ``rangesData``; all with ranges.
/// - `/text`: ``text``, compressed for clients that accept gzip.
/// - `/echo-protocol`: The protocol, the number of the connection and the count of its requests: `HTTP/2.0 17 1`.
/// - `/client`: The result for the client's certificate, and its name: `SUCCESS CN=…`, or `NONE `.
/// - `/resumed`: `r` if the connection resumed a TLS session, `.` if not. The connection is closed after it.
/// - `/modified`: Like `/small`, with `Last-Modified` and without `ETag`.
/// - `/redirect`: Status 302 with `Location: /small`.
/// - `/upload`: See ``Nginx/upload(in:)``.
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
    private let nginx: Nginx

    /// Starts nginx, which blocks the calling thread for about two tenths of a second.
    convenience init() throws {
        self.init(try Nginx.start(portCount: Listener.allCases.count, Self.prepare))
    }

    /// - Throws: ``Nginx/PortTaken`` if one of the ports is in use.
    convenience init(ports: [UInt16]) throws {
        self.init(try Nginx.start(ports: ports, Self.prepare))
    }

    private init(_ parts: (Nginx, TestCertificates)) {
        (nginx, certificates) = parts
    }

    /// The folder with all files of the server.
    var folder: URL { nginx.folder }

    /// Asynchronously ends nginx and removes its folder. Further calls have no effect.
    func stop() {
        nginx.stop()
    }

    func port(of listener: Listener) -> UInt16 {
        zip(Listener.allCases, nginx.ports).first { $0.0 == listener }?.1 ?? 0
    }

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
}
#endif
