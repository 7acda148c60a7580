/// Runs pieces of work one after the other, in the order in which they are added, and without a lock held.
///
/// Whoever comes when nobody is at it runs what there is on the own thread, and what others add meanwhile.
final class TurnTaking: Sendable {
    private let state = Locked<(isBusy: Bool, waiting: [@Sendable () -> Void])>((false, []))

    /// Adds work, also under the lock that decides its place in the order. Call ``run()`` when that is open.
    func add(_ work: @escaping @Sendable () -> Void) {
        state.withLock { $0.waiting.append(work) }
    }

    /// Runs what has been added, unless somebody else is at it.
    func run() {
        let isFirst = state.withLock { state in
            defer { state.isBusy = true }
            return !state.isBusy
        }
        guard isFirst else { return }
        while let works = next() {
            for work in works { work() }
        }
    }

    private func next() -> [@Sendable () -> Void]? {
        state.withLock { state in
            state.isBusy = !state.waiting.isEmpty
            return state.isBusy ? state.waiting.take() : nil
        }
    }
}
