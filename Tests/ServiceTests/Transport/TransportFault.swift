import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork

extension MockResponse {
    /// For an answer that stalls early: Apple's sessions hold the head of one without a type, or of type text/plain,
    /// back until 512 bytes of its body have come, to guess the type.
    static let exactType: HTTPHeaders = ["Content-Type": "application/json"]
}

/// A server fault and the expected outcome of the exchange.
struct TransportFault: Sendable, CustomTestStringConvertible {
    let name: String
    let response: MockResponse
    /// The expected error; nil if the answer is accepted.
    var code: NetworkError.Code?
    var phases: Set<TransportPhase> = []
    /// The number of body bytes received.
    var bodyCount: Int?
    /// The value of the field `X-Name` in the answer.
    var field: String?
    /// Whether the fault occurs before the request has arrived.
    var isInRequest = false
    /// Whether nothing arrives until a deadline.
    var isSilent = false
    /// Whether the connection is dead without showing it.
    var leavesDeadConnection = false
    /// Whether the server closes the connection of a whole answer. A request that is sent before the client can see
    /// that is lost.
    var closesConnection = false
    /// The capability that a transport needs for this.
    var needs: TransportCapability?

    var testDescription: String { name }

    static let body = Data(repeating: 7, count: 1_000)

    static let all: [TransportFault] = beforeAnswer + inHead + inBody + harmless

    private static func answer(_ fault: MockResponse.Fault) -> MockResponse {
        MockResponse(headers: MockResponse.exactType, body: .data(body), fault: fault)
    }

    private static func fault(
        _ name: String,
        _ fault: MockResponse.Fault,
        _ code: NetworkError.Code?,
        _ phases: Set<TransportPhase>,
        bodyCount: Int? = nil,
        _ change: (inout TransportFault) -> Void = { _ in }
    ) -> TransportFault {
        var made = TransportFault(name: name, response: answer(fault), code: code, phases: phases, bodyCount: bodyCount)
        change(&made)
        return made
    }

    private static let beforeAnswer: [TransportFault] = {
        let early: Set<TransportPhase> = [.send, .firstByte]
        return [
            fault("reset at the request", .reset(at: .requestStart), .connectionLost, early) { $0.isInRequest = true },
            fault("close at the request", .close(at: .requestStart), .connectionLost, early) { $0.isInRequest = true },
            fault("stall at the request", .stall(at: .requestStart), .timedOut, early) {
                $0.isInRequest = true
                $0.isSilent = true
            },
            fault("reset in the request", .reset(at: .requestBody(after: 10)), .connectionLost, early) {
                $0.isInRequest = true
            },
            fault("close in the request", .close(at: .requestBody(after: 10)), .connectionLost, early) {
                $0.isInRequest = true
            },
            fault("stall in the request", .stall(at: .requestBody(after: 10)), .timedOut, early) {
                $0.isInRequest = true
                $0.isSilent = true
            },
            fault("half-open in the request", .halfOpen(at: .requestBody(after: 10)), .timedOut, early) {
                $0.isInRequest = true
                $0.isSilent = true
            },
            // The system answers unread bytes with a reset, which may arrive first.
            fault("close before the answer", .close, .connectionLost, early),
            fault("reset before the answer", .reset, .connectionLost, early),
            fault("stall before the answer", .stall, .timedOut, [.firstByte]) { $0.isSilent = true },
            fault("half-open before the answer", .halfOpen, .timedOut, [.firstByte]) { $0.isSilent = true },
        ]
    }()

    private static let inHead: [TransportFault] = [
        fault("close in the head", .close(at: .responseHead(after: 20)), .connectionLost, [.firstByte]) {
            $0.needs = .cutHead
        },
        fault("reset in the head", .reset(at: .responseHead(after: 20)), .connectionLost, [.firstByte]) {
            $0.needs = .cutHead
        },
        fault("stall in the head", .stall(at: .responseHead(after: 20)), .timedOut, [.firstByte]) {
            $0.isSilent = true
        },
        fault("garbage in place of a status line", .garbageStatusLine, .badServerResponse, [.firstByte]),
        fault("no HTTP", .raw(Data("SSH-2.0-OpenSSH\r\n".utf8)), .badServerResponse, [.firstByte]),
    ]

    private static let inBody: [TransportFault] = [
        fault("close in the body", .close(at: .responseBody(after: 20)), .connectionLost, [.body], bodyCount: 20),
        fault("reset in the body", .reset(at: .responseBody(after: 20)), .connectionLost, [.body], bodyCount: 20),
        fault("stall in the body", .stall(at: .responseBody(after: 20)), .timedOut, [.body], bodyCount: 20) {
            $0.isSilent = true
        },
        fault("half-open in the body", .halfOpen(at: .responseBody(after: 20)), .timedOut, [.body], bodyCount: 20) {
            $0.isSilent = true
        },
        fault("truncated", .truncate(after: 10), .connectionLost, [.body], bodyCount: 10),
        fault("a length too long", .contentLength(offBy: 3), .connectionLost, [.body], bodyCount: 1_000),
        fault("a bad chunk", .badChunk(after: 5), .badServerResponse, [.body], bodyCount: 5) {
            $0.needs = .preciseCodes
        },
        TransportFault(
            name: "chunks that end early",
            response: MockResponse(body: .chunks([body, body]), fault: .truncate(after: 1_500)),
            code: .connectionLost,
            phases: [.body],
            bodyCount: 1_500
        ),
    ]

    /// Unusual but acceptable answers.
    private static let harmless: [TransportFault] = [
        fault("stall after the answer", .stall(at: .responseEnd), nil, [], bodyCount: 1_000) {
            $0.leavesDeadConnection = true
        },
        fault("half-open after the answer", .halfOpen(at: .responseEnd), nil, [], bodyCount: 1_000) {
            $0.leavesDeadConnection = true
        },
        fault("close after the answer", .close(at: .responseEnd), nil, [], bodyCount: 1_000) {
            $0.closesConnection = true
        },
        fault("reset after the answer", .reset(at: .responseEnd), nil, [], bodyCount: 1_000) {
            $0.closesConnection = true
        },
        fault("a length too short", .contentLength(offBy: -3), nil, [], bodyCount: 997),
        fault("no reason phrase", .noReasonPhrase, nil, [], bodyCount: 1_000) { $0.needs = .lenientHead },
        fault("bare line feeds", .lineFeedsOnly, nil, [], bodyCount: 1_000) { $0.needs = .lenientHead },
        TransportFault(
            name: "fields in Latin-1",
            response: MockResponse(headers: ["X-Name": "vélo"], body: .data(body), fault: .latin1Headers),
            bodyCount: 1_000,
            field: "vélo",
            needs: .latin1
        ),
        TransportFault(
            name: "interim answers",
            response: MockResponse(body: .data(body), interim: [.init(102), .init(103, headers: ["Link": "</a>"])]),
            bodyCount: 1_000
        ),
        TransportFault(
            name: "a trickle",
            response: MockResponse(body: .data(body), bytesPerSecond: 100_000),
            bodyCount: 1_000
        ),
    ]
}
