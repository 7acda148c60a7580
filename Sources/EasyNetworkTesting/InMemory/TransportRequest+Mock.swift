import EasyNetwork
import Foundation

extension TransportRequest {
    /// The request as a server would get it, with the fields that a transport adds.
    ///
    /// - Throws: `NetworkError.Code.invalidRequest` for what cannot be sent.
    func mockRequest() throws(NetworkError) -> MockRequest {
        try check()
        guard let components = URLComponents(url: url, resolvingAgainstBaseURL: true),
            let host = components.percentEncodedHost
        else { throw NetworkError(code: .invalidRequest, message: "\(url.withoutSecrets) is no address") }
        let bytes = try bodyBytes()
        // How the body is framed is the transport's to say.
        var headers = HTTPHeaders(headers.filter { !$0.isFraming })
        if headers["Host"] == nil { headers["Host"] = components.port.map { "\(host):\($0)" } ?? host }
        // RFC 9110, section 8.6: a method that usually has a body says so even of none.
        let usuallyHasBody = method == .post || method == .put || method == .patch
        if headers["Content-Length"] == nil, bytes != nil || usuallyHasBody {
            headers["Content-Length"] = String(bytes?.count ?? 0)
        }
        let path = components.percentEncodedPath.isEmpty ? "/" : components.percentEncodedPath
        let query = components.percentEncodedQuery.map { "?" + $0 } ?? ""
        return MockRequest(method: method.rawValue, target: path + query, headers: headers, body: bytes ?? Data())
    }

    private func bodyBytes() throws(NetworkError) -> Data? {
        switch body {
        case .none: return nil
        case .data(let data): return data
        case .stream(let stream):
            // InMemoryTransport has written it to a file before.
            throw NetworkError(code: .invalidRequest, message: "\(stream) is not read at once")
        case .file(let file):
            do {
                return try Data(contentsOf: file)
            } catch {
                let message = "the file \(file.path) of the body cannot be read"
                throw NetworkError(code: .invalidRequest, message: message, underlying: error)
            }
        }
    }
}
