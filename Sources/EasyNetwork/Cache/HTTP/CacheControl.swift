import Foundation

/// The directives of `Cache-Control` fields (RFC 9111, section 5.2).
///
/// If a directive is repeated, the first one counts (section 4.2.1). An invalid argument has the most restrictive
/// meaning: 0 for a number, and all fields for a list of fields.
package struct CacheControl: Hashable, Sendable {
    struct Directive: Hashable, Sendable {
        /// The name in lowercase.
        var name: String
        /// The argument without quotes; nil without an `=`, and empty if it is invalid.
        var argument: String?
    }

    let directives: [Directive]

    package init(response headers: HTTPHeaders) {
        directives = Self.directives(headers.values(for: "Cache-Control"))
    }

    /// Reads the directives of a request. Without a `Cache-Control` field, `Pragma: no-cache` counts (section 5.4).
    init(request headers: HTTPHeaders) {
        let fields = headers.values(for: "Cache-Control")
        directives =
            fields.isEmpty
            ? Self.directives(headers.values(for: "Pragma")).filter { $0 == Directive(name: "no-cache") }
            : Self.directives(fields)
    }

    func contains(_ name: String) -> Bool {
        directives.contains { $0.name == name }
    }

    /// - Parameter otherwise: the value for an invalid number.
    /// - Returns: nil if the directive is absent.
    private func seconds(_ name: String, otherwise: TimeInterval = 0) -> TimeInterval? {
        guard let directive = directives.first(where: { $0.name == name }) else { return nil }
        return directive.argument.flatMap(Self.deltaSeconds) ?? otherwise
    }

    /// The maximum number of seconds (section 1.2.2), which is sixty-eight years.
    static let maximumSeconds: TimeInterval = 2_147_483_648

    /// - Returns: nil for a string with characters other than digits.
    static func deltaSeconds(_ text: some StringProtocol) -> TimeInterval? {
        guard !text.isEmpty, text.utf8.allSatisfy(\.isDigit) else { return nil }
        return min(Double(String(text)) ?? maximumSeconds, maximumSeconds)
    }
}

extension CacheControl {
    // MARK: - Requests and responses

    package var noStore: Bool { contains("no-store") }

    var maxAge: TimeInterval? { seconds("max-age") }

    /// The seconds for which a stale response can replace an error (RFC 5861, section 4).
    var staleIfError: TimeInterval? { seconds("stale-if-error") }

    /// Whether the response can be used only after validation. A directive that names fields which can be omitted does
    /// not count; see ``fieldsNotToStore``.
    var noCache: Bool {
        directives.contains { $0.name == "no-cache" && Self.omissibleFields($0) == nil }
    }

    // MARK: - Requests

    /// The accepted staleness; infinite if the directive has no number.
    var maxStale: TimeInterval? {
        let isAny = directives.first { $0.name == "max-stale" }?.argument == nil
        return seconds("max-stale", otherwise: isAny ? .infinity : 0)
    }

    /// The remaining freshness that the request requires.
    var minFresh: TimeInterval? { seconds("min-fresh", otherwise: Self.maximumSeconds) }

    var onlyIfCached: Bool { contains("only-if-cached") }

    // MARK: - Responses

    var mustRevalidate: Bool { contains("must-revalidate") }

    var mustUnderstand: Bool { contains("must-understand") }

    var isPublic: Bool { contains("public") }

    /// Whether the response is private, even if the directive has an argument, which is for shared caches.
    var isPrivate: Bool { contains("private") }

    /// Whether the response never changes while it is fresh (RFC 8246).
    var immutable: Bool { contains("immutable") }

    /// The seconds for which a stale response can be used during revalidation (RFC 5861, section 3).
    var staleWhileRevalidate: TimeInterval? { seconds("stale-while-revalidate") }

    /// The fields of `no-cache="…"`, in lowercase. The response can be used without them (section 5.2.2.4).
    var fieldsNotToStore: Set<String> {
        Set(directives.filter { $0.name == "no-cache" }.flatMap { Self.omissibleFields($0) ?? [] })
    }

    /// The fields that define the response or its caching.
    private static let necessaryFields: Set<String> = [
        "age", "cache-control", "content-encoding", "content-range", "content-type", "date", "etag", "expires",
        "last-modified", "vary",
    ]

    /// - Returns: nil if the directive names no fields, or fields that cannot be omitted.
    private static func omissibleFields(_ directive: Directive) -> Set<String>? {
        let names = (directive.argument ?? "").split(separator: ",").map { $0.trimmed.lowercased() }
            .filter { !$0.isEmpty }
        let fields = Set(names)
        guard !fields.isEmpty, fields.allSatisfy({ HTTPSyntax.isToken($0.utf8) }),
            fields.isDisjoint(with: necessaryFields)
        else { return nil }
        return fields
    }
}

// MARK: - Reading

extension CacheControl {
    private static func directives(_ fields: [String]) -> [Directive] {
        fields.flatMap { field in
            var reader = HTTPFieldReader(field)
            return directives(&reader)
        }
    }

    static func directives(_ reader: inout HTTPFieldReader) -> [Directive] {
        var directives: [Directive] = []
        reader.skipListSeparators()
        while !reader.isAtEnd {
            if let directive = directive(&reader) { directives.append(directive) }
            reader.skipListSeparators()
        }
        return directives
    }

    /// Reads to the end of the element, even if it is invalid.
    private static func directive(_ reader: inout HTTPFieldReader) -> Directive? {
        guard let name = reader.token() else {
            reader.skip(to: UInt8(ascii: ","))
            return nil
        }
        var directive = Directive(name: name.lowercased())
        if reader.take(UInt8(ascii: "=")) { directive.argument = argument(&reader) ?? "" }
        if !reader.isAtSeparator() {
            directive.argument = ""
            reader.skip(to: UInt8(ascii: ","))
        }
        return directive
    }

    private static func argument(_ reader: inout HTTPFieldReader) -> String? {
        guard reader.next == UInt8(ascii: "\"") else { return reader.token() }
        if let text = reader.quotedString() { return text }
        // A missing closing quote does not hide the directives that follow, such as "no-store".
        reader.position += 1
        return nil
    }
}
