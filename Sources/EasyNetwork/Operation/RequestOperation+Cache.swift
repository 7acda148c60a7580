import Foundation

/// The cache's item, before the network's.
extension RequestOperation {
    /// Whether the operation goes past the cache this once: nothing is read from there, whatever the request's policy says,
    /// and nothing stored is confirmed. The answer is stored as the policy says. Default false.
    ///
    /// ```swift
    /// let reload = RequestOperation(GetNews())
    /// reload.ignoresCache = true
    /// NetworkQueue.shared.addOperation(reload)
    /// ```
    ///
    /// Set it before the operation is added to a queue. It joins only operations that ignore the cache as well
    /// (``RepeatPolicy/join``).
    public final var ignoresCache: Bool {
        get { option({ $0.ignoresCache }) }
        set { setOption(newValue) { swap(&$0.ignoresCache, &$1) } }
    }

    /// The item of the cache when the network's was to follow; nil when there was none. It stays when that has come.
    public final var cachedItem: Request.Item? {
        state.withLock { $0.early.item }.map(Self.typedItem)
    }

    /// The items as they come: the cache's, if there is one that the network's will follow, then the operation's own.
    ///
    /// ```swift
    /// NetworkQueue.shared.addOperation(operation)
    /// for try await news in operation.values { show(news) }
    /// ```
    ///
    /// This does not start the operation. Several tasks may iterate, each its own sequence. A task that stops before the end,
    /// or is cancelled, cancels the operation if no other task waits for it, here or for ``value``.
    ///
    /// - Throws: while it is iterated, the operation's error.
    public final var values: AsyncThrowingStream<Request.Item, any Error> {
        AsyncThrowingStream { continuation in
            let listener = { @Sendable (item: any Sendable) in _ = continuation.yield(Self.typedItem(item)) }
            let (number, item) = state.withLock { state in
                let number = state.waiters.enter().number
                return (number, state.early.listen(listener, number: number))
            }
            if let item { listener(item) }
            continuation.onTermination = { [weak self] _ in
                // When all has ended, there is nothing to cancel.
                let left = self?.state.withLock { ($0.waiters.leave(number).wasLast, $0.early.leave(number)) }
                if left?.0 == true { self?.cancel() }
            }
            let end = StreamEnd(continuation)
            whenFinished { [weak self] in
                self?.resumeWaiters()
                end.finish(self?.result)
            }
        }
    }

    /// Hands over the cache's item; what follows waits until that is done.
    final func deliverEarly(_ item: any Sendable) {
        let hasDelegate = delegate != nil
        let (delivery, listeners) = state.withLock { $0.early.take(item, hasDelegate: hasDelegate) }
        for listener in listeners { listener(item) }
        guard let delivery else { return }
        deliveryQueue.async {
            // Taken only now: they may have been released before.
            let closure = self.state.withLock { $0.early.set(nil) }
            if !self.isCancelled {
                self.delegate?.requestOperationDidLoadFromCache(self)
                closure?(item)
            }
            delivery.end()
        }
    }
}

/// The end of a sequence; also when the operation is released and never ends.
private final class StreamEnd<Item: Sendable>: Sendable {
    private let continuation: AsyncThrowingStream<Item, any Error>.Continuation

    init(_ continuation: AsyncThrowingStream<Item, any Error>.Continuation) {
        self.continuation = continuation
    }

    deinit {
        continuation.finish()
    }

    func finish(_ result: Result<Item, NetworkError>?) {
        if let result { continuation.yield(with: result.mapError { $0 as any Error }) }
        continuation.finish()
    }
}

/// An item that comes before the last one, and who is told of it: a value behind its owner's lock.
struct EarlyItem: Sendable {
    typealias Item = any Sendable
    typealias Listener = @Sendable (Item) -> Void

    private(set) var closure: (@Sendable (Item) -> Void)?
    private(set) var item: Item?
    /// Over when all have been told; nil when nobody is.
    private var delivery: OneShot?
    private var listeners: [Int: Listener] = [:]
    /// Whether it is too late for an item.
    private var isOver = false

    /// - Returns: the closure that is not kept: the one before, or, set too late, this one.
    mutating func set(_ closure: (@Sendable (Item) -> Void)?) -> (@Sendable (Item) -> Void)? {
        guard closure == nil || !isOver else { return closure }
        defer { self.closure = closure }
        return self.closure
    }

    /// - Returns: the item, if it has come already.
    mutating func listen(_ listener: @escaping Listener, number: Int) -> Item? {
        if item == nil, !isOver { listeners[number] = listener }
        return item
    }

    mutating func leave(_ number: Int) -> Listener? {
        listeners.removeValue(forKey: number)
    }

    /// The item has come.
    ///
    /// - Returns: what is to end when all have been told, nil when nobody is to be told; and the sequences.
    mutating func take(_ item: Item, hasDelegate: Bool) -> (delivery: OneShot?, listeners: [Listener]) {
        guard !isOver else { return (nil, []) }
        self.item = item
        if closure != nil || hasDelegate { delivery = OneShot() }
        defer { listeners = [:] }
        return (delivery, Array(listeners.values))
    }

    /// The last item is there.
    ///
    /// - Returns: what to wait for before it is told.
    mutating func end() -> OneShot? {
        isOver = true
        return delivery
    }

    /// - Returns: the closure, to be released outside the lock.
    mutating func close() -> (@Sendable (Item) -> Void)? {
        isOver = true
        return closure.take()
    }
}
