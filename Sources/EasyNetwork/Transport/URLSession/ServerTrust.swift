#if canImport(Darwin)
import Foundation

/// Whether a server is trusted, for a session that asks: what libcurl does by itself.
struct ServerTrust: Sendable {
    private let configuration: TLSConfiguration

    init(_ configuration: TLSConfiguration) {
        self.configuration = configuration
    }

    /// Whether the system's own judgement is all that is wanted.
    var isSystems: Bool {
        configuration.trust == .system && configuration.pinnedPublicKeys.isEmpty
    }

    /// Looks at the server's certificates. It may take a while: the system may ask others about them.
    func trusts(_ trust: SecTrust) -> Bool {
        isAuthorized(trust) && isPinned(trust)
    }

    private func isAuthorized(_ trust: SecTrust) -> Bool {
        switch configuration.trust {
        case .system: break
        case .dangerouslyTrustingEveryServer: return true
        case .certificateFile(let file): guard useAuthorities(in: [file], for: trust) else { return false }
        case .certificateDirectory(let directory):
            let files = try? FileManager.default.contentsOfDirectory(at: directory, includingPropertiesForKeys: nil)
            guard useAuthorities(in: files ?? [], for: trust) else { return false }
        }
        return SecTrustEvaluateWithError(trust, nil)
    }

    /// - Returns: false when the files have no certificate: then nobody is trusted.
    private func useAuthorities(in files: [URL], for trust: SecTrust) -> Bool {
        let authorities = files.compactMap { try? Data(contentsOf: $0) }
            .flatMap(PEM.certificates)
            .compactMap { SecCertificateCreateWithData(nil, $0 as CFData) }
        guard !authorities.isEmpty else { return false }
        return SecTrustSetAnchorCertificates(trust, authorities as CFArray) == errSecSuccess
            && SecTrustSetAnchorCertificatesOnly(trust, true) == errSecSuccess
    }

    private func isPinned(_ trust: SecTrust) -> Bool {
        guard !configuration.pinnedPublicKeys.isEmpty else { return true }
        guard let chain = SecTrustCopyCertificateChain(trust) as? [SecCertificate], let leaf = chain.first else {
            return false
        }
        let certificate = SecCertificateCopyData(leaf) as Data
        return configuration.pinnedPublicKeys.contains { $0.matches(certificate: certificate) }
    }
}
#endif
