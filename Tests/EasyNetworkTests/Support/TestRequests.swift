import EasyNetworkTesting
import Foundation

@testable import EasyNetwork

/// A request of a test, with the answer as it came.
struct Get: APIRequest {
    typealias Item = NetworkResponse
    var api: String
}

/// A request of a test that is mapped with the older mappers.
struct GetAccount: APIRequest {
    var id: Int
    var api: String { "users/\(id)" }

    func item(from response: NetworkResponse) throws -> Account {
        try AccountMapper.process(response.json())
    }
}

struct Account: ParsedItem, Equatable {
    var id: Int
    var name: String
}

final class AccountMapper: ResponseMapper<Account>, ResponseMapperProtocol {
    static func process(_ json: Any?) throws -> Account {
        try process(json) { json in Account(id: try json.required("id"), name: try json.required("name")) }
    }
}

extension MockServer {
    /// A host for this server with a transport of its own, no deadline that a slow machine could miss, and no retries
    /// but those that `change` allows.
    func host(
        headers: HTTPHeaders = HTTPHeaders(),
        callbackQueue: DispatchQueue? = nil,
        transport: (any NetworkTransport)? = nil,
        change: (inout HostSettings) -> Void = { _ in }
    ) -> HostConfiguration {
        HostConfiguration(
            baseURL: baseURL,
            headers: headers,
            deadlines: TransportDeadlines(idle: nil),
            callbackQueue: callbackQueue,
            transport: transport ?? URLSessionTransport()
        ) { host in
            host.retry = .never
            change(&host)
        }
    }
}

/// The transports that go over sockets.
enum Wire: CaseIterable {
    case standard
    case urlSession

    var transport: any NetworkTransport {
        switch self {
        case .standard: DefaultTransport.shared
        case .urlSession: URLSessionTransport()
        }
    }
}
