import EasyNetworkTesting
import Foundation

@testable import EasyNetwork

/// A suite whose services send over one transport.
protocol ServiceSuite {
    associatedtype Transport: NetworkTransport

    var transport: Transport { get }

    /// Sets what all hosts of the suite have in common. By default nothing.
    func prepare(_ host: inout HostSettings)
}

extension ServiceSuite {
    func prepare(_ host: inout HostSettings) {}

    /// A new service without a deadline that a slow machine could miss, and without retries unless
    /// ``prepare(_:)`` or `change` sets them.
    func service(
        at base: String = "http://one.example",
        _ change: (inout HostSettings) -> Void = { _ in }
    ) -> EasyNetworkService {
        let deadlines = TransportDeadlines(idle: nil)
        let host = HostConfiguration(baseURL: URL(string: base), deadlines: deadlines, transport: transport) { host in
            host.retry = .never
            prepare(&host)
            change(&host)
        }
        return EasyNetworkService(host)
    }
}
