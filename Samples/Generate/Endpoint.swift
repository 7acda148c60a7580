import Foundation

/// A request to generate, and the struct of its response.
struct Endpoint {
    enum Segment: Equatable {
        case constant(String)
        /// A path segment that is a property.
        case variable(name: String, type: String)
    }

    /// A query item that is a property.
    struct Parameter: Equatable {
        let key: String
        let name: String
        /// The Swift type. It ends with `?` if the item can be left out.
        let type: String
    }

    /// The name of the request: `GetUser`.
    var name: String
    /// The name of the struct: `User`.
    var itemName: String
    var method = "GET"
    var path: [Segment]
    /// The percent-encoded query items that are always the same.
    var constants: [String] = []
    var parameters: [Parameter] = []
    var body = Exchange.Content.nothing
    var answer: Exchange.Content
}

extension Endpoint {
    /// Finds the endpoints of all exchanges, in the order in which they first occur.
    static func find(in exchanges: [Exchange]) -> [Endpoint] {
        let origins = Dictionary(grouping: exchanges, by: \.origin)
        let groups = origins.values.flatMap { group($0, []) }.sorted { $0.exchanges[0].index < $1.exchanges[0].index }
        return groups.map { Endpoint(path: $0.path, exchanges: $0.exchanges, hasBaseURL: origins.count == 1) }
    }

    // MARK: Comparing paths

    /// The segments of a path; `nil` for a segment that varies.
    private typealias Path = [String?]

    /// Groups exchanges whose paths begin with `prefix`, by the segments after it and by the method.
    ///
    /// - Returns: The groups in no particular order. The exchanges of each group are in order.
    private static func group(_ exchanges: [Exchange], _ prefix: Path) -> [(path: Path, exchanges: [Exchange])] {
        let ended = exchanges.filter { $0.segments.count == prefix.count }
        var groups = Dictionary(grouping: ended, by: \.method).values.map { (path: prefix, exchanges: $0) }
        let others = exchanges.filter { $0.segments.count > prefix.count }
        var rest = Dictionary(grouping: others) { $0.segments[prefix.count] }
        for values in values(rest, after: prefix) where values.count > 1 {
            let merged = values.flatMap { rest.removeValue(forKey: $0) ?? [] }.sorted { $0.index < $1.index }
            groups += group(merged, prefix + [nil])
        }
        for (segment, exchanges) in rest { groups += group(exchanges, prefix + [segment]) }
        return groups
    }

    /// Returns groups of segments that are values of one property: numbers and UUIDs, and, after a plural, words for
    /// which GET returns objects with the same keys.
    private static func values(_ segments: [String: [Exchange]], after prefix: Path) -> [[String]] {
        let identifiers = segments.keys.filter { $0.wholeMatch(of: /[0-9]+|[0-9A-Fa-f-]{8,}/) != nil }
        guard let noun = prefix.last ?? nil, Name.singular(noun) != noun else { return [identifiers] }
        var words: [Set<String>: [String]] = [:]
        for (segment, exchanges) in segments where !identifiers.contains(segment) {
            let items = exchanges.filter { $0.method == "GET" && $0.segments.count == prefix.count + 1 }
            guard case .json(let shape, _)? = items.lazy.compactMap(\.answer).first, let keys = shape.keys else {
                continue
            }
            if !keys.isEmpty { words[keys, default: []].append(segment) }
        }
        return [identifiers] + words.values
    }

    // MARK: Comparing exchanges

    private init(path: Path, exchanges: [Exchange], hasBaseURL: Bool) {
        var names = Name.requestProperties
        self.path = hasBaseURL ? [] : [.constant(exchanges[0].origin)]
        var nouns: [String] = []
        for (index, segment) in path.enumerated() {
            if let segment {
                self.path.append(.constant(segment))
                if UUID(uuidString: segment) != nil {
                    if let last = nouns.popLast() { nouns.append(Name.singular(last)) }
                } else if !Exchange.isVersion(segment) {
                    nouns.append(segment.removingPercentEncoding ?? segment)
                }
                continue
            }
            let noun = index > 0 ? path[index - 1].map(Name.singular) : nil
            if noun != nil, let last = nouns.popLast() { nouns.append(Name.singular(last)) }
            let name = path.count { $0 == nil } == 1 ? "id" : Name.property((noun ?? "") + "ID")
            let type = Self.type(of: exchanges.map { $0.segments[index] })
            self.path.append(.variable(name: Name.unique(name, &names), type: type))
        }
        method = exchanges[0].method
        body = exchanges.dropFirst().reduce(exchanges[0].body) { $0.merged(with: $1.body) }
        let answers = exchanges.compactMap(\.answer)
        answer = answers.first.map { answers.dropFirst().reduce($0) { $0.merged(with: $1) } } ?? .other
        if nouns.isEmpty { nouns = ["root"] }
        name = Name.type(([method.lowercased()] + nouns).joined(separator: "_"))
        var isOne = method == "POST"
        if case .json(let shape, _) = answer, case .array = shape.kind { isOne = true }
        if isOne, let last = nouns.popLast() { nouns.append(Name.singular(last)) }
        itemName = Name.type(nouns.joined(separator: "_"))
        compareQueries(exchanges.map(\.query), &names)
    }

    private mutating func compareQueries(_ queries: [[URLQueryItem]], _ names: inout Set<String>) {
        var known: Set<String> = []
        for key in queries.joined().map(\.name) where known.insert(key).inserted {
            let lists = queries.map { query in query.filter { $0.name == key } }
            let decoded = key.removingPercentEncoding ?? key
            // A secret must not end up in a source file.
            if Set(lists).count == 1, !SecretName.isKnown(decoded) {
                constants += lists[0].map { $0.name + ($0.value.map { "=" + $0 } ?? "") }
                continue
            }
            var type = Self.type(of: lists.joined().map { $0.value ?? "" })
            if lists.contains(where: { $0.count > 1 }) { type = "[\(type)]" }
            if lists.contains(where: \.isEmpty) { type += "?" }
            parameters.append(Parameter(key: decoded, name: Name.unique(Name.property(decoded), &names), type: type))
        }
    }

    /// Returns the type of a property that can have all these values.
    private static func type(of texts: [String]) -> String {
        if texts.allSatisfy({ Int($0)?.description == $0 }) { return "Int" }
        return texts.allSatisfy(["true", "false"].contains) ? "Bool" : "String"
    }
}
