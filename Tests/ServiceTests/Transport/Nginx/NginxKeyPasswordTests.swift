#if os(Linux)
import Foundation
import Programs
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Nginx: a private key with a password", .enabled(if: NginxServer.isInstalled), .timeLimit(.minutes(10)))
struct NginxKeyPasswordTests {
    /// Provides the client's key, encrypted with `secret`, while `body` runs.
    private static func withKey(_ server: NginxServer, _ body: (URL) async throws -> Void) async throws {
        let openssl = try #require(ChildProcess.find("openssl"))
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: folder) }
        let script = #""$1" pkey -in "$2" -aes-256-cbc -passout pass:secret -out encrypted.key 2>&1"#
        try Command.runScript(script, [openssl.path, server.clientKey.path], in: folder)
        try await body(folder.appendingPathComponent("encrypted.key"))
    }

    private static func answer(
        _ server: NginxServer,
        _ key: URL,
        _ password: String?
    ) async throws -> Recording.Contents {
        let client = try await NginxClient { configuration, server in
            configuration.tls.clientCertificate = .init(
                certificateFile: server.clientCertificate,
                keyFile: key,
                keyPassword: password
            )
        }
        return await client.outcome(.mutualTLS, "/client")
    }

    @Test("SEC-1: the right password opens the key; a wrong password is an error, and nothing is sent")
    func password() async throws {
        let server = try await NginxServer.shared
        try await Self.withKey(server) { key in
            try await expect(Self.answer(server, key, "secret").text, equals: "SUCCESS \(TestCertificates.clientName)")
            let wrong = try await Self.answer(server, key, "wrong")
            expect(wrong.code == .tls && wrong.end?.error?.message?.contains("encrypted.key") == true)
            expect(wrong.metrics?.bytesSent, equals: 0)
        }
    }

    #if compiler(>=6.2)
    @Test("SEC-1: a missing password never prompts, which would block the transport")
    func noPrompt() async throws {
        // Runs in a separate process, because it has another standard input and no terminal.
        await #expect(processExitsWith: .success) {
            setsid()
            let typed = Pipe()
            try typed.fileHandleForWriting.write(contentsOf: Data("secret\n".utf8))
            try typed.fileHandleForWriting.close()
            dup2(typed.fileHandleForReading.fileDescriptor, STDIN_FILENO)
            let server = try await NginxServer.shared
            try await NginxKeyPasswordTests.withKey(server) { key in
                let contents = try await NginxKeyPasswordTests.answer(server, key, nil)
                expect(contents.code == .tls && contents.metrics?.bytesSent == 0, "\(contents.text)")
            }
        }
    }
    #endif
}
#endif
