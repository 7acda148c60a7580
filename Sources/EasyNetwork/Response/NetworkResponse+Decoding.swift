import Foundation

extension NetworkResponse {
    /// The body as JSON: `[String: Any]`, `[Any]`, `String`, `NSNumber` or `NSNull`. A bare value is JSON too (RFC 8259,
    /// section 2).
    ///
    /// - Throws: ``NetworkError/Code/cannotParseResponse`` when the body is empty or no JSON.
    public func json() throws(NetworkError) -> Any {
        guard !body.isEmpty else { throw emptyBodyError(wanted: "JSON") }
        do {
            return try JSONSerialization.jsonObject(with: body, options: .fragmentsAllowed)
        } catch let cause {
            let reason = (cause as NSError).userInfo[NSDebugDescriptionErrorKey] as? String
            let message = DecodingFailure.noJSON(headers) + (reason.map { ": \($0.withoutFullStop)" } ?? "")
            throw error(.cannotParseResponse, message: message, underlying: cause)
        }
    }

    /// The body as a value of the type, read by ``decoder``; by default by a `JSONDecoder` that takes dates as text of RFC
    /// 3339, or as numbers in its own way: seconds since 2001.
    ///
    /// An empty body is the empty value of an ``EmptyRepresentable`` type, as nil of an optional, where ``emptyBody`` allows
    /// it.
    ///
    /// - Throws: ``NetworkError/Code/cannotParseResponse`` with a message that names the place, as in
    ///   `users[3].age: expected Int but found String`. Its `underlying` is the `DecodingError`.
    public func decode<T: Decodable>(_ type: T.Type) throws(NetworkError) -> T {
        guard let decoder else { return try decode(type, using: .standard()) }
        return try decode(type, with: decoder)
    }

    /// The body as a value of the type, read by a decoder of one's own.
    ///
    /// - Throws: what the decoder throws; what is no ``NetworkError`` becomes ``NetworkError/Code/cannotParseResponse``.
    public func decode<T: Decodable>(_ type: T.Type, with decoder: some ResponseDecoder) throws(NetworkError) -> T {
        if let empty = emptyItem(type) { return empty }
        // Without its decoder, so that one that calls `decode(_:)` does not call itself for ever.
        var plain = self
        plain.decoder = nil
        do {
            return try decoder.decode(type, from: plain)
        } catch let cause as DecodingError {
            let message = DecodingFailure.message(for: cause, in: try? json())
            throw error(.cannotParseResponse, message: message, underlying: cause)
        } catch {
            throw mappingError(error)
        }
    }

    /// The body as a value of the type, read from JSON by a decoder of one's own, with its strategies for dates and keys.
    ///
    /// - Throws: as ``decode(_:)``.
    public func decode<T: Decodable>(_ type: T.Type, using decoder: JSONDecoder) throws(NetworkError) -> T {
        if let empty = emptyItem(type) { return empty }
        guard !body.isEmpty else { throw emptyBodyError(wanted: "JSON") }
        do {
            return try decoder.decode(type, from: body)
        } catch let cause {
            throw mappingError(cause)
        }
    }

    /// What the first of several readers makes of this answer that can make anything of it.
    ///
    /// ```swift
    /// let answer = try response.decodeFirst([
    ///     { Answer.user(try $0.decode(User.self)) },
    ///     { Answer.notice(try $0.text()) },
    /// ])
    /// ```
    ///
    /// - Throws: ``NetworkError/Code/cannotParseResponse`` when none can, with the messages of all; `underlying` is the error
    ///   of the first.
    public func decodeFirst<T>(_ readers: [(NetworkResponse) throws -> T]) throws(NetworkError) -> T {
        var errors: [NetworkError] = []
        for reader in readers {
            do {
                return try reader(self)
            } catch {
                errors.append(mappingError(error))
            }
        }
        throw noneFits(errors)
    }

    /// - Parameter errors: one for each way that was tried.
    func noneFits(_ errors: [NetworkError]) -> NetworkError {
        guard let first = errors.first else {
            return error(.cannotParseResponse, message: "there is nothing to read the answer with")
        }
        guard errors.count > 1 else { return first }
        let reasons = errors.map { $0.message ?? $0.description.withoutFullStop }
        let message = "nothing fits: " + reasons.joined(separator: "; ")
        return error(.cannotParseResponse, message: message, underlying: first)
    }

    /// Whether an empty body is an item too, for this answer.
    var mayBeEmpty: Bool {
        emptyBody.allows(statusCode: statusCode, method: requestMethod)
    }

    func emptyBodyError(wanted: String) -> NetworkError {
        let message =
            mayBeEmpty
            ? "the body is empty, which only an optional item or EmptyItem can be made from"
            : "the body is empty, not \(wanted)"
        return error(.cannotParseResponse, message: message)
    }

    private func emptyItem<T>(_ type: T.Type) -> T? {
        guard body.isEmpty, let type = type as? any EmptyRepresentable.Type, mayBeEmpty else { return nil }
        return type.emptyValue as? T
    }
}
