import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Every transport, how much of a body has been sent", .timeLimit(.minutes(10)))
struct TransportSentTests {
    typealias Kind = TransportFixture.Kind

    enum Form: CaseIterable {
        case data
        case file
        case stream
        case streamOfUnknownLength

        func body(_ bytes: Data, in folder: URL) throws -> TransportBody {
            switch self {
            case .data: return .data(bytes)
            case .file:
                let file = folder.appendingPathComponent("body")
                try bytes.write(to: file)
                return .file(file)
            case .stream: return .stream(TransportBodyStream(length: bytes.count) { InputStream(data: bytes) })
            case .streamOfUnknownLength: return .stream(TransportBodyStream { InputStream(data: bytes) })
            }
        }
    }

    @Test(
        "TRF-1: the count of sent bytes grows, and is complete before the end",
        arguments: Kind.allCases,
        Form.allCases
    )
    func told(kind: Kind, form: Form) async throws {
        let fixture = try TransportFixture(kind)
        fixture.route("PUT", "/sent") { request in .text("\(request.body.count)") }
        let folder = TestFolder()
        for count in [1, 1_000_000, 3_000_001] {
            var request = try fixture.request("/sent", .put)
            request.body = try form.body(Data(repeating: 7, count: count), in: folder.url)
            // Runs twice, because the second answer may come on the same connection.
            for _ in 0..<2 {
                let outcome = await fixture.start(request).end()
                expect(outcome.code == nil && outcome.body == Data("\(count)".utf8) && outcome.faults.isEmpty)
                expect(outcome.sent.last, equals: count)
                let grows = zip(outcome.sent, outcome.sent.dropFirst()).allSatisfy { $0 < $1 }
                expect(grows, "\(outcome.sent)")
            }
        }
    }

    @Test("REQ-9: a POST whose body has no type is not sent as a form", arguments: Kind.allCases, Form.allCases)
    func noType(kind: Kind, form: Form) async throws {
        let fixture = try TransportFixture(kind)
        fixture.route("POST", "/type") { _ in .text("ok") }
        let folder = TestFolder()
        var request = try fixture.request("/type", .post)
        request.body = try form.body(Data("a=b".utf8), in: folder.url)
        let outcome = await fixture.start(request).end()
        expect(outcome.code == nil)
        // The other type means the same as none (RFC 9110, section 8.3).
        expect([nil, "application/octet-stream"].contains(fixture.requests.first?.headers["Content-Type"]))
    }

    @Test("TRF-1: a request without body, or with an empty body, reports no sent bytes", arguments: Kind.allCases)
    func none(kind: Kind) async throws {
        let fixture = try TransportFixture(kind)
        for (method, body) in [("GET", TransportBody.none), ("PUT", .none), ("PUT", .data(Data()))] {
            fixture.route(method, "/none") { _ in .text("answer") }
            var request = try fixture.request("/none", NetworkService.Method(rawValue: method))
            request.body = body
            let outcome = await fixture.start(request).end()
            expect(outcome.code == nil && outcome.sent.isEmpty && outcome.faults.isEmpty)
        }
    }
}
