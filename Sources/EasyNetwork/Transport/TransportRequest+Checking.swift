extension TransportRequest {
    /// What no server is to see is not sent.
    ///
    /// - Throws: ``NetworkError/Code/invalidRequest`` that says what to mend.
    package func check() throws(NetworkError) {
        guard ["http", "https"].contains(url.scheme?.lowercased()), url.host?.isEmpty == false else {
            throw Self.invalid("\(url.withoutSecrets) is no absolute http or https address")
        }
        try checkLines()
    }

    /// The same without the address, for one that is known to be good.
    package func checkLines() throws(NetworkError) {
        try checkMethod()
        try checkHeaders()
    }

    func checkMethod() throws(NetworkError) {
        guard HTTPSyntax.isToken(method.rawValue.utf8) else {
            throw Self.invalid("the method \"\(method.rawValue.prefix(40))\" is no token (RFC 9110, section 5.6.2)")
        }
    }

    func checkHeaders() throws(NetworkError) {
        for field in headers {
            guard HTTPSyntax.isToken(field.name.utf8) else {
                throw Self.invalid("the header name \"\(field.name.prefix(80))\" is no token (RFC 9110, section 5.6.2)")
            }
            // The value is not shown: it may be a secret.
            guard HTTPSyntax.isFieldValue(field.value.utf8) else {
                let name = field.name.prefix(80)
                throw Self.invalid("the value of the header \(name) has a line break or control character in it")
            }
        }
    }

    private static func invalid(_ message: String) -> NetworkError {
        NetworkError(code: .invalidRequest, message: message)
    }
}

extension HTTPHeaders.Field {
    /// Whether it says how the body is framed. That is the transport's to say: two lengths make two messages of one.
    package var isFraming: Bool {
        name.isEqualIgnoringASCIICase(to: "Content-Length") || name.isEqualIgnoringASCIICase(to: "Transfer-Encoding")
    }
}
