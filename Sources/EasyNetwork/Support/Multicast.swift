/// Sends values to any number of asynchronous sequences. Releasing the multicast ends the sequences.
///
/// Sending only enqueues a value. The owner can therefore send values and begin sequences under a lock that orders
/// them.
package final class Multicast<Value: Sendable>: Sendable {
    typealias Reader = (topic: String?, continuation: AsyncStream<Value>.Continuation)

    let state = Locked<(readers: [Int: Reader], lastNumber: Int, isOver: Bool)>(([:], 0, false))

    package init() {}

    deinit {
        finish()
    }

    /// Returns a sequence of the values from now on.
    ///
    /// - Parameters:
    ///   - count: The number of values that are kept for a slow reader: the newest ones.
    ///   - first: A value to deliver before the others, even if the multicast has finished. Defaults to `nil`.
    ///   - topic: The topic of the values to deliver. Defaults to `nil`, for all values.
    package func stream(keeping count: Int = 1, first: Value? = nil, topic: String? = nil) -> AsyncStream<Value> {
        let (stream, continuation) = AsyncStream.makeStream(of: Value.self, bufferingPolicy: .bufferingNewest(count))
        if let first { continuation.yield(first) }
        let number = state.withLock { state -> Int? in
            guard !state.isOver else { return nil }
            state.lastNumber += 1
            state.readers[state.lastNumber] = (topic, continuation)
            return state.lastNumber
        }
        guard let number else {
            continuation.finish()
            return stream
        }
        continuation.whenTerminated { [weak self] in
            self?.state.discard { $0.readers.removeValue(forKey: number) }
        }
        return stream
    }

    package func send(_ value: Value, topics: Set<String> = []) {
        // Yield under the lock, so that all readers receive the values in the same order.
        state.withLock { state in
            for reader in Self.inOrder(state.readers) where reader.topic.map(topics.contains) ?? true {
                reader.continuation.yield(value)
            }
        }
    }

    /// Ends all sequences, and any sequence that is begun later.
    package func finish() {
        let readers = state.withLock { state in
            state.isOver = true
            return exchange(&state.readers, with: [:])
        }
        for reader in Self.inOrder(readers) { reader.continuation.finish() }
    }

    /// Returns the readers, the oldest first. The order of a dictionary differs in each run.
    private static func inOrder(_ readers: [Int: Reader]) -> [Reader] {
        readers.sorted { $0.key < $1.key }.map(\.value)
    }
}

extension AsyncStream.Continuation {
    /// Calls `action` on the ``WorkQueue`` when the stream is no longer read, or has finished.
    ///
    /// `onTermination` itself must not call `action`. When a task is cancelled, Swift calls `onTermination` under a
    /// lock of its own, and a `yield` to that task on another thread waits for this lock. If that thread yields under a
    /// lock which `action` acquires, both would wait forever.
    func whenTerminated(_ action: @escaping @Sendable () -> Void) {
        onTermination = { _ in WorkQueue.shared.add(action) }
    }
}
