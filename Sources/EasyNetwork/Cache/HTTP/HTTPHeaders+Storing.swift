extension HTTPHeaders {
    /// Fields of one connection or one proxy (RFC 9111, section 3.1; RFC 9110, section 7.6.1).
    private static let connectionFields: Set<String> = [
        "connection", "keep-alive", "proxy-authenticate", "proxy-authentication-info", "proxy-authorization",
        "proxy-connection", "te", "transfer-encoding", "upgrade",
    ]

    /// Fields that say how the stored body came, or how long it is: a 304 cannot change them (RFC 9111, section 3.2). The
    /// body was decoded when it was received, which takes in `Content-Encoding`; `Content-Type` is changed, since the
    /// body is read anew each time.
    private static let bodyFields: Set<String> = ["content-encoding", "content-length", "content-range"]

    /// The fields of an answer that are kept: all but those of the connection, those that `Connection` lists, and those
    /// that `no-cache="…"` names (RFC 9111, section 3.1).
    ///
    /// - Parameter control: the directives of these fields. Default nil: they are read from them.
    func storedFields(_ control: CacheControl? = nil) -> HTTPHeaders {
        let listed = listMembers("Connection").map { $0.lowercased() }
        let control = control ?? CacheControl(response: self)
        let dropped = Self.connectionFields.union(listed).union(control.fieldsNotToStore)
        return HTTPHeaders(filter { !dropped.contains($0.name.lowercased()) })
    }

    /// The fields of a 304 that replace stored ones.
    var freshFields: HTTPHeaders {
        HTTPHeaders(storedFields().filter { !Self.bodyFields.contains($0.name.lowercased()) })
    }

    /// The members of a field that is a list of tokens, without the empty ones.
    func listMembers(_ name: String) -> [String] {
        values(for: name).flatMap { $0.split(separator: ",") }.map(\.trimmed).filter { !$0.isEmpty }
    }
}
