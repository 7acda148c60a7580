import EasyNetwork
import Foundation

struct Post: Decodable, Sendable {
    let id: Int
    let title: String
    /// A URL relative to the server's base URL.
    let picture: URL
}

struct GetPosts: APIRequest {
    typealias Item = [Post]
    let api = "posts"
}

struct Details: Decodable, Sendable {
    let author: String
    let likes: Int
}

struct GetDetails: APIRequest {
    typealias Item = Details
    let post: Int
    var api: String { "posts/\(post)" }
}

/// A like. It is `Codable` because the outbox stores it on disk until the server has accepted it.
struct Like: APIRequest, Codable {
    typealias Item = Void
    let post: Int
    var api: String { "likes/\(post)" }
    var method: NetworkService.Method { .post }
}
