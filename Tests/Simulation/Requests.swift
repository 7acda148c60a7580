import EasyNetwork
import Foundation

/// The body of a document, which says what it answers.
struct Answer: Decodable, Sendable {
    var message: Int
    let job, user: Int
    let path: String
}

struct SimulatedRequest: APIRequest {
    typealias Item = Answer
    let api: String
    let method: NetworkService.Method
    let job: Int
    let language: String
    let options: RequestOptions
    var headers: [String: String]? { ["X-Job": "\(job)", "Accept-Language": language] }
    var params: [String: Any]? { method == .post ? ["job": job] : nil }
}

private struct RefreshRequest: BaseAPIRequest {
    let credential: Tokens.Credential
    let api = "token"
    let method = NetworkService.Method.post
    var headers: [String: String]? { ["X-Refresh": "\(credential.refresh)", "X-Epoch": "\(credential.epoch)"] }
}

/// Puts tokens into requests. An epoch is the time from a sign-in to the next one, or to a sign-out.
struct Tokens: Authenticator {
    struct Credential: Decodable, Sendable {
        let access, refresh: Int
        /// The server does not send it.
        var epoch = 0

        private enum CodingKeys: CodingKey { case access, refresh }
    }

    unowned let world: World

    func apply(_ credential: Credential, to request: inout TransportRequest) {
        request.headers["Authorization"] = "Bearer \(credential.access)"
        request.headers["X-Epoch"] = "\(credential.epoch)"
        world.happens(.authorizing)
        world.loop.interrupt()
    }

    func refresh(_ credential: Credential?, over service: EasyNetworkService) async throws -> Credential {
        let number = world.willRefresh(credential)
        defer { world.didRefresh(number) }
        guard let credential else { throw NetworkError(code: .unauthorized, message: "no user is signed in") }
        let time = world.history.settings.promptTime
        if time > 0 { await withCheckedContinuation { next in world.after(time) { next.resume() } } }
        world.log("refreshes token \(credential.access)")
        world.loop.interrupt()
        let response = try await service.send(RefreshRequest(credential: credential))
        var fresh = try response.decode(Credential.self)
        fresh.epoch = credential.epoch
        world.happens(.refreshing)
        world.loop.interrupt()
        return fresh
    }
}
