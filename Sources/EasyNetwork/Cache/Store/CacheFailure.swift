/// Why the cache has no entry to give, or did not keep one.
enum CacheFailure: Error, Hashable, Sendable {
    /// There is none of that key.
    case absent
    /// It was not used for longer than the limit allows, and has been removed.
    case expired
    /// The file is cut or altered, and has been removed.
    case damaged
    /// A file of somebody else's, or of another key, lay in its place, and has been removed.
    case foreign
    /// A file in another version's form lay in its place, and has been removed.
    case otherVersion
    /// It is longer than all that the cache may hold.
    case tooLarge
    /// It was to be kept on disk only, by a cache that has none.
    case noDisk
    /// So much waits to be written that this was not added.
    case busy
    /// The header cannot be written as JSON: a date that is no number.
    case unencodable
    /// The system refused.
    case system(CacheFileError)
}

/// What the system said to an operation on a file.
struct CacheFileError: Error, Hashable, Sendable {
    enum Operation: Hashable, Sendable {
        case list, look, read, create, write, rename, remove, touch, makeDirectory
    }

    var operation: Operation
    /// The number in errno.
    var code: Int32
}
