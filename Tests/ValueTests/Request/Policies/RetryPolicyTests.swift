import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("RetryPolicy")
struct RetryPolicyTests {
    private let url: URL

    init() throws {
        url = try #require(URL(string: "https://api.example.com/a"))
    }

    private func delay(
        _ policy: RetryPolicy = RetryPolicy(),
        after error: NetworkError,
        method: NetworkService.Method = .get,
        headers: HTTPHeaders = HTTPHeaders(),
        body: TransportBody = .none,
        retryCount: Int = 0,
        random: Double = 1,
        mayHaveActed: Bool = false
    ) -> TimeInterval? {
        let message = TransportRequest(method: method, url: url, headers: headers, body: body)
        let date = Date(timeIntervalSince1970: 1_767_225_600)
        return policy.delay(
            after: error,
            of: message,
            retryCount: retryCount,
            date: date,
            random: random,
            mayHaveActed: mayHaveActed
        )
    }

    private func status(_ code: Int, _ headers: HTTPHeaders = HTTPHeaders()) -> NetworkError {
        NetworkError(code: .unacceptableStatus, statusCode: code, headers: headers, attempts: 1)
    }

    @Test("BEY-8: temporary statuses are retried, others are not")
    func statuses() {
        let retried = (100...599).filter { delay(after: status($0)) != nil }
        expect(retried, equals: [408, 425, 429, 500, 502, 503, 504])
    }

    @Test("BEY-8: lost connections and deadlines are retried, permanent failures are not")
    func errors() {
        let codes: [NetworkError.Code] = [
            .invalidRequest, .cancelled, .refused, .cannotConnect, .tls, .timedOut, .connectionLost, .badServerResponse,
            .bodyTooLong, .unauthorized, .cannotParseResponse, .redirectFailed,
            .notConnected,
        ]
        let retried = codes.filter { delay(after: NetworkError(code: $0, attempts: 1)) != nil }
        expect(retried, equals: [.cannotConnect, .timedOut, .connectionLost, .notConnected])
        // A proxy's refusal of a tunnel has a status.
        let refusals = [403, 407, 429, 502, 503].filter { status in
            delay(after: NetworkError(code: .cannotConnect, statusCode: status, attempts: 1)) != nil
        }
        expect(refusals, equals: [429, 502, 503])
        let never = RetryPolicy(errorCodes: [.timedOut])
        expect(delay(never, after: NetworkError(code: .cannotConnect, statusCode: 502, attempts: 1)) == nil)
    }

    @Test("BEY-8: what a server may have acted on is not sent again")
    func acted() {
        expect(delay(after: status(503), method: .post) != nil)
        expect(delay(after: status(503), method: .post, mayHaveActed: true) == nil)
    }

    @Test("BEY-8: a POST may be sent twice with an Idempotency-Key; one that failed before it was sent has not acted")
    func post() {
        let policy = RetryPolicy()
        for method in [NetworkService.Method.post, .patch] {
            expect(!policy.isRepeatable(TransportRequest(method: method, url: url)))
            let keyed = TransportRequest(method: method, url: url, headers: ["idempotency-key": "1"])
            expect(policy.isRepeatable(keyed))
        }
        var lost = NetworkError(code: .connectionLost, attempts: 1)
        lost.phase = .send
        expect(lost.mayHaveReachedServer && status(503).mayHaveReachedServer)
        lost.phase = .tls
        expect(!lost.mayHaveReachedServer)
        expect(!NetworkError(code: .cannotConnect, attempts: 1).mayHaveReachedServer)
        var refusedTunnel = NetworkError(code: .cannotConnect, statusCode: 502, attempts: 1)
        refusedTunnel.phase = .connect
        expect(!refusedTunnel.mayHaveReachedServer)
    }

    @Test("BEY-8: PUT, DELETE and HEAD are idempotent", arguments: ["PUT", "DELETE", "HEAD", "OPTIONS", "TRACE"])
    func idempotent(method: String) {
        expect(RetryPolicy().isRepeatable(TransportRequest(method: NetworkService.Method(rawValue: method), url: url)))
    }

    @Test("BEY-8: the delay is random up to a bound that doubles up to the maximum")
    func jitter() {
        let policy = RetryPolicy(maximumRetryCount: 100, baseDelay: 1, maximumDelay: 5)
        expect((0..<5).map { delay(policy, after: status(500), retryCount: $0) }, equals: [1, 2, 4, 5, 5])
        expect(delay(policy, after: status(500), retryCount: 99), equals: 5)
        expect(delay(policy, after: status(500), retryCount: 2, random: 0), equals: 0)
        expect(delay(policy, after: status(500), retryCount: 2, random: 0.25), equals: 1)
        let none = RetryPolicy(baseDelay: -1)
        expect(delay(none, after: status(500)), equals: 0)
    }

    @Test("BEY-8: the policy limits the retries; .never allows none")
    func limit() {
        expect(delay(after: status(503), retryCount: 1) != nil)
        expect(delay(after: status(503), retryCount: 2) == nil)
        expect(delay(.never, after: status(503)) == nil)
    }

    @Test("BEY-8: Retry-After is the minimum, as seconds and as a date; beyond the maximum the request fails at once")
    func retryAfter() {
        expect(delay(after: status(503, ["Retry-After": "2"])), equals: 2)
        expect(delay(after: status(503, ["Retry-After": "0"])), equals: 0.5)
        expect(delay(after: status(503, ["Retry-After": "Thu, 01 Jan 2026 00:00:07 GMT"])), equals: 7)
        expect(delay(after: status(503, ["Retry-After": "60"])), equals: 60)
        expect(delay(after: status(503, ["Retry-After": "61"])) == nil)
        expect(delay(after: status(503, ["Retry-After": "soon"])), equals: 0.5)
    }

    @Test(
        "BEY-8: each request adds its part to the budget, each retry takes one, up to the maximum"
    )
    func budget() {
        func host(_ budget: Double) -> HostConfiguration {
            HostConfiguration(baseURL: nil) { $0.retryBudget = budget }
        }
        func retries(_ host: HostConfiguration, afterProgress hasProgressed: Bool = false) -> Int {
            var count = 0
            while count < 1_000, host.takeRetry(afterProgress: hasProgressed) { count += 1 }
            return count
        }
        let bounded = host(2)
        expect(retries(bounded), equals: 2)
        for _ in 0..<4 { bounded.payForRetries() }
        expect(!bounded.takeRetry(afterProgress: false))
        for _ in 0..<2 { bounded.payForRetries() }
        expect(retries(bounded) == 1 && (1...2).contains(retries(bounded, afterProgress: true)))
        for _ in 0..<1_000 { bounded.payForRetries() }
        expect(retries(bounded), equals: 100)
        // A budget that was full is paid into again when a retry has been taken from it.
        for _ in 0..<11 { bounded.payForRetries() }
        expect(retries(bounded), equals: 2)
        expect(retries(host(.infinity)), equals: 1_000)
    }
}
