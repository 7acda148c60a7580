import Foundation

/// What to send: a value that describes one request. Everything but ``api`` has a default.
///
/// ```swift
/// struct Search: BaseAPIRequest {
///     let text: String
///     var api: String { "search" }
///     var params: [String: Any]? { ["q": text, "limit": 20] }
/// }
/// ```
///
/// Its properties are read when the request is built: once for each time it is sent, on the thread that sends it, for
/// an operation a thread of its queue. ``priority`` is read when the operation is made; ``repeatPolicy`` then, and with
/// ``repeatKey`` when it is added to a queue and when it starts. A request whose repeats are noticed is built for that
/// as well, each time, on the thread that adds the operation and on the one that starts it.
public protocol BaseAPIRequest: Sendable {
    /// The path below the host's base URL, or an absolute http or https URL.
    ///
    /// It may have a query, which is kept, and a fragment, which stays last. Escaped bytes are left as they are; what
    /// a URL may not hold (a space, Unicode, a control character) is percent-encoded. A `..` in it climbs, as in any
    /// URL: percent-encode what comes from elsewhere before it is put in.
    var api: String { get }

    /// Default ``NetworkService/Method/get``.
    var method: NetworkService.Method { get }

    /// Where ``params`` go. Default ``NetworkService/QueryType/path``.
    var query: NetworkService.QueryType { get }

    /// The parameters. Default nil.
    ///
    /// A value may be a Bool, a number, a String, a Date (sent as ISO 8601 in UTC), a Data (sent as Base64), a URL,
    /// a UUID, an enum with such a raw value, nil or `NSNull`, an array, or a dictionary with String keys. Anything
    /// else is ``NetworkError/Code/invalidRequest``, with a message that names the place.
    var params: [String: Any]? { get }

    /// How ``params`` are written into a query or a form. Default: arrays as `a[]=1`, Bools as `true` and `false`.
    var queryEncoder: QueryEncoder { get }

    /// Header fields; they beat those of the host, whatever the case of the names. Default nil.
    var headers: [String: String]? { get }

    /// The body, if it is not made from ``params``. Default nil.
    var body: RequestBody? { get }

    /// The longest time in seconds that one attempt may take, from its start to its last byte. Default nil: the host's.
    var timeout: TimeInterval? { get }

    /// How early the request gets its turn in a queue. Default normal.
    var priority: Operation.QueuePriority { get }

    /// The base URL for this request instead of the host's. Default nil: the host's.
    var baseURL: URL? { get }

    /// Which answers are a success. Default nil: the host's, which by default takes statuses 200 to 299.
    var validation: ResponseValidation? { get }

    /// What becomes of the request while another one like it waits or runs in its queue. Default
    /// ``RepeatPolicy/allow``.
    var repeatPolicy: RepeatPolicy { get }

    /// What makes two requests alike for ``repeatPolicy``. Default nil: the message that would be sent.
    var repeatKey: String? { get }
}

extension BaseAPIRequest {
    public var method: NetworkService.Method { .get }
    public var query: NetworkService.QueryType { .path }
    public var params: [String: Any]? { nil }
    public var queryEncoder: QueryEncoder { QueryEncoder() }
    public var headers: [String: String]? { nil }
    public var body: RequestBody? { nil }
    public var timeout: TimeInterval? { nil }
    public var priority: Operation.QueuePriority { .normal }
    public var baseURL: URL? { nil }
    public var validation: ResponseValidation? { nil }
    public var repeatPolicy: RepeatPolicy { .allow }
    public var repeatKey: String? { nil }

    /// The header fields of a request that sends JSON and wants JSON.
    public func defaultJsonHeader() -> [String: String] {
        ["Content-Type": "application/json", "Accept": "application/json"]
    }
}
