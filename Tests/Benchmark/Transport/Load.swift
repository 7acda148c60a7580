import EasyNetwork
import Foundation

/// A sender of many small requests, several at a time.
protocol Load: AnyObject {
    /// Sends the requests and waits for all answers.
    ///
    /// - Returns: the number of correct answers.
    func send(_ count: Int) -> Int
}

/// The contenders with small requests.
enum LoadContender: CaseIterable {
    case curlTransport, sessionTransport, session, bareCurl

    var name: String {
        switch self {
        case .curlTransport: "queue, CurlTransport"
        case .sessionTransport: "queue, URLSessionTransport"
        case .session: "URLSession data tasks"
        case .bareCurl: "bare libcurl"
        }
    }

    /// - Returns: nil when the platform lacks it.
    func makeLoad(_ url: URL, atOnce width: Int) -> (any Load)? {
        switch self {
        case .curlTransport:
            #if os(Linux)
            return QueueLoad(CurlTransport(.direct), url, atOnce: width)
            #else
            return nil
            #endif
        case .sessionTransport:
            return QueueLoad(URLSessionTransport(), url, atOnce: width)
        case .session:
            return SessionLoad(url, atOnce: width)
        case .bareCurl:
            #if os(Linux)
            return BareCurlLoad(url, atOnce: width)
            #else
            return nil
            #endif
        }
    }
}
