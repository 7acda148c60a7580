import EasyNetwork
import Foundation

/// The memory of a waiting `RequestOperation`.
struct WaitingRequests {
    let report: Report
    private let count = 20_000

    func run() {
        report.line("\nA waiting RequestOperation, among \(count) in a suspended queue")
        measure("bare") { RequestOperation(GetThing(id: $0), service: $1) }
        measure("with two closures and a dependency") { id, service in
            let operation = RequestOperation(GetThing(id: id), service: service)
            operation.success = { [weak operation] thing in operation?.name = "\(thing) \(id)" }
            operation.failure = { [weak operation] error in operation?.name = "\(error) \(id)" }
            operation.addDependency(Self.never)
            return operation
        }
    }

    /// A job that is never added.
    private static let never = TrivialJob()

    private func measure(_ name: String, _ make: (Int, EasyNetworkService) -> Operation) {
        guard let before = Memory.settledAllocated else { return }
        let service = EasyNetworkService(HostConfiguration(baseURL: URL(string: "https://example.com/v1")))
        let queue = NetworkQueue()
        queue.isSuspended = true
        for id in 0..<count { queue.addOperation(make(id, service)) }
        let bytes = Double((Memory.settledAllocated ?? before) - before) / Double(count)
        queue.cancelAllOperations()
        queue.waitUntilAllOperationsAreFinished()
        report.line("  " + name.filled(40) + Report.number(bytes, digits: 0).aligned(8) + " bytes")
        report.bar("a waiting RequestOperation, \(name)", bytes, atMost: 3_072, unit: " bytes")
    }
}

private struct GetThing: APIRequest {
    typealias Item = [String]
    let id: Int
    var api: String { "things/\(id)" }
}
