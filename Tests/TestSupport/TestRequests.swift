import EasyNetworkTesting
import Foundation

@testable import EasyNetwork

/// A request whose item is the unchanged response.
struct Get: APIRequest {
    typealias Item = NetworkResponse
    var api: String
}

/// A request that uses a mapper of the older style.
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
    /// A host for this server with a new transport, no deadlines that a slow machine could miss, and no retries unless
    /// `change` sets them.
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
            transport: transport ?? TransportConfiguration().makeTransport()
        ) { host in
            host.callbackQueue = callbackQueue
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
        case .standard: TransportConfiguration.sharedTransport
        case .urlSession: URLSessionTransport()
        }
    }
}
