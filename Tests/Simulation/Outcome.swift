import EasyNetwork
import Foundation

/// What became of a history.
public struct Outcome: Sendable {
    public let seed: UInt64
    /// The law that was broken, and how; nil when all were kept.
    public let law: String?
    public let detail: String
    public let trace: [String]
    /// The kinds of jobs with their ends and faults, and what users did.
    public let covered: Set<String>
    public let stepCount: Int
}

extension History {
    /// Lives it.
    func live(isTraced: Bool = false) -> Outcome {
        let folder = Self.newFolder()
        let hasFiles = !mails.isEmpty || jobs.contains { $0.kind == .download }
        if hasFiles { try? FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true) }
        let world = World(self, isTraced: isTraced, folder: folder)
        WorkQueue.simulate(on: world.loop) { world.live() }
        if hasFiles { try? FileManager.default.removeItem(atPath: folder) }
        return Outcome(
            seed: seed,
            law: world.violation?.law,
            detail: world.violation?.detail ?? "",
            trace: world.lines,
            covered: world.covered,
            stepCount: world.loop.stepCount
        )
    }

    private static let lastFolder = Locked(0)

    /// A name that no other history has: what one leaves behind is not the next one's.
    private static func newFolder() -> String {
        let memory = "/dev/shm"
        let base = access(memory, W_OK) == 0 ? memory : NSTemporaryDirectory()
        let number = lastFolder.withLock { last in
            last += 1
            return last
        }
        return base + "/EasyNetwork-simulation-\(getpid())-\(number)"
    }
}
