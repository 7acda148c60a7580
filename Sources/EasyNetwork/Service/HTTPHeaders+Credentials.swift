extension HTTPHeaders {
    /// Without the fields that say who asks: those whose name tells of a secret, see ``Redaction/isSecret(_:)``.
    var withoutCredentials: HTTPHeaders {
        HTTPHeaders(filter { !Redaction.standard.isSecret($0.name) })
    }

    /// Without such fields that are as they were before the message was altered.
    func withoutCredentials(of original: HTTPHeaders) -> HTTPHeaders {
        HTTPHeaders(filter { !Redaction.standard.isSecret($0.name) || original[$0.name] != $0.value })
    }
}
