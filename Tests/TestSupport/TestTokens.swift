import Foundation

@testable import EasyNetwork

/// Tokens that a closure refreshes.
struct TestTokens: Authenticator {
    var refreshed: @Sendable (String?) async throws -> String
    var expired: @Sendable (String) -> Bool = { _ in false }
    var refused: @Sendable (NetworkResponse) -> Bool = { $0.statusCode == 401 }
    var applied: @Sendable (String) throws -> Void = { _ in }

    func apply(_ credential: String, to request: inout TransportRequest) throws {
        try applied(credential)
        request.headers["Authorization"] = try HTTPCredential.bearer(credential).authorization
    }

    func isRefused(_ response: NetworkResponse) -> Bool {
        refused(response)
    }

    func isExpired(_ credential: String, at date: Date) -> Bool {
        expired(credential)
    }

    func refresh(_ credential: String?, over service: EasyNetworkService) async throws -> String {
        try await refreshed(credential)
    }
}
