import Foundation

#if canImport(FoundationXML)
import FoundationXML
#endif

/// Puts the events of an `XMLParser` together into a tree.
final class XMLTreeBuilder: NSObject {
    fileprivate struct Element {
        let name: XMLTree.Name
        let attributes: [XMLTree.Attribute]
        /// The prefixes bound here, "" for the default namespace.
        let prefixes: [String]
        var children: [XMLTree.Child] = []
        var text = ""
    }

    private let limits: XMLTree.Limits
    private var open: [Element] = []
    private var root: XMLTree?
    private var nodeCount = 0
    private var failure: XMLTree.ParseError?

    /// The namespaces of each prefix, the one in force last. One stack a prefix: a copy of them all for each element would
    /// cost the square of a document with many.
    private var namespaces: [String: [String?]] = ["xml": ["http://www.w3.org/XML/1998/namespace"], "": [nil]]

    init(_ limits: XMLTree.Limits) {
        self.limits = limits
    }

    func result() throws(XMLTree.ParseError) -> XMLTree {
        if let failure { throw failure }
        guard let root else { throw XMLTree.ParseError("there is no element") }
        return root
    }

    /// The first failure stays: the parser goes on after most of them, and its later ones follow from the first.
    private func fail(_ reason: String, _ parser: XMLParser) {
        guard failure == nil else { return }
        failure = XMLTree.ParseError(reason, line: parser.lineNumber, column: parser.columnNumber)
        open = []
        parser.abortParsing()
    }
}

extension XMLTreeBuilder: XMLParserDelegate {
    func parser(
        _ parser: XMLParser,
        didStartElement name: String,
        namespaceURI: String?,
        qualifiedName: String?,
        attributes: [String: String]
    ) {
        guard failure == nil else { return }
        nodeCount += 1 + attributes.count
        guard nodeCount <= limits.maximumNodeCount else {
            return fail("there are more than \(limits.maximumNodeCount) elements and attributes", parser)
        }
        let maximumDepth = min(limits.maximumDepth, 512)
        guard open.count < maximumDepth else {
            return fail("elements are nested deeper than \(maximumDepth) levels", parser)
        }
        guard let prefixes = bind(attributes, parser) else { return }
        guard let elementName = resolve(name, isAttribute: false, parser) else { return }
        var named: [XMLTree.Attribute] = []
        for (name, value) in attributes where declaredPrefix(name) == nil {
            guard let name = resolve(name, isAttribute: true, parser) else { return }
            named.append(XMLTree.Attribute(name: name, value: value))
        }
        // The parser tells them in no order.
        named.sort { ($0.name.local, $0.name.namespace ?? "") < ($1.name.local, $1.name.namespace ?? "") }
        if let twin = zip(named, named.dropFirst()).first(where: { $0.name == $1.name }) {
            return fail("<\(elementName)> has the attribute \(twin.1.name) twice", parser)
        }
        open.append(Element(name: elementName, attributes: named, prefixes: prefixes))
    }

    func parser(_ parser: XMLParser, didEndElement name: String, namespaceURI: String?, qualifiedName: String?) {
        guard failure == nil, var element = open.popLast() else { return }
        element.endText()
        for prefix in element.prefixes { namespaces[prefix]?.removeLast() }
        let tree = XMLTree(name: element.name, attributes: element.attributes, children: element.children)
        if open.isEmpty {
            root = tree
        } else {
            open[open.count - 1].endText()
            open[open.count - 1].children.append(.element(tree))
        }
    }

    func parser(_ parser: XMLParser, foundCharacters string: String) {
        guard !open.isEmpty else { return }
        open[open.count - 1].text += string
    }

    func parser(_ parser: XMLParser, foundCDATA block: Data) {
        guard !open.isEmpty else { return }
        open[open.count - 1].text += String(decoding: block, as: UTF8.self)
    }

