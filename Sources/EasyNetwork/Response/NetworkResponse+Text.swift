import Foundation

extension NetworkResponse {
    /// The body as text, in the charset that `Content-Type` names, UTF-8 when it names none.
    ///
    /// A byte order mark beats the header and is taken off, as browsers do. `utf-16` without a mark is little-endian.
    /// Known are utf-8, utf-16 (le, be), us-ascii, iso-8859-1, iso-8859-2, windows-1250 to windows-1254, shift_jis
    /// and macintosh, under their usual names, and all charsets of the system's: GBK, GB18030, Big5, EUC-JP, EUC-KR,
    /// KOI8-R, the rest of ISO 8859, and more. On Linux these are `iconv`'s, of which some systems install a part only.
    ///
    /// - Throws: ``NetworkError/Code/cannotParseResponse`` for a charset that is not known, and for bytes that are no text
    ///   in the charset; the message names it.
    public func text() throws(NetworkError) -> String {
        if let (charset, mark) = Charset.byteOrderMark(of: body) {
            return try text(body.dropFirst(mark), charset, name: charset.name)
        }
        guard let name = headers["Content-Type"].flatMap(MediaType.init)?.charset else {
            return try text(body, .utf8, name: "utf-8")
        }
        guard let charset = Charset(name: name) else {
            throw error(.cannotParseResponse, message: "the charset \"\(name.prefix(40))\" is not known")
        }
        return try text(body, charset, name: name)
    }

    private func text(_ bytes: Data, _ charset: Charset, name: String) throws(NetworkError) -> String {
        if let text = charset.decode(bytes) { return text }
        throw error(.cannotParseResponse, message: "the body is no text in the charset \(name)")
    }
}
