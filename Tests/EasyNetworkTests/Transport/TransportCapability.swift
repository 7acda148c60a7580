@testable import EasyNetwork

/// What the suite asks of every transport, and what is known that one cannot do: the table in the documentation.
enum TransportCapability: String, CaseIterable, Sendable {
    case fieldOrder = "header fields in their order, repeated ones apart"
    case trailers = "answers with trailers"
    case cutHead = "a connection that closes within a head"
    case manyFields = "refuse 10,000 header fields at once"
    case lenientHead = "heads with bare line feeds, or without reason phrase"
    case latin1 = "header fields in ISO 8859-1"
    case ipv6Literals = "hosts that are IPv6 addresses"
    case preciseCodes = "tell a malformed head or coding from a lost connection"
    case cutCoding = "notice a gzip that is cut short, in an answer that is not"
    case unknownCoding = "hand over a body as it came, whose content coding is not known"
    case framing = "refuse lengths of a body that differ, or are no numbers"
    case bareReturns = "refuse a carriage return within a header line"
    case unaskedAnswers = "keep an answer that nobody asked for from the next request"
    case sendOnce = "send nothing again that the server may have acted upon"
    case phases = "tell how far a request came before its answer"
    case connectDeadline = "a deadline for the connection"
    case connectionMetrics = "metrics of name, connection, TLS, bytes, protocol and address"
    case backPressure = "hold back a sender whose body nobody takes"
    case streamedUploads = "send a stream as it is made, without a temporary file"
    case trust = "own authorities, pins, TLS 1.3 at least"
    case clientCertificates = "client certificates from PEM files"
    case proxies = "a proxy of one's own, or none"
    case networks = "keep off cellular networks, and say what kind of traffic it is"

    /// Why a transport cannot do this on this platform; nil when it can, and where the question has no meaning.
    func known(_ kind: TransportFixture.Kind) -> String? {
        switch kind {
        case .inMemory: nil
        #if os(Linux)
        case .curl: curlReason
        #endif
        case .urlSession: urlSessionReason
        }
    }

    /// Whether to try it would stop the process, or hold it up for seconds.
    var isDangerous: Bool {
        switch self {
        case .trailers, .cutHead, .manyFields: true
        default: false
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
        case .manyFields: "Foundation reads them in quadratic time, and nothing else meanwhile"
        case .lenientHead: "Foundation refuses them"
        case .latin1: "Foundation leaves them out"
        case .ipv6Literals: "Foundation refuses them"
        case .preciseCodes: "Foundation has one error for all of them"
        case .cutCoding: "libcurl takes the coding off and does not say"
        case .unknownCoding: "libcurl refuses it"
        case .framing: "libcurl takes one of them, before 8.18"
        case .bareReturns: "libcurl takes it, before 8.18"
        case .unaskedAnswers: "libcurl takes it for the next request's"
        case .sendOnce: "libcurl sends again what was lost on a kept connection, whatever its method"
        case .phases, .connectDeadline, .connectionMetrics: "Foundation does not tell"
        case .backPressure: "Foundation reads on and keeps what nobody takes"
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
        case .phases: "Foundation does not tell"
        case .streamedUploads: "a session asks for its stream on the queue of all its tasks"
        case .clientCertificates: "they have to be in the keychain; it is refused at the start"
        default: nil
        }
    }
    #endif
}

extension TransportFixture.Kind {
    /// Those that can do this.
    static func those(that can: TransportCapability) -> [Self] {
        allCases.filter { can.known($0) == nil }
    }
}

extension TransportCapability {
    #if os(Linux)
    /// The table of what is known on Linux, in Markdown.
    static var table: String {
        let rows = allCases.map { capability in
            let cells = [TransportFixture.Kind.curl, .urlSession].map { capability.known($0) ?? "yes" }
            return "| \(capability.rawValue) | \(cells.joined(separator: " | ")) |"
        }
        return (["| on Linux | CurlTransport | URLSessionTransport |", "|-|-|-|"] + rows).joined(separator: "\n")
    }
    #endif
}
