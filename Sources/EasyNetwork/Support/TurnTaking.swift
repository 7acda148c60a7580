/// Runs pieces of work one after the other, in the order in which they are brought, and without a lock held.
///
/// Whoever brings one when nobody is at it runs it on the own thread, and what others bring meanwhile.
final class TurnTaking: Sendable {
    private let state = Locked<(isBusy: Bool, waiting: [@Sendable () -> Void])>((false, []))

    func perform(_ work: @escaping @Sendable () -> Void) {
        let isFirst = state.withLock { state in
            state.waiting.append(work)
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
