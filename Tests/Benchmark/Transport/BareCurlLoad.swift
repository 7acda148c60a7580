#if os(Linux)
import CCurl
import Foundation

/// Plain libcurl: easy handles whose options are set once, and the body in a `Data`.
final class BareCurlLoad: Load {
    private let loop: BareCurl
    private var bodies: [UnsafeMutableRawPointer: BareCurlBody] = [:]

    /// - Returns: nil without memory.
    init?(_ url: URL, atOnce width: Int) {
        guard let loop = BareCurl() else { return nil }
        self.loop = loop
        for _ in 0..<width {
            guard let easy = BareCurl.makeHandle(url) else { continue }
            let body = BareCurlBody()
            // The dictionary retains it as long as the handle exists.
            bodies[easy] = body
            body.take(from: easy)
        }
    }

    deinit {
        for easy in bodies.keys { ccurl_easy_cleanup(easy) }
    }

    func send(_ count: Int) -> Int {
        let first = bodies.keys.prefix(count)
        var toBegin = count - first.count
        var right = 0
        loop.run(first) { easy, result in
            if result == CCURLE_OK, bodies[easy]?.data.count == SmallRequests.byteCount { right += 1 }
            bodies[easy]?.data = Data()
            guard toBegin > 0 else { return false }
            toBegin -= 1
            return true
        }
        return right
    }
}
#endif
