import Foundation

/// Reads a property list in XML, as PropertyList-1.0.dtd has it.
enum XMLPropertyList {
    static func value(of body: Data, charset: String?) throws(PropertyListFailure) -> Any {
        let document: XMLTree
        let limits = XMLTree.Limits(maximumDepth: PropertyListFailure.maximumDepth)
        do throws(XMLTree.ParseError) {
            document = try XMLTree(body, charset: charset, limits: limits)
        } catch {
            throw PropertyListFailure(error.description, underlying: error)
        }
        let contents = try elements(of: document)
        guard document.name.local == "plist", contents.count == 1 else {
            throw PropertyListFailure("it is not one value inside <plist>")
        }
        return try value(of: contents[0])
    }

    private static func value(of element: XMLTree) throws(PropertyListFailure) -> Any {
        switch element.name.local {
        case "dict": return try dictionary(element)
        case "array":
            var result: [Any] = []
            for element in try elements(of: element) { result.append(try value(of: element)) }
            return result
        case "string": return try text(of: element)
        case "integer": return try integer(element)
        case "real":
            guard let number = Double(try text(of: element).trimmed) else { throw wrong(element) }
            return number
        case "true", "false": return element.name.local == "true"
        case "date":
            guard let date = Date(rfc3339Text: try text(of: element).trimmed) else {
                throw wrong(element)
            }
            return date
        case "data":
            let digits = try text(of: element).filter { !$0.isWhitespace }
            guard let data = Data(base64Encoded: digits) else { throw wrong(element) }
            return data
        default: throw PropertyListFailure("<\(element.name.local.prefix(40))> is no value of property lists")
        }
    }

    private static func dictionary(_ element: XMLTree) throws(PropertyListFailure) -> [String: Any] {
        let contents = try elements(of: element)
        var result: [String: Any] = [:]
        for index in stride(from: 0, to: contents.count, by: 2) {
            guard contents[index].name.local == "key", index + 1 < contents.count else {
                throw PropertyListFailure("a <dict> is not made of <key>s with a value behind each")
            }
            let key = try text(of: contents[index])
            guard result.updateValue(try value(of: contents[index + 1]), forKey: key) == nil else {
                throw PropertyListFailure("the key \"\(JSONShape.Constant.quotable(key))\" is there twice")
            }
        }
        return result
    }

    private static func integer(_ element: XMLTree) throws(PropertyListFailure) -> Any {
        let text = try text(of: element).trimmed.lowercased()
        let isNegative = text.hasPrefix("-")
        let digits = isNegative || text.hasPrefix("+") ? text.dropFirst() : text[...]
        let isHexadecimal = digits.hasPrefix("0x")
        // A second sign is none.
        guard digits.first?.isHexDigit == true,
            let number = UInt64(isHexadecimal ? digits.dropFirst(2) : digits, radix: isHexadecimal ? 16 : 10)
        else { throw wrong(element) }
        if !isNegative { return Int(exactly: number).map { $0 as Any } ?? number }
        guard number <= Int64.min.magnitude else { throw wrong(element) }
        let negative = Int64(truncatingIfNeeded: 0 &- number)
        return Int(exactly: negative).map { $0 as Any } ?? negative
    }

    private static func wrong(_ element: XMLTree) -> PropertyListFailure {
        PropertyListFailure("\"\(JSONShape.Constant.quotable(element.text))\" is no <\(element.name.local)>")
    }

    /// What is inside, which but for white space is elements.
    private static func elements(of element: XMLTree) throws(PropertyListFailure) -> [XMLTree] {
        for case .text(let text) in element.children where !text.allSatisfy(\.isWhitespace) {
            throw PropertyListFailure("there is text in a <\(element.name.local.prefix(40))>")
        }
        return element.elements
    }

    /// What is inside, which is text.
    private static func text(of element: XMLTree) throws(PropertyListFailure) -> String {
        guard element.elements.isEmpty else {
            throw PropertyListFailure("there is an element in a <\(element.name.local.prefix(40))>")
        }
        return element.text
    }
}