    func parser(_ parser: XMLParser, parseErrorOccurred error: any Error) {
        let code = (error as NSError).code
        // libxml2's warnings: of a relative namespace, of an odd xml:lang or xml:space.
        guard !(97...102).contains(code) else { return }
        fail(reason(code), parser)
    }

    // MARK: - Namespaces

    /// The prefix that an attribute declares, "" for the default namespace; nil when it declares none.
    private func declaredPrefix(_ attribute: String) -> String? {
        if attribute == "xmlns" { return "" }
        return attribute.hasPrefix("xmlns:") ? String(attribute.dropFirst(6)) : nil
    }

    /// - Returns: the prefixes that the attributes bind; nil after a failure.
    private func bind(_ attributes: [String: String], _ parser: XMLParser) -> [String]? {
        var prefixes: [String] = []
        for (name, value) in attributes {
            guard let prefix = declaredPrefix(name) else { continue }
            let isXML = value == "http://www.w3.org/XML/1998/namespace"
            guard prefix != "xmlns", (prefix == "xml") == isXML, !value.isEmpty || prefix.isEmpty else {
                fail("\(name)=\"\(JSONShape.Constant.quotable(value))\" declares no namespace", parser)
                return nil
            }
            namespaces[prefix, default: []].append(value.isEmpty ? nil : value)
            prefixes.append(prefix)
        }
        return prefixes
    }

    /// - Returns: nil after a failure.
    private func resolve(_ name: String, isAttribute: Bool, _ parser: XMLParser) -> XMLTree.Name? {
        let colon = name.utf8.firstIndex(of: UInt8(ascii: ":"))
        guard let colon else {
            let namespace = isAttribute ? nil : namespaces[""]?.last ?? nil
            return XMLTree.Name(local: name, namespace: namespace, prefix: nil)
        }
        let (prefix, local) = (String(name[..<colon]), String(name[name.utf8.index(after: colon)...]))
        guard !prefix.isEmpty, !local.isEmpty, !local.utf8.contains(UInt8(ascii: ":")),
            let namespace = namespaces[prefix]?.last
        else {
            fail("the prefix of \(JSONShape.Constant.quotable(name)) is bound to no namespace", parser)
            return nil
        }
        return XMLTree.Name(local: local, namespace: namespace, prefix: prefix)
    }

    // MARK: - Words

    /// Foundation has no words for the errors of libxml2, on Linux not even the name.
    private func reason(_ code: Int) -> String {
        let inside = open.last.map { "inside <\($0.name)>" }
        switch code {
        case 1: return "the parser gave up, perhaps at a text of more than 10 MB"
        case 4: return "there is no element"
        case 5: return inside.map { "the document ends \($0)" } ?? "there is something after the last element"
        case 6, 7, 8, 9: return "a character that XML does not have"
        case 23, 26, 27, 28: return "an entity that XML does not have; there are &lt; &gt; &amp; &quot; and &apos;"
        case 38, 39, 40: return "the value of an attribute is not written as one"
        case 41, 65: return "an attribute is not written as one"
        case 42: return "an attribute is there twice"
        case 45: return "a comment does not end"
        case 46...49: return "a processing instruction is not written as one"
        case 61: return "the document type declaration does not end"
        case 64: return "<?xml is only at the beginning of a document"
        case 62: return "]]> stands in a text"
        case 68: return "a name was expected; & is written &amp; and < is written &lt;"
        case 73: return "a > was expected"
        case 76: return "an end tag does not match " + (open.last.map { "<\($0.name)>" } ?? "any start tag")
        case 77: return "the document ends " + (inside ?? "too early")
        case 80: return "a comment has -- in it"
        case 200, 202...205: return "a namespace is not declared as one"
        case 201: return "the prefix of a name is bound to no namespace"
        default: return "error \(code) of libxml2"
        }
    }
}

extension XMLTreeBuilder.Element {
    fileprivate mutating func endText() {
        guard !text.isEmpty else { return }
        children.append(.text(text))
        text = ""
    }
}
