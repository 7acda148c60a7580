import EasyNetwork
import Foundation

/// `RequestOperation`s on a `NetworkQueue`, all of them added at once.
final class QueueLoad: Load {
    let service: EasyNetworkService
    let queue: NetworkQueue
    private let url: URL

    init(_ transport: any NetworkTransport, _ url: URL, atOnce width: Int) {
        service = EasyNetworkService(HostConfiguration(baseURL: url, transport: transport))
        queue = NetworkQueue(maxConcurrentOperationCount: width)
        self.url = url
    }

    func send(_ count: Int) -> Int {
        let tally = Tally(count)
        let request = GetSmall(api: url.absoluteString, tally: tally)
        for _ in 0..<count { queue.addOperation(RequestOperation(request, service: service)) }
        queue.waitUntilAllOperationsAreFinished()
        return tally.right
    }
}

private struct GetSmall: APIRequest {
    typealias Item = NetworkResponse
    let api: String
    let tally: Tally

    func item(from response: NetworkResponse) -> NetworkResponse {
        tally.ended(response.body.count)
        return response
    }
}

extension TransportConfiguration {
    /// A configuration that ignores the proxy of the environment.
    static var direct: TransportConfiguration { TransportConfiguration(proxy: .none) }
}
