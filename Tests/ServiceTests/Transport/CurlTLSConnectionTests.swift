#if os(Linux)
import Foundation
import Programs
import Testing

@testable import EasyNetwork
@testable import TestSupport

/// Tests against a Python server that misbehaves over TLS, as nginx cannot.
@Suite(
    "CurlTransport: kept connections with TLS",
    .enabled(if: Command.areInstalled("python3", "openssl")),
    .timeLimit(.minutes(10))
)
struct CurlTLSConnectionTests {
    /// A server for one test, which ends in `deinit`.
    private final class Server: Sendable {
        let url: URL
        private let process: ChildProcess
        /// Retained, because the server cannot write without a reader.
        private let output: FileHandle
        private let folder: URL
        let transport: CurlTransport

        init(_ mode: String) throws {
            let python = try #require(ChildProcess.find("python3"))
            let name = "easynetwork-\(UUID().uuidString)"
            folder = FileManager.default.temporaryDirectory.appendingPathComponent(name)
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
            let certificates = try TestCertificates(in: folder)
            let files = [certificates.serverCertificate.path, certificates.serverKey.path]
            let pipe = Pipe()
            process = try ChildProcess(
                python,
                ["-c", CurlTLSConnectionTests.script, mode] + files,
                output: pipe.fileHandleForWriting
            )
            try pipe.fileHandleForWriting.close()
            // The first line is the port.
            output = pipe.fileHandleForReading
            let line = String(decoding: output.availableData, as: UTF8.self)
            let port = try #require(Int(line.trimmed), "\(line)")
            url = try #require(URL(string: "https://127.0.0.1:\(port)/"))
            var configuration = TransportConfiguration(proxy: .none)
            configuration.tls.trust = .certificateFile(certificates.caFile)
            transport = CurlTransport(configuration)
        }

        deinit {
            process.kill()
            try? FileManager.default.removeItem(at: folder)
        }

        func outcome(_ method: NetworkService.Method = .get) async -> Recording.Contents {
            let recording = Recording {}
            var request = TransportRequest(method: method, url: url, deadlines: TransportDeadlines(idle: nil))
            if method == .post { request.body = .data(Data("body".utf8)) }
            let exchange = transport.start(request) { recording.note($0) }
            return await RecordedExchange(exchange: exchange, recording: recording).end()
        }
    }

    /// Each answer contains the number of requests so far.
    private static let script = #"""
        import socket, ssl, struct, sys, threading
        mode, certificate, key = sys.argv[1:4]
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        if mode.startswith('h2'): context.set_alpn_protocols(['h2'])
        listener = socket.socket()
        listener.bind(('127.0.0.1', 0))
        listener.listen(100)
        print(listener.getsockname()[1], flush=True)
        total = 0

        def read(connection, count):
            data = b''
            while len(data) < count:
                more = connection.recv(count - len(data))
                if not more: raise EOFError
                data += more
            return data

        def http1(connection, number):
            global total
            while True:
                head = b''
                while not head.endswith(b'\r\n\r\n'): head += read(connection, 1)
                total += 1
                text = b'%d' % total
                answer = b'HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s' % (len(text), text)
                evil = b'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil'
                # Two records of TLS in one segment.
                connection.setsockopt(socket.IPPROTO_TCP, 3, 1)
                connection.sendall(answer)
                if number == 1: connection.sendall(evil)
                connection.setsockopt(socket.IPPROTO_TCP, 3, 0)

        # A body that ends with the connection, unless it has a length; without close_notify, unless that is said.
        def without_length(connection):
            head = b''
            while not head.endswith(b'\r\n\r\n'): head += read(connection, 1)
            length = b'Content-Length: 4\r\n' if mode == 'end-with-length' else b''
            connection.sendall(b'HTTP/1.1 200 OK\r\n%sConnection: close\r\n\r\nbody' % length)
            if mode == 'end-with-notice': connection.unwrap()

        def frame(kind, flags, stream, payload):
            return struct.pack('>I', len(payload))[1:] + bytes([kind, flags]) + struct.pack('>I', stream) + payload

