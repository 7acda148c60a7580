import Foundation
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@testable import EasyNetwork

@Suite("NetworkError")
struct NetworkErrorTests {
    @Test("RSP-6: the text is one sentence with the server's words and the request, without its secrets")
    func sentence() throws {
        let url = try #require(URL(string: "https://user:secret@h:8443/a/b?token=secret#secret"))
        let notFound = HTTPURLResponse.localizedString(forStatusCode: 404)
        var error = NetworkError(
            code: .unacceptableStatus,
            statusCode: 404,
            serverMessage: "No such user",
            request: .init(method: "GET", url: url),
            attempts: 2
        )
        #expect(
            error.localizedDescription == "The server answered 404 \(notFound): No such user (GET https://h:8443/a/b)."
        )
        error.serverMessage = "No such user."
        #expect(error.localizedDescription.contains("user (GET"))
        error.request = nil
        #expect(error.localizedDescription == "The server answered 404 \(notFound): No such user.")
        #expect(NetworkError(code: .cancelled).localizedDescription == "Cancelled.")
        #expect(NetworkError(code: .unauthorized, statusCode: 401).localizedDescription.contains("401"))
        #expect(NetworkError(code: .refused, message: "offline").localizedDescription.hasSuffix("sent: offline."))
        #expect(
            NetworkError(code: .init(rawValue: 10_001)).localizedDescription == "The request failed with code 10001."
        )
        #expect(!String(describing: error).contains("secret"))
    }

    @Test("RSP-6: every code has a text and a name of its own")
    func codes() {
        let codes: [NetworkError.Code] = [
            .invalidRequest, .cancelled, .dependencyFailed, .cycle, .refused, .cannotConnect, .tls, .timedOut,
            .connectionLost, .badServerResponse, .unacceptableStatus, .unauthorized, .cannotParseResponse, .notCached,
        ]
        #expect(Set(codes).count == codes.count)
        #expect(Set(codes.map(\.description)).count == codes.count)
        #expect(Set(codes.map { NetworkError(code: $0).localizedDescription }).count == codes.count)
        for code in codes {
            let error = NetworkError(code: code) as NSError
            #expect(error.code == code.rawValue)
            #expect(error.domain == "EasyNetwork.NetworkError")
        }
    }

    @Test("RSP-6: only a bounded prefix of the body is kept, however it is set")
    func boundedBody() {
        let limit = NetworkError.responseBodyLimit
        var error = NetworkError(code: .unacceptableStatus, responseBody: Data(repeating: 1, count: limit + 1))
        #expect(error.responseBody == Data(repeating: 1, count: limit))
        error.responseBody = Data(repeating: 2, count: 10 * limit)
        #expect(error.responseBody == Data(repeating: 2, count: limit))
        error.responseBody = Data([3])
        #expect(error.responseBody == Data([3]))
    }

    @Test("RSP-6: the root cause is at the bottom of a row of failed dependencies")
    func rootCause() {
        let bottom = NetworkError(code: .timedOut)
        let row = (0..<3).reduce(bottom) { cause, _ in NetworkError(code: .dependencyFailed, underlying: cause) }
        #expect(row.rootCause.code == .timedOut)
        #expect(bottom.rootCause.code == .timedOut)
        #expect(
            NetworkError(code: .dependencyFailed, underlying: URLError(.timedOut)).rootCause.code == .dependencyFailed
        )
    }
}
