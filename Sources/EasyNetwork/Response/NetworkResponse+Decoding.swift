import Foundation

extension NetworkResponse {
    /// The body as JSON: `[String: Any]`, `[Any]`, `String`, `NSNumber` or `NSNull`. A single value is JSON too (RFC
    /// 8259, section 2). Of repeated keys the last one counts.
    ///
    /// Mappers and `Decodable` items read the body without making this tree, several times faster.
    ///
    /// - Throws: ``NetworkError/Code/cannotParseResponse`` if the body is empty or no JSON; then the message names line
    ///   and column.
    public func json() throws(NetworkError) -> Any {
        try JSONNode(jsonIndex()).tree
    }

    /// The index over the body, which is made once for all who ask.
    func jsonIndex() throws(NetworkError) -> JSONIndex {
        guard !body.isEmpty else { throw emptyBodyError(wanted: "JSON") }
        do {
            return try indexedBody.get()
        } catch {
            throw self.error(.cannotParseResponse, message: noJSON(error), underlying: error)
        }
    }

    /// The body as text, in the charset of a byte order mark, else the one in `Content-Type`, else UTF-8.
    ///
    /// The byte order mark is removed. `utf-16` without a mark is little-endian. Supported are utf-8, utf-16 (le, be),
    /// us-ascii, iso-8859-1, iso-8859-2, windows-1250 to windows-1254, shift_jis and macintosh, and all charsets of the
    /// system: GBK, GB18030, Big5, EUC-JP, EUC-KR, KOI8-R, the rest of ISO 8859, and more. On Linux these are those of
    /// `iconv`, of which some systems install only a part.
    ///
    /// Text in a charset that is unknown is read as UTF-8 if all of it is valid.
    ///
    /// - Throws: ``NetworkError/Code/cannotParseResponse`` if any of the bytes are invalid in the charset, or it is
    ///   unknown; the message names it.
    public func text() throws(NetworkError) -> String {
        try text(defaultCharset: "utf-8")
    }

    func text(defaultCharset: String) throws(NetworkError) -> String {
        switch readText(defaultCharset: defaultCharset) {
        case .success(let text): return text
        case .failure(let problem): throw error(.cannotParseResponse, message: problem.message)
        }
    }

    struct TextProblem: Error {
        var message: String
    }

    /// The body as text, or the reason why it is none. Makes no ``NetworkError``, which looks for the server's message
    /// in the text.
    func readText(defaultCharset: String = "utf-8") -> Result<String, TextProblem> {
        let mark = Charset.byteOrderMark(of: body)
        let name = mark?.charset.name ?? MediaType(headers)?.charset ?? defaultCharset
        guard let charset = mark?.charset ?? Charset(name: name) else {
            // Most unknown names are other words for UTF-8, such as utf8mb4, and text in another charset is hardly ever
            // valid in it.
            if let text = Charset.utf8.decode(body) { return .success(text) }
            return .failure(TextProblem(message: "the charset \"\(name.prefix(40))\" is unknown"))
        }
        if let text = charset.decode(body.dropFirst(mark?.length ?? 0)) { return .success(text) }
        return .failure(TextProblem(message: "the body is no text in the charset \(name)"))
    }

    /// The body as a value of the type.
    ///
    /// An empty body is nil for an optional type if the answer may have one, see
    /// ``ResponseValidation/allowsEmptyBody``.
    ///
    /// - Parameters:
    ///   - type: the type of the value.
    ///   - decoder: default nil, the ``decoder`` of the answer, which by default is a `JSONDecoder` that reads dates as
    ///     text of RFC 3339, or as numbers: seconds since 2001.
    /// - Throws: ``NetworkError/Code/cannotParseResponse`` with a message that names the place, as in
    ///   `users[3].age: expected Int but found String`. Its `underlying` is the `DecodingError`. A ``NetworkError`` of
    ///   the decoder is thrown as it is.
    public func decode<T: Decodable>(_ type: T.Type, with decoder: ResponseDecoder? = nil) throws(NetworkError) -> T {
        switch (decoder ?? self.decoder)?.format {
        case nil: return try decode(type, using: .standard)
        case .json(let makeDecoder): return try decode(type, using: makeDecoder())
        case .other(let read): return try decode(type, read)
        }
    }

    private func decode<T: Decodable>(
        _ type: T.Type,
        _ read: (any Decodable.Type, NetworkResponse) throws -> any Decodable
    ) throws(NetworkError) -> T {
        if let empty = emptyItem(type) { return empty }
        // Without its decoder, so that a decoder may call `decode(_:)` without endless recursion.
        var plain = self
        plain.decoder = nil
        do {
            let value = try read(type, plain)
            if let value = value as? T { return value }
            let found = "the decoder made a \(Swift.type(of: value)) instead of a \(type)"
            throw error(.cannotParseResponse, message: found)
        } catch let cause as DecodingError {
            throw error(.cannotParseResponse, message: cause.message(in: node), underlying: cause)
        } catch {
            throw mappingError(error)
        }
    }

    /// The body as a value of the type, read by a `JSONDecoder` with its strategies for dates and keys.
    ///
    /// - Throws: as ``decode(_:with:)``.
    public func decode<T: Decodable>(_ type: T.Type, using decoder: JSONDecoder) throws(NetworkError) -> T {
        if let empty = emptyItem(type) { return empty }
        guard !body.isEmpty else { throw emptyBodyError(wanted: "JSON") }
        do {
            return try JSONIndexDecoder.decode(type, from: body, as: decoder) { () throws(JSONSyntaxError) in
                try indexedBody.get()
            }
        } catch let cause {
            throw mappingError(cause)
        }
    }

    /// The value of the first reader that does not throw.
    ///
    /// ```swift
    /// let answer = try response.decodeFirst([
    ///     { Answer.user(try $0.decode(User.self)) },
    ///     { Answer.notice(try $0.text()) },
    /// ])
    /// ```
    ///
    /// - Throws: ``NetworkError/Code/cannotParseResponse`` with the messages of all readers if all of them throw;
    ///   `underlying` is the error of the first one. The error of a single reader is thrown as it is.
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
        let message = errors.isEmpty ? "there are no readers" : "nothing fits: " + reasons.joined(separator: "; ")
        throw error(.cannotParseResponse, message: message, underlying: errors.first)
    }

    func emptyBodyError(wanted: String) -> NetworkError {
        let message =
            mayBeEmpty
            ? "the body is empty; use an optional or Void as item for such an answer"
            : "the body is empty, not \(wanted)"
        return error(.cannotParseResponse, message: message)
    }

    /// Nil of an optional type, for an empty body.
    private func emptyItem<T>(_ type: T.Type) -> T? {
        guard body.isEmpty, let type = type as? any ExpressibleByNilLiteral.Type, mayBeEmpty else { return nil }
        return type.init(nilLiteral: ()) as? T
    }
}
