import Foundation

extension NetworkResponse {
    /// Returns the body as JSON: `[String: Any]`, `[Any]`, `String`, `NSNumber` or `NSNull`. A single value is JSON,
    /// too (RFC 8259, section 2). If a key is repeated, its last value counts.
    ///
    /// Mappers and `Decodable` items read the body without creating this tree, several times as fast.
    ///
    /// - Throws: ``NetworkError/Code/cannotParseResponse`` if the body is empty or not JSON. For invalid JSON, the
    ///   message names line and column.
    public func json() throws(NetworkError) -> Any {
        try jsonNode().tree
    }

    /// Returns the body as JSON, from the index that all readers share.
    func jsonNode() throws(NetworkError) -> JSONNode {
        guard !body.isEmpty else { throw emptyBodyError(wanted: "JSON") }
        do {
            return .indexed(try indexedBody.get(), 0)
        } catch {
            throw self.error(.cannotParseResponse, message: noJSON(error), underlying: error)
        }
    }

    /// Returns the body as a string, in the charset of a byte order mark, otherwise the charset in `Content-Type`,
    /// otherwise UTF-8.
    ///
    /// The byte order mark is removed. `utf-16` without a mark is little-endian. Supported charsets are utf-8, utf-16
    /// (le, be), us-ascii, iso-8859-1, iso-8859-2, windows-1250 to windows-1254, shift_jis and macintosh, and all
    /// charsets of the system: GBK, GB18030, Big5, EUC-JP, EUC-KR, KOI8-R, the rest of ISO 8859, and more. On Linux,
    /// the system's charsets are those of `iconv`, and some systems install only a part of them.
    ///
    /// If the charset is unknown, the body is read as UTF-8, provided that all of it is valid.
    ///
    /// - Throws: ``NetworkError/Code/cannotParseResponse`` if any byte is invalid in the charset, or if the charset is
    ///   unknown. The message names the charset.
    public func text() throws(NetworkError) -> String {
        try text(defaultCharset: "utf-8")
    }

    func text(defaultCharset: String) throws(NetworkError) -> String {
        let (text, problem) = readText(defaultCharset: defaultCharset)
        guard let text else { throw error(.cannotParseResponse, message: problem) }
        return text
    }

    /// Returns the body as a string, or the reason why that is impossible. It creates no ``NetworkError``, because that
    /// would search the string for the server's message.
    func readText(defaultCharset: String = "utf-8") -> (text: String?, problem: String) {
        let mark = Charset.byteOrderMark(of: body)
        let name = mark?.charset.name ?? MediaType(headers)?.charset ?? defaultCharset
        guard let charset = mark?.charset ?? Charset(name: name) else {
            // Most unknown names are other names for UTF-8, such as utf8mb4. Text in another charset is hardly ever
            // valid UTF-8.
            return (Charset.utf8.decode(body), "the charset \"\(name.prefix(40))\" is unknown")
        }
        if let text = charset.decode(body.dropFirst(mark?.length ?? 0)) { return (text, "") }
        return (nil, "the body is not valid text in the charset \(name)")
    }

    /// Decodes the body as a value of the type.
    ///
    /// An empty body becomes nil for an optional type if the response is allowed to be empty, see
    /// ``ResponseValidation/allowsEmptyBody``.
    ///
    /// - Parameters:
    ///   - type: the type of the value.
    ///   - decoder: the decoder. Defaults to `nil`, the ``decoder`` of the response. That is by default a `JSONDecoder`
    ///     that reads dates as strings of RFC 3339, or as numbers: seconds since 2001.
    /// - Throws: ``NetworkError/Code/cannotParseResponse`` with a message that names the place, such as
    ///   `users[3].age: expected Int but found String`. Its `underlying` is the `DecodingError`. A ``NetworkError`` of
    ///   the decoder is thrown unchanged.
    public func decode<T: Decodable>(_ type: T.Type, with decoder: ResponseDecoder? = nil) throws(NetworkError) -> T {
        switch (decoder ?? self.decoder)?.format {
        case nil: return try decode(type, using: .standard)
        case .json(let makeDecoder): return try decode(type, using: makeDecoder())
        case .other(let read):
            if let empty = emptyItem(type) { return empty }
            // Remove the decoder, so that it can call `decode(_:)` without endless recursion.
            var plain = self
            plain.decoder = nil
            do {
                let value = try read(type, plain)
                if let value = value as? T { return value }
                let found = "the decoder returned a \(Swift.type(of: value)) instead of a \(type)"
                throw error(.cannotParseResponse, message: found)
            } catch let cause as DecodingError {
                throw error(.cannotParseResponse, message: cause.message(in: node), underlying: cause)
            } catch {
                throw mappingError(error)
            }
        }
    }

    /// Decodes the body with a `JSONDecoder` and its strategies for dates and keys.
    ///
    /// - Throws: see ``decode(_:with:)``.
    public func decode<T: Decodable>(_ type: T.Type, using decoder: JSONDecoder) throws(NetworkError) -> T {
        if let empty = emptyItem(type) { return empty }
        guard !body.isEmpty else { throw emptyBodyError(wanted: "JSON") }
        do {
            return try JSONIndexDecoder.decode(type, from: body, as: decoder, indexedBody)
        } catch let cause {
            throw mappingError(cause)
        }
    }

    /// Returns the value of the first reader that does not throw.
    ///
    /// ```swift
    /// let answer = try response.decodeFirst([
    ///     { Answer.user(try $0.decode(User.self)) },
    ///     { Answer.notice(try $0.text()) },
    /// ])
    /// ```
    ///
    /// - Throws: ``NetworkError/Code/cannotParseResponse`` with the messages of all readers if all of them throw; its
    ///   `underlying` is the error of the first one. The error of a single reader is thrown unchanged.
    public func decodeFirst<T>(_ readers: [(NetworkResponse) throws -> T]) throws(NetworkError) -> T {
        var errors: [NetworkError] = []
        for reader in readers {
            do {
                return try reader(self)
            } catch {
                errors.append(mappingError(error))
            }
        }
        if errors.count == 1 { throw errors[0] }
        let reasons = errors.map { $0.message ?? $0.description.withoutFullStop }
        let message = errors.isEmpty ? "there are no readers" : "all readers failed: " + reasons.joined(separator: "; ")
        throw error(.cannotParseResponse, message: message, underlying: errors.first)
    }

    func emptyBodyError(wanted: String) -> NetworkError {
        let message =
            mayBeEmpty
            ? "the body is empty; use an optional or Void as item for such a response"
            : "the body is empty, not \(wanted)"
        return error(.cannotParseResponse, message: message)
    }

    /// Returns nil as a value of an optional type, for an empty body.
    private func emptyItem<T>(_ type: T.Type) -> T? {
        guard body.isEmpty, let type = type as? any ExpressibleByNilLiteral.Type, mayBeEmpty else { return nil }
        return type.init(nilLiteral: ()) as? T
    }
}
