#if os(Linux) || os(macOS)
import EasyNetwork
import Foundation

/// Something that brings a large body into a file, or from one to a server.
protocol Carrier: AnyObject {
    /// Downloads, and waits until all has been written.
    func download(_ url: URL, to file: URL) throws

    /// Uploads with PUT, and waits for the answer.
    ///
    /// - Returns: the body of the answer.
    func upload(_ file: URL, to url: URL) throws -> Data
}

/// Who is measured with large bodies.
enum CarrierContender: CaseIterable {
    // In the order in which they are measured: what others leave in memory is not to count as the first's.
    case curlTransport, transport, bareCurl, sessionTransport, session

    var name: String {
        switch self {
        case .curlTransport: "queue, CurlTransport"
        case .transport: "\(DefaultTransport.self) alone"
        case .bareCurl: "bare libcurl"
        case .sessionTransport: "queue, URLSessionTransport"
        case .session: "URLSession tasks"
        }
    }

    /// Whether the project promises something of it. The others are what it is compared with.
    var hasBars: Bool { self == .curlTransport }

    /// - Returns: nil when this platform does not have it.
    func makeCarrier() -> (any Carrier)? {
        switch self {
        case .curlTransport:
            #if os(Linux)
            return QueueCarrier(CurlTransport(.direct))
            #else
            return nil
            #endif
        case .transport:
            return TransportCarrier(DefaultTransport(.direct))
        case .bareCurl:
            #if os(Linux)
            return BareCurlCarrier()
            #else
            return nil
            #endif
        case .sessionTransport:
            return QueueCarrier(URLSessionTransport())
        case .session:
            return SessionCarrier()
        }
    }
}
#endif
