import Dispatch

/// A serial queue that processes elements in batches. It processes the first element at once, and while more arrive, a
/// batch every two milliseconds. Waking a thread for each element would cost more than writing a line of a log.
package final class BatchQueue<Element: Sendable>: Sendable {
    /// A closure that processes a batch. It is called on the queue, with at least one element.
    package typealias Work = @Sendable ([Element]) -> Void

    private let queue: DispatchQueue
    /// The waiting elements, and whether the next batch has been scheduled.
    private let state = Locked<(elements: [Element], isAwake: Bool)>(([], false))

    package init(label: String) {
        queue = DispatchQueue(label: label, autoreleaseFrequency: .workItem)
    }

    /// Adds an element.
    ///
    /// - Parameter work: The closure that processes batches: the same one in each call. The queue keeps it until the
    ///   last batch has been processed.
    package func add(_ element: Element, _ work: @escaping Work) {
        let isFirst = state.withLock { state in
            state.elements.append(element)
            defer { state.isAwake = true }
            return !state.isAwake
        }
        if isFirst { queue.async { self.takeBatch(work) } }
    }

    /// Calls `action` on the queue when all elements that were added before have been processed.
    package func settle(_ work: @escaping Work, _ action: @escaping @Sendable () -> Void) {
        queue.async {
            let elements = self.state.withLock { $0.elements.take() }
            if !elements.isEmpty { work(elements) }
            action()
        }
    }

    private func takeBatch(_ work: @escaping Work) {
        let elements = state.withLock { state in
            if state.elements.isEmpty { state.isAwake = false }
            return state.elements.take()
        }
        guard !elements.isEmpty else { return }
        work(elements)
        queue.asyncAfter(deadline: .now() + .milliseconds(2)) { self.takeBatch(work) }
    }
}
