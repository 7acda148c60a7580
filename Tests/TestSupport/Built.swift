import Foundation
import Testing

@testable import EasyNetwork

/// The message that a request becomes at the host `https://h/v1`.
struct Built {
    let message: TransportRequest

    init(_ request: some BaseAPIRequest) throws {
        let base = try #require(URL(string: "https://h/v1"))
        message = try RequestBuilder.build(request, for: HostConfiguration(baseURL: base) { $0.standardHeaders = [:] })
    }

    var url: String { message.url.absoluteString }
    var contentType: String? { message.headers["Content-Type"] }

    /// The body if it is in memory.
    var data: Data? {
        if case .data(let data) = message.body { data } else { nil }
    }

    var text: String? { data.map { String(decoding: $0, as: UTF8.self) } }

    /// The reason why the request cannot be built; empty if it can.
    static func failure(_ request: some BaseAPIRequest) -> String {
        do {
            _ = try Built(request)
            return ""
        } catch let error as NetworkError where error.code == .invalidRequest {
            return error.message ?? ""
        } catch {
            return "another error: \(error)"
        }
    }
}

extension RequestBuilder {
    /// The message of a request with its own options.
    static func build(
        _ request: some BaseAPIRequest,
        for host: HostConfiguration
    ) throws(NetworkError) -> TransportRequest {
        try build(request, request.options, for: host)
    }
}
