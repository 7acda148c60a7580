#if DEBUG
import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork

@Suite("Properties with a type that the protocol does not want")
struct MisplacedPropertyTests {
    private struct Timed: BaseAPIRequest {
        let api = "a"
        let timeout = 0.2
    }

    private struct Posted: BaseAPIRequest {
        let api = "a"
        let method = NetworkService.Method.post
        let body = RequestBody.text("hello")
    }

    private struct Counted: BaseAPIRequest {
        let api = "a"
        let params = ["a": 1]
    }

    private struct Sound: BaseAPIRequest {
        let api = "a"
        let timeout: TimeInterval? = 0.2
        let retry: RetryPolicy? = nil
        /// Its own, of another type.
        let cache = "yes"
        var headers: [String: String]? { ["X": "1"] }
    }

    private func error(_ request: some BaseAPIRequest) -> NetworkError? {
        let host = HostConfiguration(baseURL: URL(string: "http://one.example"))
        return #expect(throws: NetworkError.self) { try RequestBuilder.build(request, for: host) }
    }

    @Test("REQ-5: one that would be passed over without a word is an error that says what to write")
    func found() throws {
        #expect(error(Timed())?.message?.contains("write \"timeout: TimeInterval?\"") == true)
        #expect(error(Posted())?.message?.contains("write \"body: RequestBody?\"") == true)
        #expect(error(Counted())?.message?.contains("\"params\" is a Dictionary<String, Int>") == true)
        let host = HostConfiguration(baseURL: URL(string: "http://one.example"))
        #expect(try RequestBuilder.build(Sound(), for: host).deadlines.total == 0.2)
    }
}
#endif
