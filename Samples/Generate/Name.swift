import Foundation

/// Swift names and literals for strings from other sources.
enum Name {
    /// Returns a property's name in lower camel case, without backticks: `firstName` for `first_name`.
    ///
    /// - Parameter limit: The maximum length, because longer names do not fit on a line. `nil` means no limit.
    static func property(_ text: String, limit: Int? = 40) -> String {
        let words = words(text)
        let camel = words.prefix(1).map(lowercasedStart) + capitalized(words).dropFirst()
        let name = String(camel.joined().prefix(limit ?? .max))
        if name.isEmpty { return "empty" }
        if name.first?.isNumber == true { return "_" + name }
        // `user.self` is the user, and `user.init` its initializer. As an argument label, `inout` would need other
        // backticks.
        return ["self", "init", "inout"].contains(name) ? name + "Value" : name
    }

    /// Returns a type's name in upper camel case.
    ///
    /// - Parameters:
    ///   - isNested: Whether the type is in another struct, where `Answer`, `Item` and `Payload` are available.
    ///   - limit: See ``property(_:limit:)``.
    static func type(_ text: String, isNested: Bool = false, limit: Int? = 40) -> String {
        var name = String(capitalized(words(text)).joined().prefix(limit ?? .max))
        if name.first?.isLetter != true { name = name.isEmpty ? "Empty" : "Item" + name }
        let isFree = isNested && ["Answer", "Item", "Payload"].contains(name)
        return usedTypes.contains(name) && !isFree ? longer(name) : name
    }

    /// Returns a longer name to use instead of one that is used.
    static func longer(_ type: String) -> String { type + (type.hasSuffix("Item") ? "Value" : "Item") }

    /// Returns the singular of an English noun, based on its ending.
    static func singular(_ noun: String) -> String {
        func ends(_ endings: String...) -> Bool { endings.contains { noun.lowercased().hasSuffix($0) } }
        if !ends("s") || ends("ss", "us", "is", "news", "series") || noun.count < 3 { return noun }
        if ends("ies"), !ends("movies", "cookies") { return noun.dropLast(3) + "y" }
        return String(noun.dropLast(ends("sses", "shes", "ches", "xes") ? 2 : 1))
    }

    /// Returns the name, with a number appended if it is taken, and marks the result as taken.
    static func unique(_ name: String, _ taken: inout Set<String>) -> String {
        let result = unique(name, isTaken: taken.contains)
        taken.insert(result)
        return result
    }

    /// Returns the name, with a number appended if it is taken.
    static func unique(_ name: String, isTaken: (String) -> Bool) -> String {
        if !isTaken(name) { return name }
        // Use a binary search: very many strings of a document can have the same name.
        var (low, high) = (1, 2)
        while isTaken("\(name)\(high)") { (low, high) = (high, high * 2) }
        while high - low > 1 {
            let middle = (low + high) / 2
            if isTaken("\(name)\(middle)") { low = middle } else { high = middle }
        }
        return "\(name)\(high)"
    }

    /// Returns the name as it is written in a declaration.
    static func declared(_ name: String) -> String { keywords.contains(name) ? "`\(name)`" : name }

    /// Splits a string into words of ASCII letters and digits, because swift-format wants names in ASCII. Accents are
    /// removed, and other characters become their numbers.
    private static func words(_ text: String) -> [String] {
        var words = [""]
        for scalar in text.decomposedStringWithCanonicalMapping.unicodeScalars {
            switch scalar {
            case "a"..."z", "A"..."Z", "0"..."9": words[words.count - 1].unicodeScalars.append(scalar)
            case "+": words += ["plus", ""]
            // A leading `-` before a number or a key means minus or descending order. Elsewhere, it separates words.
            case "-" where words == [""] && text.prefixMatch(of: /-[A-Za-z0-9]/) != nil: words += ["minus", ""]
            case _ where scalar.isASCII: words.append("")
            case _ where [.nonspacingMark, .format].contains(scalar.properties.generalCategory): continue
            default: words += ["u" + String(scalar.value, radix: 16), ""]
            }
        }
        return words.filter { !$0.isEmpty }
    }

    /// `url` for `URL`, `urlText` for `URLText`, `name` for `Name`.
    private static func lowercasedStart(_ word: String) -> String {
        let start = word.prefix { $0.isUppercase || $0.isNumber }
        let count = start.count > 1 && start.count < word.count ? start.count - 1 : start.count
        return word.prefix(count).lowercased() + word.dropFirst(count)
    }

    /// Returns the words in title case. Capitals within a word are kept.
    private static func capitalized(_ words: [String]) -> [String] {
        words.map { word in
            let isLoud = words.count > 1 && !word.contains(where: \.isLowercase)
            return word.prefix(1).uppercased() + (isLoud ? word.dropFirst().lowercased() : String(word.dropFirst()))
        }
    }

    private static let keywords = set(
        """
        any as associatedtype await borrow break case catch class consume continue copy default defer deinit discard do each
        else enum extension fallthrough false fileprivate for func guard if import in inout internal is let nil operator
        private precedencegroup protocol public repeat rethrows return some static struct subscript super switch then throw
        throws true try typealias unsafe var where while yield
        """
    )

    /// Types that generated code uses, and words that cannot be the name of a type.
    private static let usedTypes = set(
        """
        APIRequest Answer Any AnyKey Array ArrayResponseMapper Bool Box Codable CodingKey CodingKeys Credential Data Date Decimal
        DeclaredBody Decodable Decoder Dictionary Double Encodable Encoder Error Failure FormFile HTTPCredential Hashable Headers
        HostSettings Int Item JSONDecoder JSONEncoder JSONObject JSONSerialization JSONValue MultipartForm NetworkError NetworkResponse
        NetworkService Optional ParameterText Params ParsedItem Payload Protocol QueryEncoder RawRepresentable RequestBody RequestOptions
        ResponseMapper ResponseMapperProtocol Self Sendable Server String Type URL UUID Void
        """
    )

    /// The properties of a request, whose names its parameters cannot have.
    static let requestProperties = set(
        """
        api body cookies headers method options params payload query validateParameters
        """
    )

    private static func set(_ words: String) -> Set<String> {
        Set(words.split(whereSeparator: \.isWhitespace).map(String.init))
    }
}
