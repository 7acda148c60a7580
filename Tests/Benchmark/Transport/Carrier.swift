#if os(Linux) || os(macOS)
import EasyNetwork
import Foundation

/// A contender that downloads a large body into a file and uploads one from a file.
protocol Carrier: AnyObject {
    /// Downloads the body, and waits until it has been written.
    func download(_ url: URL, to file: URL) throws

    /// Uploads a file with PUT, and waits for the answer.
    ///
    /// - Returns: the body of the answer.
    func upload(_ file: URL, to url: URL) throws -> Data
}

/// The contenders with large bodies.
enum CarrierContender: CaseIterable {
    // In the order of measurement: the first one must not count memory that another left.
    case curlTransport, transport, bareCurl, sessionTransport, session

    var name: String {
        switch self {
        case .curlTransport: "queue, CurlTransport"
        case .transport: "the default transport alone"
        case .bareCurl: "bare libcurl"
        case .sessionTransport: "queue, URLSessionTransport"
        case .session: "URLSession tasks"
        }
    }

    /// Whether the bars apply. The others serve for comparison.
    var hasBars: Bool { self == .curlTransport }

    /// - Returns: nil when the platform lacks it.
    func makeCarrier() -> (any Carrier)? {
        switch self {
        case .curlTransport:
            #if os(Linux)
            return QueueCarrier(CurlTransport(.direct))
            #else
            return nil
            #endif
        case .transport:
            return TransportCarrier(TransportConfiguration.direct.makeTransport())
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
