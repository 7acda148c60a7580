import EasyNetwork
import Foundation

// The APIs of this bench, and the settings of their host. Replace them with your team's own; the other files need no
// changes.

extension Registry {
    static let bench = Registry(
        apis: [
            api("user", "one user by id") { GetUser(id: try $0.int("id")) },
            api("sign-in", "signs a user in with a cookie") { SignIn(name: try $0.string("name")) },
            api("me", "the user who is signed in") { _ in GetProfile() },
            api("articles", "one page of a list") { GetArticles(page: try $0.int("page", default: 1)) },
            api("slow", "a slow response") { Wait(seconds: try $0.double("seconds", default: 2)) },
            api("flaky", "503 the first time, then 200") { _ in GetFlaky() },
            api("down", "503 several times, then 200; the calls wait for the circuit") {
                GetDown(count: try $0.int("count", default: 4), waits: try $0.bool("waits", default: true))
            },
            api("contact", "posts a form") {
                PostForm(name: try $0.string("name"), isUrgent: try $0.bool("urgent", default: false))
            },
            download("report", "downloads a file") { GetReport(size: try $0.int("size", default: 262_144)) },
            job("upload", "uploads a file that resumes, with tus or the IETF's protocol") { values, service in
                let file = URL(fileURLWithPath: try values.string("from"))
                let request = AddFile(isTus: try values.bool("tus", default: false))
                return UploadOperation(request, from: .file(file), service: service)
            },
            job("trip", "books a trip in steps; if the last one is refused, the others are undone") { values, service in
                bookTrip(isRefused: try values.bool("refused", default: false), service)
            },
            job("resources", "pictures, each requested by several callers at once") { values, service in
                let (count, askers) = (try values.int("count", default: 5), try values.int("askers", default: 3))
                return LoadPictures(count: max(0, count), askerCount: max(0, askers), service: service)
            },
        ],
        configure: { host in
            host.cookies = CookieJar()
            // `slow` can take longer than the default of one minute.
            host.deadlines.idle = nil
        }
    )
}

struct User: Decodable {
    let id: Int
    let name: String
}

struct GetUser: APIRequest {
    typealias Item = User
    let id: Int
    var api: String { "users/\(id)" }
}

struct SignIn: APIRequest {
    typealias Item = User
    let name: String
    var api: String { "sign-in" }
    var method: NetworkService.Method { .post }
    var query: NetworkService.QueryType { .json }
    var params: [String: Any]? { ["name": name] }
}

struct GetProfile: APIRequest {
    typealias Item = User
    var api: String { "me" }
}

struct Page: Decodable {
    let titles: [String]
    /// `nil` on the last page.
    let next: Int?
}

struct GetArticles: APIRequest {
    typealias Item = Page
    let page: Int
    var api: String { "articles" }
    var params: [String: Any]? { ["page": page] }
}

struct Wait: APIRequest {
    typealias Item = Void
    let seconds: Double
    var api: String { "slow" }
    var params: [String: Any]? { ["seconds": seconds] }
}

struct GetFlaky: APIRequest {
    typealias Item = Void
    /// The path. The idempotency key below is the same for each attempt, so the server recognizes a request that it has
    /// refused before.
    var api: String { "flaky" }
    let options = RequestOptions(retry: RetryPolicy(baseDelay: 0.1), idempotencyKey: UUID().uuidString)
}

struct GetDown: APIRequest {
    typealias Item = Void
    let count: Int
    let waits: Bool
    var api: String { "down" }
    var params: [String: Any]? { ["count": count] }
    var options: RequestOptions {
        let breaker = CircuitBreaker(opensAfter: .failuresInRow(3), openTime: 0.2, waitsWhileOpen: waits)
        return RequestOptions(retry: RetryPolicy(maximumRetryCount: 9, baseDelay: 0.1), circuitBreaker: breaker)
    }
}

struct PostForm: APIRequest {
    typealias Item = NetworkResponse
    let name: String
    let isUrgent: Bool
    var api: String { "contact" }
    var method: NetworkService.Method { .post }
    var params: [String: Any]? { ["name": name, "urgent": isUrgent] }
}

struct GetReport: BaseAPIRequest {
    let size: Int
    var api: String { "report" }
    var params: [String: Any]? { ["size": size] }
}

struct AddFile: APIRequest {
    typealias Item = Void
    let isTus: Bool
    var api: String { isTus ? "tus" : "files" }
    var method: NetworkService.Method { .post }
    var options: RequestOptions { RequestOptions(resuming: isTus ? .tus : .http) }
}