        def http2(connection, number):
            global total
            read(connection, 24)
            connection.sendall(frame(4, 0, 0, b''))
            requests = 0
            while True:
                header = read(connection, 9)
                length = int.from_bytes(header[:3], 'big')
                kind, flags = header[3], header[4]
                stream = int.from_bytes(header[5:9], 'big')
                read(connection, length)
                if kind == 4 and not flags & 1: connection.sendall(frame(4, 1, 0, b''))
                if kind == 1: requests += 1; total += 1
                if mode == 'h2-refuses' and kind == 1 and number == 1:
                    connection.sendall(frame(3, 0, stream, struct.pack('>I', 7)))
                    continue
                if kind not in (0, 1) or not flags & 1: continue
                if mode == 'h2-leaves' and number == 1 and requests == 2:
                    connection.sendall(frame(7, 0, 0, struct.pack('>II', 1, 0)))
                    # With unread bytes the system would reset the connection, and the frame could be lost.
                    while connection.recv(4096): pass
                    return
                # It has acted upon the request.
                if mode == 'h2-dies' and number == 1 and requests == 2: return
                answer = frame(1, 4, stream, b'\x88')
                # A lie, in the same segment.
                if mode == 'h2-denies' and total == 1: answer += frame(3, 0, stream, struct.pack('>I', 7))
                else: answer += frame(0, 1, stream, b'%d' % total)
                connection.sendall(answer)

        def serve(connection, number):
            try:
                connection = context.wrap_socket(connection, server_side=True)
                if mode.startswith('end'): without_length(connection)
                else: (http2 if mode.startswith('h2') else http1)(connection, number)
            except (EOFError, OSError): pass
            finally: connection.close()

        number = 0
        while True:
            connection, _ = listener.accept()
            number += 1
            threading.Thread(target=serve, args=(connection, number), daemon=True).start()
        """#

    @Test(
        "RSP-10: a body without length is whole only if the server ends TLS before the connection",
        arguments: ["end": NetworkError.Code?.some(.connectionLost), "end-with-notice": nil, "end-with-length": nil]
    )
    func truncation(mode: String, code: NetworkError.Code?) async throws {
        let outcome = await (try Server(mode)).outcome()
        expect(outcome.code == code && outcome.text == "body", "\(outcome)")
        expect(outcome.end?.error?.phase, equals: code == nil ? nil : .body)
    }

    @Test("BEY-17: an unsolicited answer is not taken for the next one, even if the TLS library has read it")
    func unaskedAnswer() async throws {
        let server = try Server("h1")
        for number in 1...4 {
            let outcome = await server.outcome(number == 2 ? .post : .get)
            expect(outcome.code == nil && outcome.text == "\(number)", "\(outcome)")
        }
    }

    @Test(
        "BEY-17: a message that a server may have acted upon is not sent again, over HTTP/2 too",
        arguments: ["POST", "GET"]
    )
    func sendsOnce(method: String) async throws {
        let server = try Server("h2-dies")
        await expect(server.outcome().text, equals: "1")
        let lost = await server.outcome(NetworkService.Method(rawValue: method))
        expect(lost.code == .connectionLost && lost.end?.error?.mayHaveReachedServer == true, "\(lost)")
        let next = await server.outcome()
        expect(next.code == nil && next.text == "3" && next.metrics?.networkProtocol == "HTTP/2", "\(next)")
    }

    @Test(
        "BEY-17: a message that a server refuses unread on an unshared connection is sent again",
        arguments: ["POST", "GET"]
    )
    func refused(method: String) async throws {
        let server = try Server("h2-refuses")
        let outcome = await server.outcome(NetworkService.Method(rawValue: method))
        expect(outcome.code == nil && outcome.text == "2", "\(outcome)")
    }

    @Test(
        "BEY-23: a message that a kept connection ends before, as the server says, goes out again",
        arguments: ["POST", "GET"]
    )
    func leaves(method: String) async throws {
        let server = try Server("h2-leaves")
        await expect(server.outcome().text, equals: "1")
        let outcome = await server.outcome(NetworkService.Method(rawValue: method))
        expect(outcome.code == nil && outcome.text == "3" && outcome.faults == [], "\(outcome)")
    }

    @Test(
        "BEY-23: a message that a server has begun to answer is not sent again, though the server says it is refused",
        .enabled(if: CurlLoop.multiplexes, "before, libcurl forgets the answer and sends it again itself"),
        arguments: ["POST", "GET"]
    )
    func denied(method: String) async throws {
        let server = try Server("h2-denies")
        let outcome = await server.outcome(NetworkService.Method(rawValue: method))
        expect(outcome.code == .connectionLost && outcome.faults == [], "\(outcome)")
        expect(outcome.end?.error?.mayHaveReachedServer, equals: true)
    }
}
#endif
