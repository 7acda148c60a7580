/// The rule for a request while a request like it waits or runs in the same ``NetworkQueue``.
///
/// ```swift
/// var options: RequestOptions { RequestOptions(repeatPolicy: .cancelOlder, repeatKey: "search") }
/// ```
///
/// Two requests are alike if they would send the same message to the same ``HostConfiguration``: method, URL with its
/// parameters, header fields, body, the cookies of the host's jar, and the user whose credential the host adds. After a
/// sign-out or another sign-in (``AuthenticationSession``), a request is like none before; a refresh changes nothing.
/// Fields that the interceptors of the host add are not compared. With a ``RequestOptions/repeatKey``, requests are
/// alike if their keys are equal, whatever they send: for example all searches of a search field.
///
/// A request with its own ``RequestOptions/interceptors`` or its own ``RedirectPolicy/decide`` could send anything.
/// Without a ``RequestOptions/repeatKey``, it is like no other.
///
/// A queue compares only its own jobs. On a plain `OperationQueue`, a policy has no effect.
public enum RepeatPolicy: Hashable, Sendable {
    /// Sends each request. A request with this policy and without a ``RequestOptions/repeatKey`` is never compared,
    /// which costs nothing, and is invisible to requests with another policy.
    case allow

    /// Cancels the earlier requests when this one is added.
    case cancelOlder

    /// Fails this request at once with ``NetworkError/Code/refused``; nothing is sent.
    case ignoreNewer

    /// Shares one message and its response among all requests with this policy. Each request maps the response itself.
    /// All of them get an error of the transport or a status that is not accepted.
    ///
    /// An operation that joins takes no slot. The message takes one, as an additional job that is in no list or count.
    /// Its priority is the highest of the waiting operations, and it has the tags and categories of the first. If an
    /// operation is cancelled, the others keep the message; the exchange is cancelled with the last one. An operation
    /// that starts after the response has arrived sends a new message.
    ///
    /// Even with a ``RequestOptions/repeatKey``, requests share a message only if they expect the same type of item
    /// from the same host with the same credentials (`Authorization`, `Cookie`, `Proxy-Authorization`, and those that
    /// the host adds), deadlines and validation. A request with its own code shares only with requests of its type.
    case join
}
