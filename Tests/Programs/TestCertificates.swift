#if os(Linux) || os(macOS)
import Foundation

/// Certificates of an untrusted authority, created with the `openssl` command.
package struct TestCertificates: Sendable {
    /// The certificate of the authority that signed the others.
    package let caFile: URL
    /// The same authority as a folder in the form of `openssl rehash`.
    package let caDirectory: URL
    /// The certificate of an authority that signed none of them.
    package let otherCAFile: URL
    /// For 127.0.0.1, ::1 and localhost.
    package let serverCertificate: URL
    package let serverKey: URL
    package let clientCertificate: URL
    package let clientKey: URL
    /// The server's public key as libcurl wants it: `sha256//`, and the hash in base64.
    package let pin: String
    /// The public key of ``otherCAFile``.
    package let otherPin: String

    /// The name in ``clientCertificate``, as OpenSSL writes it.
    package static let clientName = "CN=EasyNetwork client"

    /// Writes the certificates into the folder, which blocks the calling thread for about a tenth of a second.
    package init(in folder: URL) throws {
        guard let openssl = ChildProcess.find("openssl") else {
            throw ChildProcess.Failure(description: "there is no openssl")
        }
        try Data(Self.configuration.utf8).write(to: folder.appendingPathComponent("openssl.cnf"))
        let words = ["-eu", "-c", Self.script, "sh", openssl.path, "/" + Self.clientName]
        try ChildProcess.run(URL(fileURLWithPath: "/bin/sh"), words, in: folder)
        caFile = folder.appendingPathComponent("ca.pem")
        caDirectory = folder.appendingPathComponent("ca-directory")
        otherCAFile = folder.appendingPathComponent("other-ca.pem")
        serverCertificate = folder.appendingPathComponent("server.pem")
        serverKey = folder.appendingPathComponent("server.key")
        clientCertificate = folder.appendingPathComponent("client.pem")
        clientKey = folder.appendingPathComponent("client.key")
        pin = try Self.pin(folder.appendingPathComponent("server.pin"))
        otherPin = try Self.pin(folder.appendingPathComponent("other-ca.pin"))
    }

    /// Reads the pin and checks it, because a shell pipeline only reports the status of its last command.
    private static func pin(_ file: URL) throws -> String {
        let hash = try String(contentsOf: file, encoding: .utf8).trimmingCharacters(in: .whitespacesAndNewlines)
        guard Data(base64Encoded: hash)?.count == 32 else {
            throw ChildProcess.Failure(description: "'\(hash)' in \(file.lastPathComponent) is no SHA-256")
        }
        return "sha256//\(hash)"
    }

    /// Uses only options of OpenSSL 1.1.1 and macOS's LibreSSL: no `-addext`, no `req -CA`.
    private static let script = """
        openssl=$1
        request() { # name, subject, more
            name=$1 subject=$2
            shift 2
            "$openssl" req -config openssl.cnf -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -sha256 \\
                -keyout "$name.key" -subj "$subject" "$@" 2>&1
        }
        sign() { # name, serial
            "$openssl" x509 -req -in "$1.csr" -CA ca.pem -CAkey ca.key -set_serial "$2" -days 30 -sha256 \\
                -extfile openssl.cnf -extensions "$1" -out "$1.pem" 2>&1
        }
        pin() {
            "$openssl" x509 -in "$1.pem" -noout -pubkey | "$openssl" pkey -pubin -outform der |
                "$openssl" dgst -sha256 -binary | "$openssl" base64 >"$1.pin"
        }
        request ca '/CN=EasyNetwork test authority' -x509 -days 30 -extensions authority -out ca.pem
        request other-ca '/CN=EasyNetwork other authority' -x509 -days 30 -extensions authority -out other-ca.pem
        request server '/CN=localhost' -new -out server.csr
        request client "$2" -new -out client.csr
        sign server 2
        sign client 3
        pin server
        pin other-ca
        mkdir ca-directory
        cp ca.pem ca-directory
        ln -s ca.pem "ca-directory/$("$openssl" x509 -in ca.pem -noout -subject_hash).0"
        """

    private static let configuration = """
        [req]
        distinguished_name = name
        [name]
        [authority]
        basicConstraints = critical, CA:true
        keyUsage = critical, keyCertSign, cRLSign
        subjectKeyIdentifier = hash
        [server]
        basicConstraints = CA:false
        keyUsage = critical, digitalSignature
        extendedKeyUsage = serverAuth
        subjectAltName = DNS:localhost, IP:127.0.0.1, IP:::1
        [client]
        basicConstraints = CA:false
        keyUsage = critical, digitalSignature
        extendedKeyUsage = clientAuth

        """
}
#endif
