import Foundation

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
            if !hasOutcome { await regainSlot() }
        }
        throw NetworkError(code: .cancelled)
    }

    /// Waits until a message can be sent: not during a pause, and with a slot.
    ///
    /// - Parameters:
    ///   - time: the time before which no message is sent. Only the end of the operation interrupts that wait.
    ///   - mayYield: whether the slot can be given to an urgent job from now on.
    ///   - resumed: returns the promise of the end of the pause; `nil` without a pause.
    final func waitForTurn(
        until time: TimeInterval,
        mayYield: Bool,
        _ resumed: () -> Promise<Void>?
    ) async throws(NetworkError) {
        repeat {
            try await waitWithoutSlot(until: time, resumed)
            if !setMayYield(mayYield) { await regainSlot() }
            if hasOutcome { throw NetworkError(code: .cancelled) }
        } while resumed() != nil
    }

    private func regainSlot() async {
        let slot = Promise<Void>()
        reclaimSlot(if: { true }) { slot.set() }
        await slot.wait()
    }
}
