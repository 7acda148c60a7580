/// Another form of the resource at an address, such as a thumbnail of an image: made of the whole one, and kept in
/// memory beside it.
///
/// ```swift
/// let beginning = ResourceVariant<String>("beginning") { text in String(text.prefix(80)) }
///
/// func show(_ url: URL, from texts: ResourceLoader<String>) async throws {
///     print(try await texts.resource(at: url, variant: beginning))
/// }
/// ```
///
/// All variants of an address share one message and one decoding. The whole resource is kept in memory only if somebody
/// asks for it as well; while it is there, a variant is made of it without a message.
public struct ResourceVariant<Resource: Sendable>: Sendable {
    let key: String
    let make: @Sendable (Resource) throws -> Resource

    /// Creates a variant.
    ///
    /// - Parameters:
    ///   - key: tells it from other variants of the same address. Two with the same key count as one: put sizes into
    ///     it.
    ///   - make: makes it of the whole resource. Called on a background thread, once for all who wait for it, and not
    ///     when all receipts were cancelled. It counts among those that decode. An error that it throws is the error of
    ///     the variant alone.
    public init(_ key: String, make: @escaping @Sendable (Resource) throws -> Resource) {
        self.key = key
        self.make = make
    }
}
