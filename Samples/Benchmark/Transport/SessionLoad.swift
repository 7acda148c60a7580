import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// `URLSession` as it is: data tasks with completion handlers, the next one from the end of another.
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
    /// Without a cache: with one, Linux stops the process when tasks are cancelled. Nothing here could be cached
    /// anyway.
    static var uncached: URLSessionConfiguration {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.urlCache = nil
        return configuration
    }
}
