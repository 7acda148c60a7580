import Testing

@testable import EasyNetwork
@testable import TestSupport

/// The requirements on every transport, and the known exceptions: the table in the documentation.
enum TransportCapability: String, CaseIterable, Sendable {
    case fieldOrder = "keep the order and the repeats of header fields"
    case trailers = "accept responses with trailers"
    case cutHead = "report a connection that closes within a head"
    case brokenRedirects = "follow redirects whose body breaks off or never ends"
    case manyFields = "reject a head with 10,000 fields immediately"
    case lenientHead = "accept heads with bare line feeds, or without reason phrase"
    case latin1 = "accept header fields in ISO 8859-1"
    case ipv6Literals = "connect to hosts that are IPv6 addresses"
    case preciseCodes = "distinguish a malformed head or coding from a lost connection"
    case cutCoding = "detect truncated gzip data in a complete response"
    case cutTLS = "detect truncated TLS in a body without length"
    case unknownCoding = "pass on a body with an unknown content coding"
    case framing = "reject lengths that differ or are not numbers"
    case bareReturns = "reject a carriage return within a header line"
    case unaskedAnswers = "discard an unsolicited response"
    case sendOnce = "never resend a message that the server may have acted upon"
    case phases = "report the phase of a failed request"
    case connectDeadline = "enforce a deadline for the connection"
    case connectionMetrics = "measure name, connection, TLS, bytes, protocol and address"
    case backPressure = "apply back pressure to a sender"
    case streamedUploads = "send a stream without a temporary file"
    case trust = "use custom authorities, pins, and TLS 1.3 as minimum"
    case clientCertificates = "use client certificates from PEM files"
    case proxies = "use a chosen proxy, or none"
    case networks = "avoid cellular networks, and set the kind of traffic"

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
        case .networks: "ignored: the system does not distinguish networks"
        default: nil
        }
    }

    private var urlSessionReason: String? {
        switch self {
        case .fieldOrder: "Foundation keeps fields in a dictionary"
        case .trailers, .cutHead: "Foundation crashes the process"
        case .brokenRedirects: "Foundation reports a redirect when its body has ended"
        case .manyFields: "Foundation needs quadratic time, and blocks all other requests meanwhile"
        case .lenientHead: "Foundation rejects them"
        case .latin1: "Foundation rejects them"
        case .ipv6Literals: "Foundation rejects them"
        case .preciseCodes: "Foundation has one error for both"
        case .cutCoding: "libcurl removes the coding and reports no error"
        case .cutTLS: "libcurl treats it as the end of the body"
        case .unknownCoding: "libcurl rejects it"
        case .framing: "libcurl before 8.18 uses one of them"
        case .bareReturns: "libcurl before 8.18 accepts it"
        case .unaskedAnswers: "libcurl treats it as the response to the next request"
        case .sendOnce: "libcurl resends a message that was lost on a kept connection, whatever its method"
        case .phases, .connectionMetrics: "Foundation does not report it"
        case .connectDeadline: "Foundation does not report when it is connected"
        case .backPressure: "Foundation reads on and keeps everything in memory"
        case .streamedUploads: "Foundation reads streams on the queue that all requests share"
        case .networks: "ignored: the system does not distinguish networks"
        case .trust, .clientCertificates, .proxies: "Foundation has no such setting; each request fails at its start"
        }
    }
    #else
    private var urlSessionReason: String? {
        switch self {
        case .fieldOrder: "Foundation keeps fields in a dictionary"
        case .trailers, .connectDeadline: "Foundation does not report it"
        case .phases, .cutTLS: "Foundation does not report it"
        case .streamedUploads: "a session requests its stream on the queue of all its tasks"
        case .clientCertificates: "they must be in the keychain; each request fails at its start"
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
