import Foundation

@testable import EasyNetwork

extension Operation {
    /// Returns when the operation has finished.
    func finished() async {
        await withCheckedContinuation { continuation in
            FinishWatcher.watch(self) { continuation.resume() }
        }
    }
}

/// Something that a test waits for, or lets others wait for.
final class Gate: Sendable {
    private let state = Locked<(isOpen: Bool, waiting: [@Sendable () -> Void])>((false, []))

    func open() {
        let waiting = state.withLock { state in
            state.isOpen = true
            return state.waiting.take()
        }
        for action in waiting { action() }
    }

    /// Calls `action` when the gate is open, on the thread that opens it.
    func whenOpen(_ action: @escaping @Sendable () -> Void) {
        let isOpen = state.withLock { state in
            if !state.isOpen { state.waiting.append(action) }
            return state.isOpen
        }
        if isOpen { action() }
    }

    func opened() async {
        await withCheckedContinuation { continuation in whenOpen { continuation.resume() } }
    }
}
