/// Whether jobs of one queue have ever waited for those of another. Until then no circle can go over two.
enum SchedulerCrossing {
    private static let hasHappened = Locked(false)

    static func note() {
        hasHappened.withLock { $0 = true }
    }

    static var isPossible: Bool {
        hasHappened.withLock { $0 }
    }
}
