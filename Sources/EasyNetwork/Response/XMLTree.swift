import Foundation

#if canImport(FoundationXML)
import FoundationXML
#endif

/// An element of an XML document, with its attributes and contents.
///
/// ```swift
/// let feed = try response.xml()
/// for entry in feed.elements("entry", namespace: "http://www.w3.org/2005/Atom") {
///     print(entry["title"]?.text ?? "", entry.attributes["xml:lang"] ?? "")
/// }
/// ```
///
/// Foundation's `XMLParser` reads the document. Comments and processing instructions are omitted, and CDATA becomes
/// text. Only the five entities of XML are defined: nothing outside the document is loaded, and nothing in it
/// multiplies.
public struct XMLTree: Hashable, Sendable {
    enum Child: Hashable, Sendable {
        case element(XMLTree)
        case text(String)
    }

    /// The name without its prefix.
    public let name: String

    /// The URI of the namespace; `nil` if there is none.
    public let namespace: String?

    /// The attributes by their names as written, with their prefixes: `xml:lang`. Namespace declarations are omitted.
    public let attributes: [String: String]

    /// The elements and text in document order, including white space. Two text items are never adjacent.
    var children: [Child] = []

    /// The child elements, in order.
    public var elements: [XMLTree] {
        children.compactMap { if case .element(let element) = $0 { element } else { nil } }
    }

    /// The text of this element and its descendants, in document order.
    public var text: String {
        children.reduce(into: "") { text, child in
            switch child {
            case .text(let part): text += part
            case .element(let element): text += element.text
            }
        }
    }

    /// Returns the child elements with this name.
    ///
    /// - Parameters:
    ///   - name: the name without a prefix.
    ///   - namespace: the URI of the namespace. Defaults to `nil`, any namespace.
    public func elements(_ name: String, namespace: String? = nil) -> [XMLTree] {
        elements.filter { $0.isNamed(name, namespace) }
    }

    /// The first child element with this name; `nil` if there is none.
    ///
    /// - Parameters:
    ///   - name: the name without a prefix.
    ///   - namespace: the URI of the namespace. Defaults to `nil`, any namespace.
    public subscript(name: String, namespace namespace: String? = nil) -> XMLTree? {
        for case .element(let element) in children where element.isNamed(name, namespace) { return element }
        return nil
    }

    private func isNamed(_ name: String, _ namespace: String?) -> Bool {
        self.name == name && (namespace == nil || namespace == self.namespace)
    }
}

extension XMLTree: CustomStringConvertible {
    /// The start tag, without the secrets that ``Redaction`` recognizes, and the number of child elements.
    public var description: String {
        let redaction = Redaction.standard
        let tag = attributes.sorted { $0.key < $1.key }.reduce(name) { tag, attribute in
            let value = redaction.isSecret(attribute.key) ? Redaction.mark : redaction.redacted(attribute.value)
            return tag + " \(attribute.key)=\"\(value)\""
        }
        return "<\(tag.cleaned())> with \(elements.count) elements"
    }
}

extension NetworkResponse {
    /// Returns the root element of an XML body.
    ///
    /// The charset comes from a byte order mark, otherwise from `Content-Type`, otherwise from the declaration of the
    /// document. Without any of these, it is UTF-8 (RFC 7303, section 3).
    ///
    /// - Throws: ``NetworkError/Code/cannotParseResponse`` with line and column if the body is not XML. The error is
    ///   also thrown for a document type with definitions, a processing instruction without content, elements nested
    ///   deeper than 128 levels, and an element with more than 10,000 attributes.
    public func xml() throws(NetworkError) -> XMLTree {
        guard !body.isEmpty else { throw emptyBodyError(wanted: "XML") }
        let document = try checkedXML(try text(defaultCharset: declaredCharset))
        let builder = XMLTreeBuilder()
        let parser = XMLParser(data: document)
        parser.shouldProcessNamespaces = true
        parser.shouldResolveExternalEntities = false
        parser.delegate = builder
        // Ignore the result: on Linux it is true even for a truncated document.
        _ = parser.parse()
        if let root = builder.root, builder.failure == nil { return root }
        throw notXML(builder.failure ?? "there is no complete element", underlying: builder.cause)
    }

    private func notXML(_ reason: String, underlying: (any Error)? = nil) -> NetworkError {
        error(.cannotParseResponse, message: "the body is not XML: \(reason)", underlying: underlying)
    }

    /// The charset that the document declares (XML 1.0, appendix F).
    private var declaredCharset: String {
        if body.starts(with: [0, 0x3C]) { return "utf-16be" }
        if body.starts(with: [0x3C, 0]) { return "utf-16le" }
        let head = String(decoding: body.prefix(256), as: UTF8.self)
        let declaration = #/<\?xml\s[^>]*?\bencoding\s*=\s*["']([A-Za-z0-9._\-]+)["']/#
        guard let match = try? declaration.prefixMatch(in: head) else { return "utf-8" }
        // A declaration that can be read as ASCII is not in UTF-16.
        return match.1.lowercased().hasPrefix("utf-16") ? "utf-8" : String(match.1)
    }

