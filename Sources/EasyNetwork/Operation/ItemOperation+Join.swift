/// An operation whose request is made from the items of several others.
///
/// ```swift
/// let order = join(signIn, cart) { session, cart in PlaceOrder(token: session.token, items: cart.items) }
/// NetworkQueue.shared.addOperations([signIn, cart, order])
/// ```
///
/// It depends on all of them, as with ``ItemOperation/then(_:)``: if one fails, it ends with
/// ``NetworkError/Code/dependencyFailed`` and sends nothing. It goes to the host of the first.
///
/// - Parameters:
///   - first: an operation that makes an item, and whose host is used.
///   - second: another operation.
///   - other: further operations.
///   - next: called once, on a thread of the queue, when all have succeeded and before the operation waits for its
///     turn. An error that it throws is the operation's error.
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
