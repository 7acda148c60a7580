/// The rule for a request while a like one waits or runs in the same ``NetworkQueue``.
///
/// ```swift
/// var options: RequestOptions { RequestOptions(repeatPolicy: .cancelOlder, repeatKey: "search") }
/// ```
///
/// Two requests are alike if they would send the same message to the same ``HostConfiguration``: method, URL with its
/// parameters, header fields, body, the cookies of the host's jar, and the user whose credential the host adds. After
/// another sign-in or a sign-out (``AuthenticationSession``) a request is like none before; a refresh changes nothing.
/// Fields that the interceptors of the host add are not compared. With a ``RequestOptions/repeatKey`` requests are
/// alike if the keys are equal, whatever they send: for example all searches of a search field.
///
/// A request with ``RequestOptions/interceptors`` of its own, or with a ``RedirectPolicy/decide`` of its own, may send
/// anything: without a ``RequestOptions/repeatKey`` it is like no other.
///
/// A queue compares its own jobs only. On a plain `OperationQueue` a policy has no effect.
public enum RepeatPolicy: Hashable, Sendable {
    /// Sends each request. A request with this policy and without a ``RequestOptions/repeatKey`` is never compared, at
    /// no cost, and is invisible to requests with another policy.
    case allow

    /// Cancels the earlier requests when this one is added.
    case cancelOlder

    /// Ends this request at once with ``NetworkError/Code/refused``; nothing is sent.
    case ignoreNewer

    /// Shares one message and its answer among all requests with this policy; each maps the answer itself. All get an
    /// error of the transport or a status that is not accepted.
    ///
    /// An operation that joins takes no slot; the message takes one, as a further job that is in no list or count. Its
    /// priority is the highest of the waiting operations, and it has the tags and categories of the first. A cancelled
    /// operation leaves the message to the others; the exchange stops with the last one. An operation that starts after
    /// the answer has come sends a new message.
    ///
    /// With a ``RequestOptions/repeatKey`` too, requests share only if they expect the same type of item from the same
    /// host with the same credentials (`Authorization`, `Cookie`, `Proxy-Authorization`, those that the host adds),
    /// deadlines and validation, and those with code of their own also only with requests of their type.
    case join
}
