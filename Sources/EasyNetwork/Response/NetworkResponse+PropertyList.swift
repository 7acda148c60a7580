import Foundation

extension NetworkResponse {
    /// The body as a property list, in XML or in binary: `[String: Any]`, `[Any]`, `String`, `Bool`, `Int`, `UInt64`,
    /// `Double`, `Date` or `Data`.
    ///
    /// It is read by the package itself: Foundation's readers on Linux overflow the stack at deep nesting and at lists that
    /// hold themselves, and crash at some that are broken.
    ///
    /// - Throws: ``NetworkError/Code/cannotParseResponse`` when the body is empty, no property list, nested deeper than
    ///   128 levels, or has a key twice.
    public func propertyList() throws(NetworkError) -> Any {
        guard !body.isEmpty else { throw emptyBodyError(wanted: "a property list") }
        do throws(PropertyListFailure) {
            if body.starts(with: Array("bplist".utf8)) { return try BinaryPropertyList.value(of: body) }
            return try XMLPropertyList.value(
                of: body,
                charset: headers["Content-Type"].flatMap(MediaType.init)?.charset
            )
        } catch let cause {
            let message = "the body is no property list: \(cause.reason)"
            throw error(.cannotParseResponse, message: message, underlying: cause.underlying)
        }
    }

    func decodePropertyList<T: Decodable>(_ type: T.Type) throws(NetworkError) -> T {
        let tree = try propertyList()
        do {
            // Foundation gets only what it has written itself.
            let data = try PropertyListSerialization.data(fromPropertyList: tree, format: .binary, options: 0)
            return try PropertyListDecoder().decode(type, from: data)
        } catch let error as DecodingError {
            let message = DecodingFailure.message(for: error, in: tree)
            throw self.error(.cannotParseResponse, message: message, underlying: error)
        } catch {
            throw mappingError(error)
        }
    }
}

/// Why something is no property list.
struct PropertyListFailure: Error {
    let reason: String
    var underlying: (any Error)?

    init(_ reason: String, underlying: (any Error)? = nil) {
        self.reason = reason
        self.underlying = underlying
    }

    static let maximumDepth = 128

    static let tooDeep = PropertyListFailure("it is nested deeper than \(maximumDepth) levels")
    static let broken = PropertyListFailure("an object of it is broken")
}
