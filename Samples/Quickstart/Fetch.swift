import Dispatch
import EasyNetwork
import EasyNetworkDiagnostics
import Foundation

/// Fetches URLs as jobs, and prints status, bytes and time of each.
enum Fetch {
    /// - Parameter timeline: records the jobs; may be nil.
    /// - Returns: whether every URL answered with success.
    static func run(_ addresses: [String], _ timeline: Timeline?) async -> Bool {
        let queue = NetworkQueue(name: "Quickstart")
        timeline?.record(queue)
        let interrupt = cancelOnInterrupt(queue)
        defer { interrupt.cancel() }
        let operations = addresses.map { address in
            let operation = FetchOperation(GetAnswer(api: address))
            // The closure is released after its call, and with it the operation.
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
        // By default the signal would end the process before the source handles it.
        signal(SIGINT, SIG_IGN)
        let source = DispatchSource.makeSignalSource(signal: SIGINT, queue: .global())
        source.setEventHandler {
            print("interrupted: cancelling what runs and what waits")
            queue.cancelAllOperations()
        }
        source.activate()
        return source
    }
}

/// A request that measures its time.
private nonisolated final class FetchOperation: RequestOperation<GetAnswer>, @unchecked Sendable {
    // Sendable because `began` is written once, before its readers start.
    private var began: TimeInterval = 0
    private let clock = SystemClock()

    var milliseconds: Int { Int((clock.now - began) * 1_000) }

    override func execute() {
        began = clock.now
        super.execute()
    }
}
