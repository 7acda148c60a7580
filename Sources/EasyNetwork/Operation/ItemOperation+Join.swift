/// Creates an operation whose request is made from the items of several other operations.
///
/// ```swift
/// let order = join(signIn, cart) { session, cart in PlaceOrder(token: session.token, items: cart.items) }
/// NetworkQueue.shared.addOperations([signIn, cart, order])
/// ```
///
/// The operation depends on all of them, as with ``ItemOperation/then(_:)``. If one fails, it ends with
/// ``NetworkError/Code/dependencyFailed`` and sends nothing. It uses the host of the first operation.
///
/// - Parameters:
///   - first: an operation that ends with an item, and whose host is used.
///   - second: another operation.
///   - other: further operations.
///   - next: called once, on a thread of the queue, when all operations have succeeded and before the new one waits for
///     its turn. If `next` throws, the error is the new operation's error.
public func join<First: Sendable, Second: Sendable, each Other: Sendable, Next: APIRequest>(
    _ first: ItemOperation<First>,
    _ second: ItemOperation<Second>,
    _ other: repeat ItemOperation<each Other>,
    next: @escaping @Sendable (First, Second, repeat each Other) throws -> Next
) -> RequestOperation<Next> {
    let (firstItem, secondItem) = (first.itemOfDependency, second.itemOfDependency)
    let otherItems = (repeat (each other).itemOfDependency)
    let operation = first.nextOperation { try next(firstItem(), secondItem(), repeat (each otherItems)()) }
    operation.addDependency(second)
    repeat operation.addDependency(each other)
    return operation
}
