// What the snippets of docstrings take for granted: types and functions of an app, and values, as parameters:
//
// - url: URL, folder: URL, file: URL, photo: URL, movie: URL, authorities: URL, certificateFile: URL, keyFile: URL
// - proxy: URL, ids: [Int], size: Int, userID: String, bytes: Data, handle: FileHandle, yesterday: Date, json: Any?
// - host: inout HostSettings, service: EasyNetworkService, queue: NetworkQueue, cache: NetworkCache, jar: CookieJar
// - transport: any NetworkTransport, events: @escaping @Sendable (TransportEvent) -> Void, clock: any NetworkClock
// - server: MockServer, request: inout TransportRequest, message: TransportRequest, response: NetworkResponse
// - error: NetworkError, answer: StreamedResponse, decoder: JSONDecoder, rows: inout [Row], filter: [String: String]
// - operation: RequestOperation<GetUser>, operations: [NetworkOperation], group: GroupOperation, news: GetNews
// - signIn: RequestOperation<SignIn>, cart: RequestOperation<GetCart>, profile: RequestOperation<GetProfile>
// - upload: NetworkOperation, requests: [GetUser], cursor: PageCursor<ListRequest>, form: MultipartForm
// - session: RequestAuthentication, saved: Tokens.Credential?, store: SessionStore, spinner: Spinner
// - booking: RequestOperation<Book>, trip: ChainOperation, outbox: Outbox
// - progressView: ProgressView, report: NetworkOperation, save: @escaping @Sendable (Tokens.Credential?) -> Void
// - timeline: Timeline, prediction: Timeline.Prediction, suggestion: Timeline.Suggestion
import Dispatch
@testable import EasyNetwork
import EasyNetworkDiagnostics
import EasyNetworkOutbox
import EasyNetworkResources
import EasyNetworkTesting
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

struct User: Decodable, ParsedItem { let id: Int; let name: String; var city = "" }
struct Profile: Decodable, Sendable { let name: String }
struct Session: Decodable, Sendable { let token: String }
struct Cart: Decodable, Sendable { let items: [String] }
struct News: Decodable, Sendable {}
struct GetCart: APIRequest { typealias Item = Cart; var api: String { "cart" } }
struct NewUser: Encodable, Sendable { let name: String }
struct Problem: Decodable, Sendable { let title: String }
struct List: Decodable, Sendable { let hasMore: Bool }
struct Movie: Decodable, Sendable { let url: String }
struct Row: Decodable, Sendable {}
enum Answer { case user(User), notice(String) }
struct TokenAnswer: Decodable, Sendable { let token, refreshToken: String }

struct GetUser: APIRequest { typealias Item = User; let id: Int; var api: String { "users/\(id)" } }
struct GetUsers: APIRequest { typealias Item = [User]; var api: String { "users" } }
struct GetProfile: APIRequest { typealias Item = Profile; var token = ""; var api: String { "profile" } }
struct ProfileRequest: APIRequest {
    typealias Item = Profile
    var user = 0, token = ""
    var api: String { "profile" }
}
struct SignIn: APIRequest { typealias Item = Session; let name: String; var api: String { "sign-in" } }
struct SignInRequest: APIRequest { typealias Item = Session; let name: String; var api: String { "sign-in" } }
struct GetNews: APIRequest { typealias Item = News; var api: String { "news" } }
struct GetCatalogue: APIRequest { typealias Item = News; var api: String { "catalogue" } }
struct ListRequest: APIRequest { typealias Item = List; let page: Int; var api: String { "list" } }
struct PlaceOrder: APIRequest {
    typealias Item = Void
    let token: String, items: [String]
    var api: String { "orders" }
}
struct Booking: Decodable, Sendable { let id: Int }
struct Book: APIRequest { typealias Item = Booking; var api: String { "bookings" } }
struct CancelBooking: APIRequest, Codable {
    typealias Item = Void
    var id: Int?, key: String?
    var api: String { "bookings/\(key ?? "")" }
}
struct PutMovie: APIRequest { typealias Item = Movie; let id: Int; var api: String { "movies/\(id)" } }
struct FileRequest: BaseAPIRequest { var api: String { "file" } }
struct GetReport: BaseAPIRequest { var token = ""; var api: String { "report" } }
struct GetExport: BaseAPIRequest { var api: String { "export" } }
struct PingRequest: BaseAPIRequest { var api: String { "ping" } }
struct SignOutRequest: BaseAPIRequest { var api: String { "sign-out" } }
struct RefreshTokens: BaseAPIRequest { let token: String; var api: String { "tokens" } }

final class UserMapper: ResponseMapper<User>, ResponseMapperProtocol {
    static func process(_ json: Any?) throws -> User {
        try process(json) { json in User(id: try json.required("id"), name: try json.required("name")) }
    }
}

struct CBORDecoder {
    func decode<Value>(_ type: Value.Type, from data: Data) throws -> Value { throw CancellationError() }
}
struct Tokens: Authenticator {
    struct Credential: Sendable {}
    func apply(_ credential: Credential, to request: inout TransportRequest) {}
    func refresh(_ credential: Credential?, over service: EasyNetworkService) async throws -> Credential { Credential() }
}
struct SessionStore: Sendable { var isValid: Bool { true }; var signInOperation: NetworkOperation { NetworkOperation() } }
extension OperationCondition { static var guestAllowed: OperationCondition { .reachable() } }
class UIViewController: @unchecked Sendable { func show(_ profile: Profile) {} }
struct Spinner: Sendable { func show() {}; func hide() {} }
final class ProgressView { var observedProgress: Progress? }

func show(_ value: Any?) {}
func append(_ value: Any) {}
func play(_ file: URL) {}
func showSignIn() {}
func showOldItems() {}
func handleFailure(_ error: NSError) {}
func sign(_ url: URL) -> String { "" }
