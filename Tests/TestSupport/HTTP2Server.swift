#if os(Linux)
import Foundation
import Programs

@testable import EasyNetwork

/// A real HTTP/2 server that rejects requests as it is told, and counts: `.ci/http2-server.py`, which ends with the last
/// release of this object or with the process.
final class HTTP2Server: Sendable {
    /// What the server has counted.
    struct Counts: Decodable {
        /// How many times it processed each request, by method and path.
        let processed: [String: Int]
        let rejected: Int
        let connections: Int
        /// The most connections at the same time.
        let mostConnections: Int
    }

    /// Whether Python with its package h2, and openssl, are installed. Its absence is reported once.
    static let isInstalled: Bool = {
        guard Command.areInstalled("python3", "openssl"), let python = ChildProcess.find("python3") else {
            return false
        }
        if (try? ChildProcess.run(python, ["-c", "import h2"])) != nil { return true }
        let line = "Skipped: the tests that need Python's h2. To run them: apt-get install python3-h2\n"
        FileHandle.standardError.write(Data(line.utf8))
        return false
    }()

    let url: URL
    let certificates: TestCertificates
    private let process: ChildProcess
    /// The server ends when this end of its standard input closes.
    private let lifeline: FileHandle
    /// Retained, because the server cannot write without a reader.
    private let output: FileHandle
    private let folder: URL

    /// - Parameter options: Those of the script, such as `goaway=10`.
    init(_ options: [String] = []) throws {
        guard let python = ChildProcess.find("python3") else {
            throw ChildProcess.Failure(description: "there is no python3")
        }
        let name = "http2-\(UUID().uuidString.prefix(8))"
        folder = FileManager.default.temporaryDirectory.appendingPathComponent(name)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        certificates = try TestCertificates(in: folder)
        let files = [certificates.serverCertificate.path, certificates.serverKey.path]
        let (input, pipe) = (Pipe(), Pipe())
        output = pipe.fileHandleForReading
        lifeline = input.fileHandleForWriting
        process = try ChildProcess(
            python,
            [try Self.script().path] + files + options,
            input: input.fileHandleForReading,
            output: pipe.fileHandleForWriting
        )
        try input.fileHandleForReading.close()
        try pipe.fileHandleForWriting.close()
        // The first line is the port.
        let line = String(decoding: output.availableData, as: UTF8.self)
        guard let port = Int(line.trimmed), let url = URL(string: "https://127.0.0.1:\(port)") else {
            throw ChildProcess.Failure(description: "the server does not start: \(line)")
        }
        self.url = url
    }

    deinit {
        process.kill()
        try? FileManager.default.removeItem(at: folder)
    }

    /// A transport that trusts the server.
    func transport(connectionsPerHost: Int = 64) -> CurlTransport {
        var configuration = TransportConfiguration(maximumConnectionsPerHost: connectionsPerHost, proxy: .none)
        configuration.tls.trust = .certificateFile(certificates.caFile)
        return CurlTransport(configuration)
    }

    /// Asks the server, over a new connection unless a transport is given.
    func counts(over transport: CurlTransport? = nil) async throws -> Counts {
        let url = url.appendingPathComponent("counts")
        let recording = Recording {}
        let transport = transport ?? self.transport()
        let exchange = transport.start(TransportRequest(method: .get, url: url)) { recording.note($0) }
        let outcome = await RecordedExchange(exchange: exchange, recording: recording).end()
        withExtendedLifetime(transport) {}
        return try JSONDecoder().decode(Counts.self, from: outcome.body)
    }

    /// The script, in the folder `.ci` beside the package's manifest.
    private static func script() throws -> URL {
        var folder = URL(fileURLWithPath: #filePath)
        while folder.path != "/" {
            folder.deleteLastPathComponent()
            let script = folder.appendingPathComponent(".ci/http2-server.py")
            if FileManager.default.fileExists(atPath: script.path) { return script }
        }
        throw ChildProcess.Failure(description: "there is no .ci/http2-server.py above \(#filePath)")
    }
}
#endif
