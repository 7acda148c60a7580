import Foundation
import Testing

@testable import EasyNetwork

/// A job that counts its executions and runs the given work.
final class TestJob: NetworkOperation, @unchecked Sendable {
    private let executions = Locked(0)
    private let work: @Sendable (TestJob) -> Void

    /// - Parameter work: Runs in `execute()`. By default the job finishes on another thread.
    init(_ work: @escaping @Sendable (TestJob) -> Void = { job in DispatchQueue.global().async { job.finish() } }) {
        self.work = work
    }

    /// A job that counts in `occupancy` while it runs, and finishes on another thread.
    convenience init(_ occupancy: Occupancy, also work: @escaping @Sendable () -> Void = {}) {
        self.init { job in
            occupancy.enter()
            work()
            DispatchQueue.global().async {
                occupancy.leave()
                job.finish()
            }
        }
    }

    var executionCount: Int { executions.withLock { $0 } }

    override func execute() {
        executions.withLock { $0 += 1 }
        work(self)
    }
}

/// Counts how many jobs run at once.
final class Occupancy: Sendable {
    private let state = Locked((now: 0, most: 0))

    func enter() {
        state.withLock { state in
            state.now += 1
            state.most = max(state.most, state.now)
        }
    }

    func leave() { state.withLock { $0.now -= 1 } }
    var now: Int { state.withLock { $0.now } }
    var most: Int { state.withLock { $0.most } }
}
