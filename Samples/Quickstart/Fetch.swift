import Dispatch
import EasyNetwork
import EasyNetworkDiagnostics
import Foundation

/// Fetches URLs as jobs, and prints the status, size and duration of each.
enum Fetch {
    /// - Parameter timeline: Records the jobs. `nil` records nothing.
    /// - Returns: Whether every URL was fetched successfully.
    static func run(_ addresses: [String], _ timeline: Timeline?) async -> Bool {
        let queue = NetworkQueue(name: "Quickstart")
        timeline?.record(queue)
        let interrupt = cancelOnInterrupt(queue)
        defer { interrupt.cancel() }
        let operations = addresses.map { address in
            let operation = FetchOperation(GetAnswer(api: address))
            // The operation releases this closure after calling it, so the reference cycle ends.
            operation.success = { response in
                let line = "\(response.statusCode)  \(response.body.count) bytes  \(operation.milliseconds) ms"
                print("\(line)  \(address)")
            }
            operation.failure = { error in print("\(address): \(error.localizedDescription)") }
            return operation
        }
        queue.addOperations(operations)
        var isFine = true
        for operation in operations {
            do { _ = try await operation.value } catch { isFine = false }
        }
        return isFine
    }

    private static func cancelOnInterrupt(_ queue: NetworkQueue) -> any DispatchSourceSignal {
        // By default, the signal would end the process before the source handles it.
        signal(SIGINT, SIG_IGN)
        let source = DispatchSource.makeSignalSource(signal: SIGINT, queue: .global())
        source.setEventHandler {
            print("interrupted: cancelling all jobs")
            queue.cancelAllOperations()
        }
        source.activate()
        return source
    }
}

/// A request that measures its duration.
private nonisolated final class FetchOperation: RequestOperation<GetAnswer>, @unchecked Sendable {
    // Sendable because `began` is written once, before it is read.
    private var began: TimeInterval = 0
    private let clock = SystemClock()

    var milliseconds: Int { Int((clock.now - began) * 1_000) }

    override func execute() {
        began = clock.now
        super.execute()
    }
}
