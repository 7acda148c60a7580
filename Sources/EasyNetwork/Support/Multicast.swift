/// Sends values to any number of asynchronous sequences, which end when it is released.
///
/// A value is only enqueued: it may be sent, and a sequence begun, under a lock of the owner that orders them.
package final class Multicast<Value: Sendable>: Sendable {
    typealias Reader = (topic: String?, continuation: AsyncStream<Value>.Continuation)

    let state = Locked<(readers: [Int: Reader], lastNumber: Int, isOver: Bool)>(([:], 0, false))

    package init() {}

    deinit {
        finish()
    }

    /// A sequence of the values from now on.
    ///
    /// - Parameters:
    ///   - count: how many values are kept for a slow reader: the newest.
    ///   - first: comes before them, also when there are no more. Default nil.
    ///   - topic: leaves out the values of other topics. Default nil: it has all values.
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
            // Released outside the lock.
            let reader = self?.state.withLock { $0.readers.removeValue(forKey: number) }
            withExtendedLifetime(reader) {}
        }
        return stream
    }

    package func send(_ value: Value, topics: Set<String> = []) {
        // Under the lock, so that all readers get the values in one order.
        state.withLock { state in
            for reader in Self.inOrder(state.readers) where reader.topic.map(topics.contains) ?? true {
                reader.continuation.yield(value)
            }
        }
    }

    /// Ends the sequences, and those that are begun later.
    package func finish() {
        let readers = state.withLock { state in
            state.isOver = true
            return exchange(&state.readers, with: [:])
        }
        for reader in Self.inOrder(readers) { reader.continuation.finish() }
    }

    /// The oldest first: the order in which a dictionary has its values is another one in each run.
    private static func inOrder(_ readers: [Int: Reader]) -> [Reader] {
        readers.sorted { $0.key < $1.key }.map(\.value)
    }
}

extension AsyncStream.Continuation {
    /// Calls `action` on the ``WorkQueue`` when the stream is not read any more, or has finished.
    ///
    /// Not in place, as `onTermination` is called: with a task that is cancelled that happens under a lock of Swift's,
    /// for which a `yield` to the task waits on another thread. If that yields under a lock which `action` takes, both
    /// would wait forever.
    func whenTerminated(_ action: @escaping @Sendable () -> Void) {
        onTermination = { _ in WorkQueue.shared.add(action) }
    }
}
