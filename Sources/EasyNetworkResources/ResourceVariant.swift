/// Another form of the resource at a URL, such as a thumbnail of an image. It is made from the whole resource and kept
/// in memory next to it.
///
/// ```swift
/// let beginning = ResourceVariant<String>("beginning") { text in String(text.prefix(80)) }
///
/// func show(_ url: URL, from loader: ResourceLoader<String>) async throws {
///     print(try await loader.resource(at: url, variant: beginning))
/// }
/// ```
///
/// All variants of a URL share one message and one decoding. The whole resource is kept in memory only if someone
/// requests it as well. While it is in memory, a variant is made from it without a message.
public struct ResourceVariant<Resource: Sendable>: Sendable {
    let key: String
    let make: @Sendable (Resource) throws -> Resource

    /// Creates a variant.
    ///
    /// - Parameters:
    ///   - key: identifies the variant among the variants of a URL. Variants with the same key are treated as the same,
    ///     so include sizes in the key.
    ///   - make: makes the variant from the whole resource. Called on a background thread, once for all receipts that
    ///     wait for the variant, and not if all receipts were cancelled. It counts toward the loader's
    ///     `maximumDecodeCount`. An error that it throws becomes the error of this variant only.
    public init(_ key: String, make: @escaping @Sendable (Resource) throws -> Resource) {
        self.key = key
        self.make = make
    }
}
