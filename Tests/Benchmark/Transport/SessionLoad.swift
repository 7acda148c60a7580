import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Plain `URLSession`: data tasks with completion handlers; the end of one starts the next.
final class SessionLoad: Load {
    private let session: URLSession
    private let url: URL
    private let width: Int

    init(_ url: URL, atOnce width: Int) {
        let configuration = URLSessionConfiguration.uncached
        configuration.httpMaximumConnectionsPerHost = width
        session = URLSession(configuration: configuration)
        self.url = url
        self.width = width
    }

    deinit {
        session.finishTasksAndInvalidate()
    }

    func send(_ count: Int) -> Int {
        let tally = Tally(count)
        for _ in 0..<width { Self.sendNext(session, url, tally) }
        tally.wait()
        return tally.right
    }

    private static func sendNext(_ session: URLSession, _ url: URL, _ tally: Tally) {
        guard tally.begin() else { return }
        session.dataTask(with: url) { data, _, error in
            tally.ended(error == nil ? data?.count : nil)
            sendNext(session, url, tally)
        }.resume()
    }
}

extension URLSessionConfiguration {
    /// A configuration without a cache. With a cache the process stops on Linux when tasks are cancelled.
    static var uncached: URLSessionConfiguration {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.urlCache = nil
        return configuration
    }
}