    /// Returns the document for `XMLParser`, in UTF-8, with spaces instead of the XML declaration and the document
    /// type.
    ///
    /// It rejects documents that `XMLParser` does not handle: on Linux, `XMLParser` crashes on a processing instruction
    /// without content, and silently omits the entities of a document type. Its time for an element is the square of
    /// the number of attributes.
    private func checkedXML(_ document: String) throws(NetworkError) -> Data {
        var bytes = Array(document.utf8)
        // A parser could take zero bytes for another encoding, whose markup this check does not see.
        guard !bytes.contains(0) else { throw notXML("a character that XML does not have") }
        /// Returns the index after the mark, or the end of the document.
        func end(of mark: String, from start: Int) -> Int {
            bytes.dropFirst(start).firstRange(of: mark.utf8)?.upperBound ?? bytes.count
        }
        var index = 0
        var isInProlog = true
        while let start = bytes[index...].firstIndex(of: UInt8(ascii: "<")) {
            let rest = bytes[start...]
            let markup: Range<Int>
            if rest.starts(with: "<!--".utf8) {
                markup = start..<end(of: "-->", from: start + 4)
            } else if rest.starts(with: "<![CDATA[".utf8) {
                markup = start..<end(of: "]]>", from: start + 9)
            } else if rest.starts(with: "<?".utf8) {
                markup = start..<end(of: "?>", from: start + 2)
                guard let space = bytes[markup].firstIndex(where: { " \t\r\n".utf8.contains($0) }) else {
                    throw notXML("a processing instruction without content")
                }
                if start == 0, bytes[..<space].elementsEqual("<?xml".utf8) { Self.blank(&bytes, markup) }
            } else {
                let isDocumentType = rest.starts(with: "<!DOCTYPE".utf8)
                markup = start..<(try endOfTag(bytes, from: start, isDocumentType: isDocumentType))
                if isDocumentType, isInProlog { Self.blank(&bytes, markup) } else { isInProlog = false }
            }
            index = markup.upperBound
        }
        return Data(bytes)
    }

    /// Returns the index after the `>` of a tag, or the end of the document.
    private func endOfTag(_ bytes: [UInt8], from start: Int, isDocumentType: Bool) throws(NetworkError) -> Int {
        var quote: UInt8?
        var quoteCount = 0
        for index in start..<bytes.count {
            switch (bytes[index], quote) {
            case (let byte, let open?):
                if byte == open { quote = nil }
            case (UInt8(ascii: "\""), nil), (UInt8(ascii: "'"), nil):
                quote = bytes[index]
                quoteCount += 1
                guard quoteCount <= 10_000 else { throw notXML("an element has more than 10,000 attributes") }
            case (UInt8(ascii: "["), nil) where isDocumentType:
                throw notXML("a document type must not contain definitions, because they can define entities")
            case (UInt8(ascii: ">"), nil): return index + 1
            default: break
            }
        }
        return bytes.count
    }

    /// Blanks everything except line breaks, so that the line numbers of errors stay correct.
    private static func blank(_ bytes: inout [UInt8], _ range: Range<Int>) {
        for index in range where bytes[index] != 0x0A && bytes[index] != 0x0D { bytes[index] = 0x20 }
    }
}

extension APIRequest where Item == XMLTree {
    public func item(from response: NetworkResponse) throws -> Item {
        try response.xml()
    }
}

private final class XMLTreeBuilder: NSObject, XMLParserDelegate {
    private(set) var root: XMLTree?
    /// The first failure. The parser continues after most of them.
    private(set) var failure: String?
    private(set) var cause: (any Error)?
    private var open: [XMLTree] = []
    private var text = ""

    func parser(
        _ parser: XMLParser,
        didStartElement name: String,
        namespaceURI: String?,
        qualifiedName: String?,
        attributes: [String: String]
    ) {
        guard failure == nil else { return }
        guard open.count < 128 else { return fail("elements are nested deeper than 128 levels", nil, parser) }
        endText()
        let namespace = namespaceURI.flatMap { $0.isEmpty ? nil : $0 }
        let attributes = attributes.filter { $0.key != "xmlns" && !$0.key.hasPrefix("xmlns:") }
        open.append(XMLTree(name: name, namespace: namespace, attributes: attributes))
    }

    func parser(_ parser: XMLParser, didEndElement name: String, namespaceURI: String?, qualifiedName: String?) {
        guard failure == nil else { return }
        endText()
        guard let element = open.popLast() else { return }
        if open.isEmpty { root = element } else { open[open.count - 1].children.append(.element(element)) }
    }

    func parser(_ parser: XMLParser, foundCharacters string: String) {
        text += string
    }

    func parser(_ parser: XMLParser, foundCDATA block: Data) {
        text += String(decoding: block, as: UTF8.self)
    }

    func parser(_ parser: XMLParser, parseErrorOccurred error: any Error) {
        let code = (error as NSError).code
        // These codes are warnings of libxml2: a relative namespace, an odd xml:lang or xml:space.
        guard !(97...102).contains(code) else { return }
        fail(reason(code), error, parser)
    }

    private func endText() {
        if !text.isEmpty, !open.isEmpty { open[open.count - 1].children.append(.text(text)) }
        text = ""
    }

    private func fail(_ reason: String, _ error: (any Error)?, _ parser: XMLParser) {
        guard failure == nil else { return }
        failure = "line \(parser.lineNumber), column \(parser.columnNumber): \(reason)"
        cause = error
        parser.abortParsing()
    }

    /// Returns words for the frequent errors, because Foundation does not describe them on Linux.
    private func reason(_ code: Int) -> String {
        switch code {
        case 4, 5, 77:
            open.last.map { "the document ends inside <\($0.name)>" }
                ?? (root == nil ? "there is no element" : "text after the last element")
        case 26, 27: "an undefined entity; XML defines &lt; &gt; &amp; &quot; and &apos;"
        case 76: "an end tag does not match " + (open.last.map { "<\($0.name)>" } ?? "any start tag")
        case 201: "the prefix of a name has no namespace"
        default: "error \(code) of libxml2"
        }
    }
}
