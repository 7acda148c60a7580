import EasyNetworkOpenAPI

/// A way for clients of an API to authenticate.
struct SecurityScheme {
    enum Kind: Equatable {
        case basic, bearer
        case header(String), query(String), cookie(String)
    }

    let name: String
    let kind: Kind
    let comment: Comment

    /// The header field that the scheme sets.
    var field: String? {
        switch kind {
        case .basic, .bearer: "Authorization"
        case .header(let name): name
        case .cookie: "Cookie"
        case .query: nil
        }
    }

    /// Returns the schemes of a document that a header, a query or a cookie can express. OAuth and OpenID Connect end
    /// in a bearer token.
    static func all(of document: OpenAPIDocument) -> [SecurityScheme] {
        var taken: Set<String> = []
        let schemes = document.root["components"]?["securitySchemes"]?.members ?? []
        return schemes.compactMap { name, json in
            guard let json = try? document.resolve(json).json else { return nil }
            let kind: Kind? =
                switch (json["type"]?.string, json["scheme"]?.string?.lowercased(), json["in"]?.string) {
                case ("http", "basic", _): .basic
                case ("http", "bearer", _), ("oauth2", _, _), ("openIdConnect", _, _): .bearer
                case ("apiKey", _, "header"): json["name"]?.string.map(Kind.header)
                case ("apiKey", _, "query"): json["name"]?.string.map(Kind.query)
                case ("apiKey", _, "cookie"): json["name"]?.string.map(Kind.cookie)
                default: nil
                }
            return kind.map { kind in
                let name = Name.unique(Name.property(name, limit: nil), &taken)
                return SecurityScheme(name: name, kind: kind, comment: Comment(json["description"]?.string))
            }
        }
    }
}
