import Foundation

/// Puts an answer together from the events of its exchange.
struct ResponseAssembly {
    private var head: TransportHead?
    private var body = Data()

    /// - Returns: the answer, or why there is none, at the last event; nil before.
    mutating func receive(_ event: TransportEvent, from url: URL) -> Result<NetworkResponse, NetworkError>? {
        switch event {
        case .head(let head):
            self.head = head
            return nil
        case .body(let data):
            body.append(data)
            return nil
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
