import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import EasyNetworkOutbox
@testable import TestSupport

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// What `print` shows of values.
@Suite("Descriptions of values")
struct ValueDescriptionsTests {
    private static let secretURL = URL(string: "https://user:s3cret@api.example.com/v1?token=s3cret#s3cret")
    private static let secretHeaders: HTTPHeaders = ["Authorization": "Bearer s3cret", "Accept": "text/plain"]

    @Test("BEY-21: metrics are one line of what was measured")
    func metrics() {
        var metrics = TransportMetrics(total: 0.25)
        expect("\(metrics)", equals: "total 0.25 s, waited 0.0 s")
        metrics.firstByte = 0.1
        metrics.bytesReceived = 12
        metrics.networkProtocol = "HTTP/2"
        metrics.isReusedConnection = true
        let text = "total 0.25 s, waited 0.0 s, first byte at 0.1 s, 12 bytes in, HTTP/2, connection reused"
        expect("\(metrics)", equals: text)
        expect("\(Optional(metrics) as Any)", equals: "Optional(\(text))")
    }

    @Test("BEY-21: options and policies show what differs from the defaults")
    func settings() {
        expect("\(RequestOptions())", equals: "RequestOptions()")
        let options = RequestOptions(
            timeout: 5,
            cache: CachePolicy(.http, storesOnDisk: false, maximumAge: 60),
            retry: RetryPolicy(maximumRetryCount: 3, methods: [.post, .get], baseDelay: 2),
            priority: .high,
            validation: ResponseValidation(statusCodes: Array(200...299) + [404])
        )
        expect(
            "\(options)",
            equals: "RequestOptions(timeout: 5.0, retry: RetryPolicy(maximumRetryCount: 3, methods: "
                + "[\"GET\", \"POST\"], baseDelay: 2.0), cache: CachePolicy(reading: http, storesOnDisk: false, "
                + "maximumAge: 60.0), validation: ResponseValidation(statusCodes: [200...299, 404]), priority: \"high\")"
        )
        expect("\(RetryPolicy())", equals: "RetryPolicy(maximumRetryCount: 2)")
        expect("\(CircuitBreaker())", equals: "CircuitBreaker(opensAfter: failuresInRow(5))")
        expect("\(CircuitBreaker.never)", equals: "CircuitBreaker(opensAfter: never, statusCodes: [], errorCodes: [])")
        expect("\(TransportDeadlines(connect: 3))", equals: "TransportDeadlines(connect: 3.0, idle: 60.0)")
        expect("\(ResponseValidation.any)", equals: "ResponseValidation(statusCodes: [100...999])")
    }

    @Test("BEY-21: shapes, trees and forms are short")
    func contents() throws {
        let shape: JSONShape = ["id": .integer, "name": .string.orNull, "tags": .array(of: .string).optional]
        expect("\(shape)", equals: #"{"id": Int, "name": String or null, "tags"?: [String]}"#)
        expect("\(JSONShape.oneOf(["a", "b"]))", equals: #""a" or "b""#)
        let body = Data(#"<feed lang="en" token="s3cret"><entry/><entry/></feed>"#.utf8)
        let tree = try NetworkResponse(body: body).xml()
        expect("\(tree)", equals: #"<feed lang="en" token="REDACTED"> with 2 elements"#)
        var form = MultipartForm()
        form.append("s3cret", name: "password")
        form.append("b", name: "b")
        expect("\(form)", equals: #"MultipartForm(parts: ["password", "b"])"#)
    }

    @Test("BEY-21: entries of an outbox, and messages of a mock server, show what is set")
    func messages() throws {
        let options = OutboxOptions(unique: .replace("position"), conditions: [.unmetered], tags: ["b", "a"])
        expect(
            "\(options)",
            equals: #"OutboxOptions(unique: replace("position"), conditions: ["unmetered"], tags: ["a", "b"])"#
        )
        let id = UUID()
        let name = OutboxName(
            sequence: 1,
            id: id,
            priority: .normal,
            hasDependencies: false,
            type: "SendMessage",
            lane: "chat"
        )
        var entry = OutboxEntry(name, addedAt: nil)
        expect("\(entry)", equals: #"OutboxEntry(type: "SendMessage", id: \#(id), lane: "chat")"#)
        entry.attemptCount = 2
        entry.error = NetworkError(code: .timedOut)
        let start = #"OutboxEntry(type: "SendMessage", id: \#(id), lane: "chat", attemptCount: 2, error: NetworkError"#
        expect("\(entry)".hasPrefix(start))
        let request = MockRequest(
            method: "POST",
            target: "/a?page=2&token=s3cret",
            headers: Self.secretHeaders,
            body: Data("hello".utf8)
        )
        let text = "POST /a?page=2&token=REDACTED\nAuthorization: Bearer REDACTED\nAccept: text/plain\n5 bytes"
        expect("\(request)", equals: text)
        expect("\(MockResponse.status(404))", equals: "MockResponse(statusCode: 404)")
        var response = MockResponse.text("hello")
        response.delay = 2
        expect("\(response)".contains("body: data(5 bytes), delay: 2.0"), "\(response)")
    }

    @Test("BEY-21: no description and no dump has a secret")
    func secrets() throws {
        let url = try #require(Self.secretURL)
        let entry = NetworkCache.Entry(
            key: "s3cret",
            url: url,
            headers: Self.secretHeaders,
            requestedAt: Date(timeIntervalSince1970: 0),
            receivedAt: Date(timeIntervalSince1970: 0)
        )
        expect("\(entry)", equals: "GET https://api.example.com/v1: 200, 0 bytes, received 1970-01-01T00:00:00.000Z")
        let request = Request<Void>(
            .delete,
            "users/1?token=s3cret",
            params: ["password": "s3cret"],
            headers: ["Authorization": "Bearer s3cret"]
        )
        expect("\(request)", equals: "Request<()> DELETE users/1")
        let options = RequestOptions(
            cache: CachePolicy(.http, sensitiveData: "s3cret", extraKey: "s3cret", key: "s3cret"),
            baseURL: url,
            idempotencyKey: "s3cret",
            credential: try .bearer("s3cret"),
            repeatKey: "s3cret",
            customURLRequest: URLRequest(url: url)
        )
        let start = #"RequestOptions(baseURL: "https://api.example.com/v1", idempotencyKey: REDACTED, "#
        expect("\(options)".hasPrefix(start) && "\(options)".contains("credential: REDACTED"), "\(options)")
        for value in [entry, request, options, MockResponse.data(Data(), headers: Self.secretHeaders)] as [Any] {
            var text = "\(value)"
            if !(value is MockResponse) { dump(value, to: &text) }
            expect(!text.contains("s3cret"), "\(text)")
        }
    }
}
