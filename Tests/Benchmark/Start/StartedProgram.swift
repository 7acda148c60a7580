import EasyNetwork
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// What a program does that ``StartBenchmark`` starts: nothing, or one request.
enum StartedProgram {
    private static let word = "started-program"
    private static let session = "URLSession"

    /// - Parameters:
    ///   - url: Nil for a program that does nothing.
    ///   - authority: Nil for http.
    static func arguments(_ url: URL? = nil, authority: URL? = nil) -> [String] {
        [word] + [url?.absoluteString, authority?.path].compactMap(\.self)
    }

    /// The same request over `URLSession`.
    static func sessionArguments(_ url: URL) -> [String] { [word, session, url.absoluteString] }

    /// Looks at the arguments without Foundation, because a program that does nothing only loads it.
    static func isNamed(by arguments: [String]) -> Bool {
        arguments.count > 1 && arguments[1] == word
    }

    /// Returns whether the response was right.
    static func run(_ arguments: [String]) async -> Bool {
        guard arguments.count > 2 else { return true }
        if arguments[2] == session {
            guard let url = URL(string: arguments[3]) else { return false }
            let body = try? await URLSession(configuration: .uncached).data(from: url).0
            return body?.count == SmallRequests.byteCount
        }
        var configuration = TransportConfiguration.direct
        if arguments.count > 3 { configuration.tls.trust = .certificateFile(URL(fileURLWithPath: arguments[3])) }
        let service = EasyNetworkService(HostConfiguration(baseURL: nil, transport: configuration.makeTransport()))
        let body = try? await NetworkQueue.shared.perform(Request<Data>(arguments[2]), service: service)
        return body?.count == SmallRequests.byteCount
    }
}
