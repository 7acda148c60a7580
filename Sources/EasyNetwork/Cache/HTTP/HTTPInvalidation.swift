import Foundation

/// Which answers are out of date after a request that may have changed something (RFC 9111, section 4.4).
enum HTTPInvalidation {
    /// Methods that change nothing (RFC 9110, section 9.2.1). Of others nobody knows.
    private static let safeMethods = ["GET", "HEAD", "OPTIONS", "TRACE"]

    /// - Parameter target: the URL of the request that this is the answer to.
    /// - Returns: the URLs, absolute and without fragment, whose answers are to be forgotten, the target first: none after
    ///   a safe method or an error, and none of another origin, since a server is not to clear the cache of others.
    static func urls(method: NetworkService.Method, target: URL, status: Int, response: HTTPHeaders) -> [URL] {
        guard !safeMethods.contains(method.rawValue), (200..<400).contains(status), let origin = target.origin
        else { return [] }
        let named = ["Location", "Content-Location"].flatMap { response.values(for: $0) }
            .compactMap { URL(string: PercentEncoding.mend($0.trimmed, .reference), relativeTo: target) }
            .filter { $0.absoluteURL.origin == origin }
        var seen: Set<URL> = []
        return ([target] + named).compactMap(withoutFragment).filter { seen.insert($0).inserted }
    }

    private static func withoutFragment(_ url: URL) -> URL? {
        var components = URLComponents(url: url.absoluteURL, resolvingAgainstBaseURL: true)
        components?.fragment = nil
        return components?.url
    }
}
