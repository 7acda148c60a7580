import Foundation

/// What the rules of caching need to know of an answer that is kept: all but its URL and its body.
struct StoredResponse: Hashable, Sendable {
    let method: NetworkService.Method
    let status: Int
    /// The fields of the answer that are kept, always with a `Date`.
    let headers: HTTPHeaders
    /// What the request said where `Vary` asks for it.
    let nominated: NominatedFields
    /// When the request was begun, or the last one that confirmed the answer.
    let requestDate: Date
    /// When the head of the answer was received, or of the last 304 that confirmed it.
    let responseDate: Date
    /// The directives of `headers`, which are read once.
    let cacheControl: CacheControl
    let freshness: HTTPFreshness

    /// One that was kept already, as it was written.
    init(
        method: NetworkService.Method,
        status: Int,
        headers: HTTPHeaders,
        nominated: NominatedFields,
        requestDate: Date,
        responseDate: Date
    ) {
        self.method = method
        self.status = status
        self.headers = headers
        self.nominated = nominated
        self.requestDate = requestDate
        self.responseDate = responseDate
        cacheControl = CacheControl(response: headers)
        freshness = HTTPFreshness(
            status: status,
            headers: headers,
            control: cacheControl,
            requestDate: requestDate,
            responseDate: responseDate
        )
    }

    /// One that has just been received, and may be stored; see ``HTTPStorability``.
    ///
    /// - Parameters:
    ///   - request: the fields as they were sent, credentials and cookies included.
    ///   - names: fields that tell answers apart besides those that `Vary` names, `Authorization` for one.
    ///   - control: the directives of `response`. Default nil: they are read from there.
    init(
        method: NetworkService.Method = .get,
        request: HTTPHeaders,
        nominating names: [String] = [],
        status: Int,
        response: HTTPHeaders,
        control: CacheControl? = nil,
        requestDate: Date,
        responseDate: Date
    ) {
        self.init(
            method: method,
            status: status,
            headers: Self.dated(response.storedFields(control), responseDate),
            nominated: NominatedFields(vary: response, and: names, of: request),
            requestDate: requestDate,
            responseDate: responseDate
        )
    }

    /// An answer without a date is given the one at which it was received (RFC 9110, section 6.6.1).
    static func dated(_ headers: HTTPHeaders, _ date: Date) -> HTTPHeaders {
        guard headers.httpDate("Date", now: date) == nil else { return headers }
        var headers = headers
        headers["Date"] = date.httpText
        return headers
    }
}

extension StoredResponse {
    /// The fields of the answer to a request that gets this one, with its `Age` (RFC 9111, sections 4 and 5.1).
    func headers(at now: Date) -> HTTPHeaders {
        var headers = headers
        headers["Age"] = DeltaSeconds.text(freshness.age(at: now))
        return headers
    }
}
