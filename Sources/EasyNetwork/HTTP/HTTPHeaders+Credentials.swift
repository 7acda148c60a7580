extension HTTPHeaders {
    /// The fields that say who asks: those whose name tells of a secret, see ``Redaction/isSecret(_:)``. Redirects leave them
    /// out, the cache and ``RepeatPolicy/join`` keep answers apart by them.
    var credentials: HTTPHeaders {
        HTTPHeaders(filter(\.isCredential))
    }

    /// Without the ``credentials``.
    var withoutCredentials: HTTPHeaders {
        HTTPHeaders(filter { !$0.isCredential })
    }

    /// Without the ``credentials`` that are as they were before the message was altered.
    func withoutCredentials(of original: HTTPHeaders) -> HTTPHeaders {
        HTTPHeaders(filter { !$0.isCredential || original[$0.name] != $0.value })
    }
}

extension HTTPHeaders.Field {
    /// Whether the field says who asks.
    var isCredential: Bool {
        !Self.plainNames.contains(name.lowercased()) && Redaction.standard.isSecret(name)
    }

    var isCookie: Bool { name.isEqualIgnoringASCIICase(to: "Cookie") }

    /// Names that most requests have. A look into a name takes microseconds, and the cache looks at each request.
    private static let plainNames: Set<String> = [
        "accept", "accept-encoding", "accept-language", "cache-control", "content-type", "if-modified-since",
        "if-none-match", "user-agent",
    ]
}
