import EasyNetwork

// Each request is a value, and `Item` is the type that its response is decoded into.
// Responses are decoded in the background, so modules with default main-actor isolation need `nonisolated`.

struct Session: ParsedItem {
    let token: String
}

struct SignIn: APIRequest {
    let name: String
    var api: String { "sign-in" }
    var method: NetworkService.Method { .post }
    var query: NetworkService.QueryType { .json }
    var params: [String: Any]? { ["name": name] }

    func item(from response: NetworkResponse) throws -> Session {
        try SessionMapper.process(response)
    }
}

nonisolated final class SessionMapper: ResponseMapper<Session>, ResponseMapperProtocol {
    static func process(_ json: Any?) throws -> Session {
        try process(json) { json in Session(token: try json.required("token")) }
    }
}

/// A `Decodable` item, which needs no mapper.
nonisolated struct Profile: Decodable {
    let name: String
    let city: String
}

struct GetProfile: APIRequest {
    typealias Item = Profile
    let token: String
    var api: String { "profile" }
    var headers: [String: String]? { ["Authorization": "Bearer \(token)"] }
}

struct Article: ParsedItem {
    let title: String
}

struct GetArticles: APIRequest {
    let topic: String
    var api: String { "articles" }
    var params: [String: Any]? { ["topic": topic, "sort": ["by": "date"]] }

    func item(from response: NetworkResponse) throws -> [Article] {
        try ArrayResponseMapper.process(response, mapper: ArticleMapper.process)
    }
}

nonisolated final class ArticleMapper: ResponseMapper<Article>, ResponseMapperProtocol {
    static func process(_ json: Any?) throws -> Article {
        try process(json) { json in Article(title: try json.required("title")) }
    }
}

struct GetAnswer: APIRequest {
    typealias Item = NetworkResponse
    let api: String
}
