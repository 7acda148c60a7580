import Testing

@testable import EasyNetwork
@testable import TestSupport

/// The requirements on every transport, and the known exceptions: the table in the documentation.
enum TransportCapability: String, CaseIterable, Sendable {
    case fieldOrder = "header fields in their order, repeated ones apart"
    case trailers = "answers with trailers"
    case cutHead = "a connection that closes within a head"
    case brokenRedirects = "redirects whose body breaks off or never ends"
    case manyFields = "refuse 10,000 header fields at once"
    case lenientHead = "heads with bare line feeds, or without reason phrase"
    case latin1 = "header fields in ISO 8859-1"
    case ipv6Literals = "hosts that are IPv6 addresses"
    case preciseCodes = "tell a malformed head or coding from a lost connection"
    case cutCoding = "notice that gzip data is cut short in a complete answer"
    case cutTLS = "notice that TLS is cut short in a body without length"
    case unknownCoding = "pass on a body with an unknown content coding"
    case framing = "refuse lengths that differ or are not numbers"
    case bareReturns = "refuse a carriage return within a header line"
    case unaskedAnswers = "discard an unsolicited answer"
    case sendOnce = "never resend a message that the server may have acted upon"
    case phases = "report the phase of a failed request"
    case connectDeadline = "a deadline for the connection"
    case connectionMetrics = "metrics of name, connection, TLS, bytes, protocol and address"
    case backPressure = "hold back a sender"
    case streamedUploads = "send a stream without a temporary file"
    case trust = "custom authorities, pins, TLS 1.3 as minimum"
    case clientCertificates = "client certificates from PEM files"
    case proxies = "a chosen proxy, or none"
    case networks = "avoid cellular networks, and name the kind of traffic"

    /// The reason why a transport cannot do this on this platform; nil if it can or if it does not apply.
    func known(_ kind: TransportFixture.Kind) -> String? {
        switch kind {
        case .inMemory: nil
        #if os(Linux)
        case .curl: curlReason
        #endif
        case .urlSession: urlSessionReason
        }
    }

    /// Whether it is tried where it is known to fail.
    private var isTried: Bool {
        switch self {
        // Would crash the process, or block it for seconds.
        case .trailers, .cutHead, .manyFields: false
        // Never ends.
        case .brokenRedirects: false
        // Depends on the libcurl that Foundation loads.
        case .framing, .bareReturns: false
        default: true
        }
    }

    /// Whether an exchange that is known to fail ends so. Another end is another fault.
    private func isKnownEnd(_ outcome: Recording.Contents) -> Bool {
        switch self {
        case .lenientHead, .latin1, .preciseCodes, .unknownCoding, .sendOnce: outcome.code == .connectionLost
        case .cutCoding: outcome.code == nil
        default: true
        }
    }

    /// Checks that a transport can do this, or that it still cannot where that is known. A gain is to be entered in the
    /// table, and is a failure until then.
    ///
    /// - Parameter body: appends what does not hold.
    func check(
        _ kind: TransportFixture.Kind,
        _ body: (_ failures: inout [(what: String, outcome: Recording.Contents)]) async throws -> Void
    ) async rethrows {
        let reason = known(kind)
        guard reason == nil || isTried else { return }
        var failures: [(what: String, outcome: Recording.Contents)] = []
        try await body(&failures)
        if let reason {
            expect(!failures.isEmpty, "\(kind) can \(rawValue) now; \(reason) is no longer true")
            for (what, outcome) in failures { expect(isKnownEnd(outcome), "\(kind): \(rawValue): \(what)") }
        } else {
            expect(failures.isEmpty, "\(kind): \(rawValue)")
        }
    }

    #if os(Linux)
    private var curlReason: String? {
        switch self {
        case .networks: "the system does not tell networks apart; it is ignored"
        default: nil
        }
    }

    private var urlSessionReason: String? {
        switch self {
        case .fieldOrder: "Foundation keeps a dictionary"
        case .trailers, .cutHead: "Foundation stops the process"
        case .brokenRedirects: "Foundation reports a redirect when its body has ended"
        case .manyFields: "Foundation reads them in quadratic time, and nothing else meanwhile"
        case .lenientHead: "Foundation refuses them"
        case .latin1: "Foundation refuses them"
        case .ipv6Literals: "Foundation refuses them"
        case .preciseCodes: "Foundation has one error for both"
        case .cutCoding: "libcurl removes the coding and does not tell"
        case .cutTLS: "libcurl takes it for the end of the body"
        case .unknownCoding: "libcurl refuses it"
        case .framing: "libcurl before 8.18 takes one of them"
        case .bareReturns: "libcurl before 8.18 accepts it"
        case .unaskedAnswers: "libcurl takes it for the next request's answer"
        case .sendOnce: "libcurl resends a message that was lost on a kept connection, whatever its method"
        case .phases, .connectDeadline, .connectionMetrics: "Foundation does not tell"
        case .backPressure: "Foundation reads on and keeps everything in memory"
        case .streamedUploads: "Foundation reads streams on the queue that all requests share"
        case .networks: "the system does not tell networks apart; it is ignored"
        case .trust, .clientCertificates, .proxies: "Foundation has no such setting; it is refused at the start"
        }
    }
    #else
    private var urlSessionReason: String? {
        switch self {
        case .fieldOrder: "Foundation keeps a dictionary"
        case .trailers, .connectDeadline: "Foundation does not tell"
        case .phases, .cutTLS: "Foundation does not tell"
        case .streamedUploads: "a session asks for its stream on the queue of all its tasks"
        case .clientCertificates: "they have to be in the keychain; it is refused at the start"
        default: nil
        }
    }
    #endif
}

extension TransportFixture.Kind {
    /// The transports with this capability.
    static func those(that can: TransportCapability) -> [Self] {
        allCases.filter { can.known($0) == nil }
    }
}

extension TransportCapability {
    #if os(Linux)
    /// The table for Linux, in Markdown.
    static var table: String {
        let rows = allCases.map { capability in
            let cells = [TransportFixture.Kind.curl, .urlSession].map { capability.known($0) ?? "yes" }
            return "| \(capability.rawValue) | \(cells.joined(separator: " | ")) |"
        }
        return (["| on Linux | CurlTransport | URLSessionTransport |", "|-|-|-|"] + rows).joined(separator: "\n")
    }
    #endif
}
