import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

/// Uses deprecated names without a warning: its requirements are not deprecated, only their witnesses are.
private protocol FormerNames {
    static func withoutPrerequisites(_ condition: OperationCondition) -> OperationCondition
    static func breaker(waits: Bool) -> CircuitBreaker
    static func waits(_ breaker: CircuitBreaker) -> Bool
    static func setWaits(_ breaker: inout CircuitBreaker)
    static func encoders(_ date: @escaping @Sendable (Date) -> Any) -> [QueryEncoder]
    static func styles(_ encoder: QueryEncoder) -> [String]
    static func setStyles(_ encoder: inout QueryEncoder, _ date: @escaping @Sendable (Date) -> Any)
    static func finish(_ operation: ServiceOperation, recovering: Bool)
    static func initial(_ result: Result<String, NetworkError>) -> Result<Character, NetworkError>
}

private enum Former: FormerNames {
    @available(*, deprecated)
    static func withoutPrerequisites(_ condition: OperationCondition) -> OperationCondition { condition.silent }

    @available(*, deprecated)
    static func breaker(waits: Bool) -> CircuitBreaker { CircuitBreaker(openTime: 2, waits: waits, statusCodes: [503]) }

    @available(*, deprecated)
    static func waits(_ breaker: CircuitBreaker) -> Bool { breaker.waits }

    @available(*, deprecated)
    static func setWaits(_ breaker: inout CircuitBreaker) { breaker.waits = true }

    @available(*, deprecated)
    static func encoders(_ date: @escaping @Sendable (Date) -> Any) -> [QueryEncoder] {
        [
            QueryEncoder(arrays: .repeated), QueryEncoder(usesDots: true), QueryEncoder(nulls: nil),
            QueryEncoder(dates: date), QueryEncoder(usesNumericBools: true, nulls: "="),
            QueryEncoder(arrays: .indices, usesDots: true, usesNumericBools: true, nulls: "=null", dates: date),
            QueryEncoder(arrays: .repeated) { date($0) },
        ]
    }

    @available(*, deprecated)
    static func styles(_ encoder: QueryEncoder) -> [String] {
        ["\(encoder.arrays)", "\(encoder.usesDots)", encoder.nulls ?? "nil", encoder.dates == nil ? "nil" : "closure"]
    }

    @available(*, deprecated)
    static func setStyles(_ encoder: inout QueryEncoder, _ date: @escaping @Sendable (Date) -> Any) {
        encoder.arrays = .repeated
        encoder.usesDots = true
        encoder.nulls = nil
        encoder.dates = date
    }

    @available(*, deprecated)
    static func finish(_ operation: ServiceOperation, recovering: Bool) { operation.finish(recovering: recovering) }

    @available(*, deprecated)
    static func initial(_ result: Result<String, NetworkError>) -> Result<Character, NetworkError> {
        result.reformed { text in
            guard let first = text.first else { throw ResponseMapperError.missing(key: "name") }
            return first
        }
    }
}

/// Sends one request, which fails, and finishes under the former name.
private final class FailedCall: ServiceOperation, @unchecked Sendable {
    private let recovering: Bool

    init(_ service: EasyNetworkService, recovering: Bool) {
        self.recovering = recovering
        super.init(service: service)
    }

    override func execute() {
        service.request(Get(api: "missing"), success: nil) { [self] _ in
            let names: any FormerNames.Type = Former.self
            names.finish(self, recovering: recovering)
        }
    }
}

@Suite("Former names", .timeLimit(.minutes(10)))
struct FormerNamesTests: ServiceSuite {
    let transport = InMemoryTransport()
    private let names: any FormerNames.Type = Former.self

    @Test("BEY-7: silent is withoutPrerequisites")
    func silent() async {
        let log = Locked<[String]>([])
        let condition = OperationCondition("signed in") { _ in
            BlockOperation { log.withLock { $0.append("prerequisite") } }
        } holds: { _ in
            log.withLock { $0.append("condition") }
            return true
        }
        let job = TestJob()
        job.addCondition(names.withoutPrerequisites(condition))
        NetworkQueue().addOperation(job)
        await job.ended()
        expect(job.error == nil)
        expect(log.withLock { $0 }, equals: ["condition"])
    }

    @Test("OPQ-13: waits is waitsWhileOpen, also as a label; a call without either is not ambiguous")
    func waits() {
        for waits in [true, false] {
            let breaker = names.breaker(waits: waits)
            expect(breaker, equals: CircuitBreaker(openTime: 2, waitsWhileOpen: waits, statusCodes: [503]))
            expect(names.waits(breaker), equals: waits)
        }
        var breaker = CircuitBreaker()
        expect(!names.waits(breaker))
        names.setWaits(&breaker)
        expect(breaker.waitsWhileOpen)
    }

    @Test("REQ-2: an encoder has the same styles under the former names; a call without a label is not ambiguous")
    func styles() throws {
        let date: @Sendable (Date) -> Any = { Int($0.timeIntervalSince1970) }
        let encoders = [
            QueryEncoder(arrayStyle: .repeated), QueryEncoder(usesDotNotation: true), QueryEncoder(nullSuffix: nil),
            QueryEncoder(encodeDate: date), QueryEncoder(usesNumericBools: true, nullSuffix: "="),
            QueryEncoder(
                arrayStyle: .indices,
                usesDotNotation: true,
                usesNumericBools: true,
                nullSuffix: "=null",
                encodeDate: date
            ),
            QueryEncoder(arrayStyle: .repeated) { date($0) },
        ]
        let params: [String: Any] = [
            "a": [1, 2], "b": true, "d": Date(timeIntervalSince1970: 5), "n": Int?.none as Any, "o": ["x": 1],
        ]
        let former = names.encoders(date)
        expect(former.count, equals: encoders.count)
        for (former, encoder) in zip(former, encoders) {
            try expect(former.encode(params), equals: encoder.encode(params))
            let date = encoder.encodeDate == nil ? "nil" : "closure"
            let styles = ["\(encoder.arrayStyle)", "\(encoder.usesDotNotation)", encoder.nullSuffix ?? "nil", date]
            expect(names.styles(encoder), equals: styles)
        }
        // These would not compile if they were ambiguous, and would warn if they called the former initializer.
        try expect(QueryEncoder().encode(["b": true]), equals: "b=true")
        try expect(QueryEncoder(usesNumericBools: true).encode(["b": true]), equals: "b=1")
        var encoder = QueryEncoder { _ in "date" }
        try expect(encoder.encode(["d": Date()]), equals: "d=date")
        names.setStyles(&encoder, date)
        try expect(encoder.encode(params), equals: "a=1&a=2&b=true&d=5&o.x=1")
    }

    @Test("BEY-16: finish(recovering:) is finish(ignoringFailures:)", arguments: [true, false])
    func finish(recovering: Bool) async {
        transport.route("GET", "/missing") { _ in .status(404) }
        let operation = FailedCall(service(), recovering: recovering)
        NetworkQueue().addOperation(operation)
        await operation.ended()
        expect(operation.error?.code, equals: recovering ? nil : .unacceptableStatus)
    }

    @Test("RSP-5: reformed is tryMap")
    func reformed() throws {
        try expect(names.initial(.success("Ada")).get(), equals: "A")
        let error = #expect(throws: NetworkError.self) { try names.initial(.success("")).get() }
        expect(error?.code, equals: .cannotParseResponse)
        let failure = #expect(throws: NetworkError.self) { try names.initial(.failure(.init(code: .timedOut))).get() }
        expect(failure?.code, equals: .timedOut)
    }
}
