import Foundation

#if canImport(FoundationXML)
import FoundationXML
#endif

extension XMLTree {
    /// What is wrong with a document, and where.
    public struct ParseError: Error, Hashable, Sendable {
        public let reason: String
        /// Counted from 1; nil when it is no matter of a place.
        public let line: Int?
        /// Where the parser noticed, counted from 1 in bytes of UTF-8; nil when it is no matter of a place.
        public let column: Int?

        init(_ reason: String, line: Int? = nil, column: Int? = nil) {
            self.reason = reason
            self.line = line
            self.column = column
        }
    }

    /// The root element of a document. Parsed on the caller's thread.
    ///
    /// - Parameters:
    ///   - charset: that of the bytes, when something beside the document names it. Default nil: what the document says
    ///     itself, else UTF-8. The names are those of ``NetworkResponse/text()``.
    ///   - limits: default ``Limits/init(maximumDepth:maximumNodeCount:maximumAttributeCount:)``'s.
    public init(_ document: Data, charset: String? = nil, limits: Limits = Limits()) throws(ParseError) {
        let text = try XMLDocumentText(
            document,
            charset: charset,
            maximumAttributeCount: limits.maximumAttributeCount
        )
        guard text.utf8.contains(where: { $0 > 0x20 }) else { throw ParseError("there is no element") }
        let builder = XMLTreeBuilder(limits)
        let parser = XMLParser(data: text.utf8)
        // Namespaces are worked out by the builder: what the parser tells of those of attributes differs by platform.
        parser.shouldProcessNamespaces = false
        parser.shouldResolveExternalEntities = false
        parser.delegate = builder
        // It says true for documents that are cut as well: what counts is what the builder has.
        _ = parser.parse()
        do throws(ParseError) {
            self = try builder.result()
        } catch {
            throw text.placed(error)
        }
    }
}

extension XMLTree.ParseError: LocalizedError, CustomStringConvertible {
    /// `line 3, column 7: </a> does not close <b>`.
    public var description: String {
        guard let line, let column else { return reason }
        return "line \(line), column \(column): \(reason)"
    }

    public var errorDescription: String? {
        description.prefix(1).uppercased() + description.dropFirst() + "."
    }
}

extension NetworkResponse {
    /// The root element of the body, which is XML.
    ///
    /// The charset is that of a byte order mark, else the one `Content-Type` names, else the one the document declares, else
    /// UTF-8 (RFC 7303, section 3).
    ///
    /// - Parameter limits: default a depth of 128, a million of elements and attributes, and 10,000 attributes of one
    ///   element.
    /// - Throws: ``NetworkError/Code/cannotParseResponse`` when the body is empty, no XML, or beyond the limits, with line
    ///   and column; `underlying` is the ``XMLTree/ParseError``.
    public func xml(limits: XMLTree.Limits = XMLTree.Limits()) throws(NetworkError) -> XMLTree {
        guard !body.isEmpty else { throw emptyBodyError(wanted: "XML") }
        let charset = headers["Content-Type"].flatMap(MediaType.init)?.charset
        do throws(XMLTree.ParseError) {
            return try XMLTree(body, charset: charset, limits: limits)
        } catch let cause {
            throw error(.cannotParseResponse, message: "the body is no XML: \(cause)", underlying: cause)
        }
    }
}

extension APIRequest where Item == XMLTree {
    public func item(from response: NetworkResponse) throws -> Item {
        try response.xml()
    }
}
