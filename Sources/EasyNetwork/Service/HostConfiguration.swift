import Dispatch
import Foundation

/// A server, and how to talk to it: base URL, headers, deadlines, accepted statuses, transport.
///
/// Set the program's host once at launch, before the first request is made:
///
/// ```swift
/// try HostConfiguration.baseURL("https://api.example.com/v1")
/// ```
///
/// A configuration never changes. One that replaces ``shared`` reaches the operations and services made after that.
/// Several hosts live side by side, each with its own ``EasyNetworkService``.
public final class HostConfiguration: Sendable {
    private static let sharedConfiguration = Locked(HostConfiguration(baseURL: nil))

    /// The host that requests use when none is named.
    ///
    /// Until it is set there is no base URL: requests with an absolute URL work, one with a path fails with
    /// ``NetworkError/Code/invalidRequest`` and says what is missing.
    public static var shared: HostConfiguration {
        get { sharedConfiguration.withLock { $0 } }
        set { sharedConfiguration.exchange(\.self, newValue) }
    }

    /// Makes a host with this base URL the ``shared`` one.
    ///
    /// - Parameter string: an absolute http or https URL, with or without a path.
    /// - Throws: ``NetworkError/Code/invalidRequest`` when it is none; ``shared`` stays as it was.
    @discardableResult
    public static func baseURL(_ string: String) throws(NetworkError) -> HostConfiguration {
        let configuration = HostConfiguration(baseURL: try URLBuilder.base(string))
        shared = configuration
        return configuration
    }

    /// What the paths of requests are joined to. Its own path and query are kept.
    public let baseURL: URL?

    /// The host of ``baseURL``, with the port if that names one.
    let host: String?

    /// Sent with every request; a request's own header of the same name wins. Default none.
    public let headers: HTTPHeaders

    /// How long an attempt may take, unless the request says otherwise. Default: 60 seconds of silence, no total.
    public let deadlines: TransportDeadlines

    /// Which answers count as success. Default: status 200 to 299.
    public let validation: ResponseValidation

    /// Where callbacks go when neither operation nor queue names a queue; nil, the default, means a concurrent
    /// background queue of the package.
    public let callbackQueue: DispatchQueue?

    /// What carries the messages. Default: one ``DefaultTransport`` that all hosts share.
    public let transport: any NetworkTransport

    public init(
        baseURL: URL?,
        headers: HTTPHeaders = HTTPHeaders(),
        deadlines: TransportDeadlines = TransportDeadlines(),
        validation: ResponseValidation = ResponseValidation(),
        callbackQueue: DispatchQueue? = nil,
        transport: (any NetworkTransport)? = nil
    ) {
        self.baseURL = baseURL
        host = baseURL?.hostAndPort
        self.headers = headers
        self.deadlines = deadlines
        self.validation = validation
        self.callbackQueue = callbackQueue
        self.transport = transport ?? DefaultTransport.shared
    }

    /// Where callbacks go in the end.
    var deliveryQueue: DispatchQueue {
        callbackQueue ?? WorkQueue.shared
    }
}
