import Dispatch

/// A serial queue that works on what comes in batches: on the first element at once, and while more come, every two
/// milliseconds. To wake a thread for each would cost more than a line of a log.
package final class BatchQueue<Element: Sendable>: Sendable {
    /// Called on the queue, with at least one element.
    package typealias Work = @Sendable ([Element]) -> Void

    private static var interval: DispatchTimeInterval { .milliseconds(2) }

    private let queue: DispatchQueue
    /// The elements that wait, and whether the next batch has been scheduled.
    private let state = Locked<(elements: [Element], isAwake: Bool)>(([], false))

    package init(label: String) {
        queue = DispatchQueue(label: label, autoreleaseFrequency: .workItem)
    }

    /// - Parameter work: the same one each time. It is kept until the last batch has been worked on.
    package func add(_ element: Element, _ work: @escaping Work) {
        let isFirst = state.withLock { state in
            state.elements.append(element)
            defer { state.isAwake = true }
            return !state.isAwake
        }
        if isFirst { queue.async { self.takeBatch(work) } }
    }

    /// Calls `action` on the queue when all elements up to now have been worked on.
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
        queue.asyncAfter(deadline: .now() + Self.interval) { self.takeBatch(work) }
    }
}
