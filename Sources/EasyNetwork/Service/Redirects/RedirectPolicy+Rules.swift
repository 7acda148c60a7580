import Foundation

/// The rules that turn a message into the message of a redirect (RFC 9110, section 15.4). They perform no I/O.
extension RedirectPolicy {
    /// The fields that describe a body (RFC 9110, sections 8 and 15.4), which are meaningless without one.
    private static let contentFields = [
        "Content-Type", "Content-Encoding", "Content-Language", "Content-Location", "Content-Disposition",
        "Content-MD5", "Content-Range", "Content-Digest", "Digest", "Repr-Digest", "Last-Modified",
    ]

    /// The fields that are sent to another origin: the general fields of HTTP (RFC 9110, RFC 9111), and the keys of a
    /// repeated or resumed request. `Referer`, `From`, `Origin`, `Host` and credentials are not sent.
    private static let commonFields: Set<String> = Set(
        contentFields.map { $0.lowercased() } + [
            "accept", "accept-charset", "accept-encoding", "accept-language", "cache-control", "dnt", "expect",
            "idempotency-key", "if-match", "if-modified-since", "if-none-match", "if-range", "if-unmodified-since",
            "last-event-id", "pragma", "prefer", "priority", "range", "te", "user-agent", "want-content-digest",
            "want-repr-digest",
        ]
    )

    private func mayCross(_ field: HTTPHeaders.Field) -> Bool {
        let name = field.name.lowercased()
        return name != "host" && (Self.commonFields.contains(name) || sendsToOtherOrigins(name))
    }

    /// Returns the fields of a message to another origin that a server has named without a redirect. Credentials and
    /// the fields that name the sender are removed, unless the policy allows them.
    func headersElsewhere(_ headers: HTTPHeaders) -> HTTPHeaders {
        HTTPHeaders(
            headers.filter { field in
                let name = field.name.lowercased()
                let isPrivate = field.isCredential || ["origin", "referer", "from"].contains(name)
                return name != "host" && (!isPrivate || sendsToOtherOrigins(name))
            }
        )
    }

    /// Returns the message of a redirect; nil if the response is not a redirect, or must be returned itself.
    ///
    /// - Parameter count: The number of redirects that have been followed.
    /// - Throws: ``NetworkError/Code/redirectFailed`` if the redirect cannot be followed.
    func redirect(of message: TransportRequest, by response: NetworkResponse, count: Int) throws(NetworkError)
        -> TransportRequest?
    {
        guard mayFollow(response.statusCode, response.headers),
            let location = response.headers.single("Location", .first, { $0 })
        else { return nil }
        guard count < limit else { throw failure(response, "more than \(limit) redirects") }
        let target = try self.target(location, from: message.url, response)
        var next = message
        next.url = target
        if Self.becomesGet(message.method, response.statusCode) {
            next.method = .get
            next.body = .none
            for name in Self.contentFields { next.headers.remove(name) }
        }
        guard next.body.isReplayable else {
            throw failure(response, "the body must be sent again, but can be read only once")
        }
        if target.origin != message.url.origin { next.headers = HTTPHeaders(next.headers.filter(mayCross)) }
        return next
    }

    /// Returns the message that the policy's hook sends instead of the proposed one. Another origin gets only the
    /// fields that are allowed there, and the fields that the hook has set itself.
    func checked(
        _ decided: TransportRequest,
        insteadOf proposed: TransportRequest,
        after sent: TransportRequest
    ) -> TransportRequest {
        guard decided.url.origin != sent.url.origin else { return decided }
        func isKept(_ field: HTTPHeaders.Field) -> Bool {
            proposed.headers.contains { $0.value == field.value && $0.name.isEqualIgnoringASCIICase(to: field.name) }
        }
        var checked = decided
        checked.headers = HTTPHeaders(decided.headers.filter { mayCross($0) || !isKept($0) })
        return checked
    }

    /// Returns whether a response is a redirect to follow, apart from the limit and an invalid Location.
    func mayFollow(_ statusCode: Int, _ headers: HTTPHeaders) -> Bool {
        switch statusCode {
        case 301, 302, 303, 307, 308: limit > 0 && headers["Location"] != nil
        default: false
        }
    }

    /// Returns whether a redirect changes the method to GET. A 303 follows RFC 9110, section 15.4.4. A 301 and a 302 do
    /// what sections 15.4.2 and 15.4.3 allow and browsers do.
    private static func becomesGet(_ method: NetworkService.Method, _ status: Int) -> Bool {
        switch status {
        case 303: method != .head && method != .get
        case 301, 302: method == .post
        default: false
        }
    }

    private func target(_ location: String, from url: URL, _ response: NetworkResponse) throws(NetworkError) -> URL {
        let target: URL
        do throws(NetworkError) {
            target = try URLBuilder.url(resolving: location, against: url, what: "the Location")
        } catch {
            throw failure(response, error.message ?? "the Location is not a valid URL")
        }
        guard allowsDowngrade || target.scheme == "https" || url.scheme?.lowercased() != "https" else {
            throw failure(response, "the redirect leads from https to http, which the policy does not allow")
        }
        return target
    }

    private func failure(_ response: NetworkResponse, _ message: String) -> NetworkError {
        response.error(.redirectFailed, message: message)
    }
}
