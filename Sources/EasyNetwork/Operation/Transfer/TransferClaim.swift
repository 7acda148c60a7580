import Foundation

/// The operations that use a file of a transfer.
extension NetworkOperation {
    /// The operations that hold a file, by its path, each with a promise of its release. A claim excludes other
    /// operations of this process. The lock of the file excludes other processes, but doesn't show that an operation is
    /// about to release it.
    private static let claims = Locked<[String: (owner: NetworkOperation, released: Promise<Void>)]>([:])

    /// Returns whether no operation of this process holds the file.
    static func isFreeForTransfer(_ file: String) -> Bool { claims.withLock { $0[file] == nil } }

    /// Takes the file. If an operation that has ended still holds it, waits until it is released.
    ///
    /// - Parameter afterEnd: whether the operation can take the file although it has ended. Defaults to `false`.
    /// - Returns: `false` if another operation holds the file, or this one has ended.
    final func claimTransfer(_ file: String, afterEnd: Bool = false) async -> Bool {
        while afterEnd || !hasOutcome {
            let other = Self.claims.withLock { claims in
                let other = claims[file]
                if other == nil { claims[file] = (self, Promise()) }
                return other
            }
            guard let other else { return true }
            guard other.owner.hasOutcome, !Task.isCancelled else { return false }
            await other.released.wait()
        }
        return false
    }

    final func releaseTransfer(_ file: String) {
        Self.claims.withLock { $0.removeValue(forKey: file) }?.released.set(())
    }
}

/// The waits of a transfer.
extension ServiceOperation {
    final var clock: any NetworkClock { callGroup.host.settings.clock }

    /// Waits without a slot during a pause, and until a time.
    ///
    /// - Parameter resumed: returns the promise of the end of the pause; `nil` without a pause.
    final func waitWithoutSlot(until time: TimeInterval, _ resumed: () -> Promise<Void>?) async throws(NetworkError) {
        while !hasOutcome {
            let resumed = resumed()
            guard resumed != nil || time > clock.now else { return }
            // A call may have requested the slot again, after a delay.
            forgoSlot()
            if let resumed { await resumed.wait() } else { await clock.sleep(time - clock.now) }
            if !hasOutcome { await waitForSlot() }
        }
        throw NetworkError(code: .cancelled)
    }

    /// Waits until a message can be sent: not during a pause, and with a slot.
    ///
    /// - Parameters:
    ///   - time: the time before which no message is sent. Only a pause interrupts that wait.
    ///   - mayYield: whether the slot can be given to an urgent job from now on.
    ///   - resumed: returns the promise of the end of the pause; `nil` without a pause.
    final func waitForTurn(
        until time: TimeInterval,
        mayYield: Bool,
        _ resumed: () -> Promise<Void>?
    ) async throws(NetworkError) {
        repeat {
            try await waitWithoutSlot(until: time, resumed)
            if !setMayYield(mayYield) { await waitForSlot() }
            if hasOutcome { throw NetworkError(code: .cancelled) }
        } while resumed() != nil
    }

    private func waitForSlot() async {
        let slot = Promise<Void>()
        reclaimSlot(if: { true }) { slot.set() }
        await slot.wait()
    }
}
