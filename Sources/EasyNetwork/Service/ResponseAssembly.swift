import Foundation

/// Puts an answer together from the events of its exchange.
struct ResponseAssembly {
    /// What a body that is too long is told by; nil when its beginning is enough.
    private let validation: ResponseValidation?
    /// So many bytes are enough.
    private let limit: Int
    private var head: TransportHead?
    private var body = Data()

    init(_ validation: ResponseValidation) {
        self.validation = validation
        limit = .max
    }

    /// For an answer of which the beginning is enough: with so many bytes it counts as whole.
    init(keepingAtMost limit: Int) {
        validation = nil
        self.limit = limit
    }

    /// - Returns: the answer, or why there is none, at the last event or when the body is too long; nil before.
    mutating func receive(_ event: TransportEvent, from url: URL) -> Result<NetworkResponse, NetworkError>? {
        switch event {
        case .sent:
            return nil
        case .head(let head):
            self.head = head
            return nil
        case .body(let data):
            body.append(data)
            let error = validation.flatMap { $0.accepts(bodyCount: body.count) ? nil : $0.bodyTooLong }
            guard error != nil || body.count >= limit, let head else { return nil }
            let beginning = NetworkResponse(statusCode: head.statusCode, headers: head.headers, body: body, url: url)
            return error.map { .failure($0(beginning)) } ?? .success(beginning)
        case .end(let end):
            return result(of: end, from: url)
        }
    }

    private func result(of end: TransportEnd, from url: URL) -> Result<NetworkResponse, NetworkError> {
        if var error = end.error {
            error.metrics = end.metrics
            error.statusCode = head?.statusCode
            error.headers = head?.headers ?? HTTPHeaders()
            error.responseBody = head == nil ? nil : body
            return .failure(error)
        }
        guard let head else {
            return .failure(NetworkError(code: .badServerResponse, message: "the exchange ended without an answer"))
        }
        var response = NetworkResponse(statusCode: head.statusCode, headers: head.headers, body: body, url: url)
        response.trailers = end.trailers
        response.metrics = end.metrics
        return .success(response)
    }
}
