import Foundation

/// The transport that hosts use when they name no other: `CurlTransport` on Linux, where URLSession loses answers and
/// stops the process; ``URLSessionTransport`` on Apple's platforms.
///
/// On Linux without libcurl 7.81 or later, it is ``URLSessionTransport`` too, and a line on standard error says so once.
///
/// ```swift
/// let host = HostConfiguration(baseURL: url, transport: DefaultTransport(configuration))
/// ```
public struct DefaultTransport: NetworkTransport {
    /// The transport that all hosts without one of their own share.
    public static let shared = DefaultTransport()

    private let transport: any NetworkTransport

    /// - Parameters:
    ///   - configuration: limits, trust and proxy. Default: none of one's own.
    ///   - clock: for the deadlines.
    public init(
        _ configuration: TransportConfiguration = TransportConfiguration(),
        clock: any NetworkClock = SystemClock()
    ) {
        #if os(Linux) && canImport(CCurl)
        transport =
            Self.usesCurl
            ? CurlTransport(configuration, clock: clock) : URLSessionTransport(configuration, clock: clock)
        #else
        transport = URLSessionTransport(configuration, clock: clock)
        #endif
    }

    public func start(
        _ request: TransportRequest,
        events: @escaping @Sendable (TransportEvent) -> Void
    ) -> any TransportExchange {
        transport.start(request, events: events)
    }

    #if os(Linux) && canImport(CCurl)
    /// Whether libcurl is there; the first caller without it says so.
    private static let usesCurl: Bool = {
        guard let problem = CurlLibrary.problem?.message else { return true }
        FileHandle.standardError.write(Data("EasyNetwork: \(problem). Requests go over URLSession.\n".utf8))
        return false
    }()
    #endif
}
