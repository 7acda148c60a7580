/// What becomes of a request while another one like it waits or runs in the same ``NetworkQueue``.
///
/// Two are alike when they would send the same message to the same ``HostConfiguration``: method, URL with its
/// parameters, header fields, body, and whether the host puts its credential in (``BaseAPIRequest/isAuthenticated``). With
/// a key of one's own (``BaseAPIRequest/repeatKey``) they are alike when the keys
/// are equal, whatever they send: all searches of a search field, say.
///
/// A queue notices repeats among its own jobs only. On a plain `OperationQueue` a policy has no effect.
public enum RepeatPolicy: Hashable, Sendable {
    /// They have nothing to do with each other. One without a key of its own is not noticed at all, so that it costs
    /// nothing, and others with another policy do not see it.
    case allow

    /// Those added before are cancelled when this one is added.
    case cancelOlder

    /// This one ends at once with ``NetworkError/Code/refused``, and nothing is sent.
    case ignoreNewer

    /// All that have this policy share one message and its answer, each mapping it for itself. An error of the
    /// transport, or a status that is not accepted, goes to all.
    ///
    /// An operation that joins takes no slot; the message does, as one more job that is in no list or count. Its
    /// priority is the highest of those that wait for it, and it has the tags and categories of the first. Those that
    /// are cancelled leave it to the others; when the last has gone, the exchange stops. One that comes when the answer
    /// is there sends anew.
    ///
    /// With a key of one's own, still only those share that expect the same type of item from the same host with the
    /// same credentials (`Authorization`, `Cookie`, `Proxy-Authorization`, ``BaseAPIRequest/isAuthenticated``), deadlines
    /// and validation.
    case join
}
