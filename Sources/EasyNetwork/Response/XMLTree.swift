/// An element of an XML document, with everything inside it: a value that does not change.
///
/// ```swift
/// let feed = try response.xml()
/// for entry in feed.elements("entry", namespace: "http://www.w3.org/2005/Atom") {
///     print(entry["title"]?.text ?? "", entry.attribute("lang") ?? "")
/// }
/// ```
///
/// Comments and processing instructions are left out; CDATA is text like any other. Document type declarations are not
/// read, so that no entity but XML's own five exists: nothing outside the document is ever loaded, and nothing inside it
/// multiplies.
public struct XMLTree: Hashable, Sendable {
    /// The name of an element or an attribute (Namespaces in XML 1.0). Equal when local name and namespace are: the prefix
    /// is only a way to write it.
    public struct Name: Hashable, Sendable {
        /// The name without its prefix.
        public let local: String
        /// The URI of the namespace; nil for none.
        public let namespace: String?
        /// As it was written; nil for none.
        public let prefix: String?

        public static func == (left: Name, right: Name) -> Bool {
            left.local == right.local && left.namespace == right.namespace
        }

        public func hash(into hasher: inout Hasher) {
            hasher.combine(local)
            hasher.combine(namespace)
        }
    }

    public struct Attribute: Hashable, Sendable {
        public let name: Name
        public let value: String
    }

    public enum Child: Hashable, Sendable {
        case element(XMLTree)
        case text(String)
    }

    /// How much a document may hold, since its sender chooses: what is beyond is an error.
    public struct Limits: Hashable, Sendable {
        /// How deep elements may be nested. Default 128, at most 512.
        public var maximumDepth: Int
        /// How many elements and attributes there may be in all. Default 1,000,000.
        public var maximumNodeCount: Int
        /// How many attributes, declarations of namespaces included, one element may have. Their square is what they
        /// cost. Default 10,000.
        public var maximumAttributeCount: Int

        public init(
            maximumDepth: Int = 128,
            maximumNodeCount: Int = 1_000_000,
            maximumAttributeCount: Int = 10_000
        ) {
            self.maximumDepth = maximumDepth
            self.maximumNodeCount = maximumNodeCount
            self.maximumAttributeCount = maximumAttributeCount
        }
    }

    public let name: Name

    /// Ordered by name; declarations of namespaces are none of them.
    public let attributes: [Attribute]

    /// Elements and text in document order, white space included. Two texts never stand side by side.
    public let children: [Child]

    init(name: Name, attributes: [Attribute], children: [Child]) {
        self.name = name
        self.attributes = attributes
        self.children = children
    }
}

extension XMLTree {
    /// The child elements, in order.
    public var elements: [XMLTree] {
        children.compactMap { if case .element(let element) = $0 { element } else { nil } }
    }

    /// All text inside this element and those below, in document order.
    public var text: String {
        var text = ""
        appendText(to: &text)
        return text
    }

    /// The first child element of this name; nil when there is none.
    ///
    /// - Parameters:
    ///   - name: without prefix.
    ///   - namespace: default nil, any.
    public subscript(name: String, namespace namespace: String? = nil) -> XMLTree? {
        for case .element(let element) in children where element.name.isCalled(name, namespace) { return element }
        return nil
    }

    /// The child elements of this name.
    ///
    /// - Parameters:
    ///   - name: without prefix.
    ///   - namespace: default nil, any.
    public func elements(_ name: String, namespace: String? = nil) -> [XMLTree] {
        elements.filter { $0.name.isCalled(name, namespace) }
    }

    /// The value of the attribute of this name; nil when there is none.
    ///
    /// - Parameters:
    ///   - name: without prefix.
    ///   - namespace: default nil, any; an attribute without prefix is in none.
    public func attribute(_ name: String, namespace: String? = nil) -> String? {
        attributes.first { $0.name.isCalled(name, namespace) }?.value
    }

    private func appendText(to text: inout String) {
        for child in children {
            switch child {
            case .text(let part): text += part
            case .element(let element): element.appendText(to: &text)
            }
        }
    }
}

extension XMLTree.Name {
    fileprivate func isCalled(_ local: String, _ namespace: String?) -> Bool {
        self.local == local && (namespace == nil || namespace == self.namespace)
    }
}

extension XMLTree.Name: CustomStringConvertible {
    /// As it was written: `atom:entry`.
    public var description: String {
        prefix.map { "\($0):\(local)" } ?? local
    }
}
