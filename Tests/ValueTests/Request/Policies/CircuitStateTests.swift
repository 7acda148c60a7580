import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("The circuit to a server")
struct CircuitStateTests {
    private typealias Pass = CircuitState.Pass

    /// A circuit, with the passes that it has given and that have not ended.
    private struct Run {
        var circuit = CircuitState()
        var breaker = CircuitBreaker()
        var now: TimeInterval = 0
        var under: [Pass] = []

        mutating func call() -> CircuitState.Admission {
            let admission = circuit.mayCall(at: now)
            if case .go(let pass) = admission { under.append(pass) }
            return admission
        }

        /// Whether a call of its own may go, and ends at once.
        @discardableResult
        mutating func call(fails: Bool, retryAfter: TimeInterval? = nil) -> CircuitState.Change? {
            guard case .go = call() else { return nil }
            return end(under.count - 1, fails: fails, retryAfter: retryAfter)
        }

        /// - Parameter fails: nil for an end that says nothing.
        mutating func end(_ index: Int, fails: Bool?, retryAfter: TimeInterval? = nil) -> CircuitState.Change? {
            let pass = under.remove(at: index)
            switch fails {
            case true?: return circuit.failed(pass, at: now, what: "status 503", retryAfter: retryAfter, breaker)
            case false?: return circuit.succeeded(pass, at: now, breaker)
            case nil: return circuit.givenUp(pass, at: now)
            }
        }

        var isClosed: Bool { circuit.refusal(at: now) == nil && circuit.nextTrial == nil }
    }

    @Test("OPQ-13: failures in a row open the circuit; a success between them begins anew")
    func inRow() {
        var run = Run(breaker: CircuitBreaker(opensAfter: .failuresInRow(3)))
        for fails in [true, true, false, true, true] { expect(run.call(fails: fails) == nil) }
        expect(run.call(fails: true), equals: .opened)
        expect(run.call(), equals: .refused(seconds: 5))
        var careful = Run(breaker: CircuitBreaker(opensAfter: .failuresInRow(0)))
        expect(careful.call(fails: true), equals: .opened)
        var never = Run(breaker: .never)
        for _ in 0..<1_000 { expect(never.call(fails: true) == nil) }
    }

    @Test("OPQ-13: a number or a share of failures within a window opens the circuit, and older ones do not count")
    func windows() {
        var run = Run(breaker: CircuitBreaker(opensAfter: .failures(3, within: 10)))
        for number in 0..<20 {
            run.now = Double(number) * 6
            expect(run.call(fails: true) == nil && run.call(fails: false) == nil)
        }
        expect(run.call(fails: true), equals: .opened)
        expect(run.circuit.error(host: "a", seconds: nil).message?.contains("3 failures within 10 s"), equals: true)

        var share = Run(breaker: CircuitBreaker(opensAfter: .share(0.5, ofAtLeast: 10, within: 1)))
        for number in 0..<9 { expect(share.call(fails: number % 3 != 0) == nil) }
        share.now = 2
        for number in 0..<9 { expect(share.call(fails: number % 3 == 0) == nil) }
        for _ in 0..<2 { expect(share.call(fails: true) == nil) }
        expect(share.call(fails: true), equals: .opened)
        expect(
            share.circuit.error(host: "a", seconds: nil).message?.contains("6 failures of 12 messages within 1 s"),
            equals: true
        )
        for window in [TimeInterval.nan, .infinity, -1, 0, .leastNonzeroMagnitude, .greatestFiniteMagnitude] {
            var odd = Run(breaker: CircuitBreaker(opensAfter: .failures(2, within: window)))
            odd.now = 1e9
            expect(odd.call(fails: true) == nil && odd.call(fails: true) == .opened)
        }
    }

    @Test("OPQ-13: each failed trial doubles the time to the next one up to the maximum, and a success resets it")
    func backoff() {
        var run = Run(breaker: CircuitBreaker(opensAfter: .failuresInRow(1), openTime: 5, maximumOpenTime: 30))
        run.call(fails: true)
        for seconds: TimeInterval in [5, 10, 20, 30, 30] {
            expect(run.call(), equals: .refused(seconds: seconds))
            run.now += seconds
            expect(run.call(fails: true), equals: .opened)
        }
        expect(
            run.circuit.error(host: "a", seconds: 4.23).message?.hasSuffix(
                "is open after 1 failure in a row and 5 failed trials, the last one status 503; "
                    + "the next trial can start in 4.2 s"
            ),
            equals: true
        )
        run.now += 30
        expect(run.call(fails: false) == .closed && run.isClosed)
        run.call(fails: true)
        expect(run.call(), equals: .refused(seconds: 5))
    }

    @Test("OPQ-13: the circuit is open for the server's Retry-After at least, up to a day")
    func retryAfter() {
        var run = Run(breaker: CircuitBreaker(opensAfter: .failuresInRow(2)))
        run.call(fails: true, retryAfter: 100)
        expect(run.call() != .refused(seconds: 100), "one failure does not open it")
        let late = run.under.count - 1
        run.call(fails: true)
        expect(run.call(), equals: .refused(seconds: 100))
        // Of a message that was under way when it opened.
        expect(run.end(late, fails: true, retryAfter: 200) == nil)
        expect(run.call(), equals: .refused(seconds: 200))
        run.now += 200
        expect(run.call(fails: false), equals: .closed)
        run.call(fails: true, retryAfter: .infinity)
        run.call(fails: true)
        expect(run.call(), equals: .refused(seconds: 86_400))
        let breaker = CircuitBreaker(openTime: .infinity, maximumOpenTime: .nan)
        expect(breaker.openTime(afterFailedTrials: 0), equals: 86_400)
        expect(CircuitBreaker(openTime: .nan).openTime(afterFailedTrials: 3), equals: 0)
    }

    @Test("OPQ-13: a trial that runs long lets others go; if it fails before one succeeds, the circuit opens")
    func longTrial() {
        /// A circuit whose trial has run long.
        func run() -> Run {
            var run = Run(breaker: CircuitBreaker(opensAfter: .failuresInRow(2)))
            for _ in 0..<2 { run.call(fails: true) }
            run.now = 5
            _ = run.call()
            expect(run.call() == .refused(seconds: nil) && run.circuit.ranLong(run.under[0]) == .closed && run.isClosed)
            expect(run.circuit.ranLong(run.under[0]) == nil)
            return run
        }
        var fails = run()
        expect(fails.call(fails: true) == nil)
        // The first failure of its own, and with the trial's it is not one of two in a row, but a failed trial.
        expect(fails.end(0, fails: true), equals: .opened)
        expect(fails.call(), equals: .refused(seconds: 10))
        var threshold = run()
        for _ in 0..<2 { threshold.call(fails: true) }
        expect(threshold.call(), equals: .refused(seconds: 5))
        expect(threshold.end(0, fails: false) == nil && !threshold.isClosed)
        for ends in [false, nil] {
            var late = run()
            if ends == false { expect(late.call(fails: false) == nil) }
            expect(late.end(0, fails: ends == nil ? nil : true) == nil && late.isClosed, "an ordinary failure, or none")
        }
        var succeeds = run()
        expect(succeeds.end(0, fails: false) == nil && succeeds.isClosed)
        for _ in 0..<2 { succeeds.call(fails: true) }
        expect(succeeds.call(), equals: .refused(seconds: 5))
    }

    @Test("OPQ-13: what ends after the circuit has opened or closed does not count")
    func late() {
        var run = Run(breaker: CircuitBreaker(opensAfter: .failuresInRow(1)))
        for _ in 0..<4 { _ = run.call() }
        expect(run.end(0, fails: true), equals: .opened)
        expect(run.end(0, fails: false) == nil && run.call() == .refused(seconds: 5))
        run.now = 5
        _ = run.call()
        expect(run.end(0, fails: true) == nil && run.call() == .refused(seconds: nil), "a trial is under way")
        expect(run.end(1, fails: false), equals: .closed)
        expect(run.end(0, fails: true) == nil && run.isClosed)
    }

    @Test("OPQ-13: statuses 429 and 5xx and failed connections are failures, other answers successes, a cancel neither")
    func verdicts() {
        let (breaker, date) = (CircuitBreaker(), Date(timeIntervalSince1970: 0))
        let failures = (100...599).filter { breaker.verdict(on: $0, HTTPHeaders(), at: date) != .success }
        expect(failures, equals: [429] + Array(500...599))
        expect(
            breaker.verdict(on: 503, ["Retry-After": "7"], at: date),
            equals: .failure(what: "status 503", retryAfter: 7)
        )
        for code: NetworkError.Code in [.cannotConnect, .tls, .timedOut, .connectionLost, .badServerResponse] {
            expect(
                breaker.verdict(on: NetworkError(code: code), at: date),
                equals: .failure(what: "\(code)", retryAfter: nil)
            )
        }
        for code: NetworkError.Code in [.cancelled, .notConnected, .refused, .cannotWriteFile, .circuitOpen] {
            expect(breaker.verdict(on: NetworkError(code: code), at: date) == nil)
        }
        expect(breaker.verdict(on: NetworkError(code: .bodyTooLong, statusCode: 200), at: date), equals: .success)
    }

    @Test(
        "OPQ-13: whatever happens, there is one trial at most, and always a next one",
        arguments: 0..<200 as Range<UInt64>
    )
    func laws(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let thresholds: [CircuitBreaker.Threshold] = [
            .failuresInRow(2), .failures(3, within: 8), .share(0.4, ofAtLeast: 4, within: 8),
        ]
        var run = Run()
        run.breaker = CircuitBreaker(
            opensAfter: thresholds[Int(seed % 3)],
            openTime: Double.random(in: 0...4, using: &random),
            maximumOpenTime: 20
        )
        /// The trials that have run long.
        var long: [Pass] = []
        for step in 0..<400 {
            let trialCount = run.under.count(where: \.isTrial)
            switch Int.random(in: 0..<8, using: &random) {
            case 6:
                guard let index = run.under.firstIndex(where: \.isTrial) else { continue }
                let isCurrent = run.circuit.refusal(at: run.now) == .refused(seconds: nil)
                expect(run.circuit.ranLong(run.under[index]) == .closed && isCurrent && run.isClosed, "seed \(seed)")
                long.append(run.under.remove(at: index))
            case 7:
                guard !long.isEmpty else { continue }
                run.under.append(long.removeFirst())
                let fails: Bool? = [true, false, nil].randomElement(using: &random) ?? nil
                let change = run.end(run.under.count - 1, fails: fails)
                expect(change == nil || change == .opened && fails == true, "seed \(seed), step \(step)")
            case 0: run.now += Double.random(in: 0...3, using: &random)
            case 1, 2:
                let wasClosed = run.isClosed
                switch run.call() {
                case .go(let pass):
                    expect(pass.isTrial != wasClosed, "seed \(seed), step \(step)")
                    expect(!pass.isTrial || trialCount == 0, "two trials: seed \(seed), step \(step)")
                case .refused(let seconds?): expect(seconds > 0 && trialCount == 0, "seed \(seed), step \(step)")
                case .refused(nil): expect(trialCount, equals: 1, "no trial to wait for: seed \(seed), step \(step)")
                }
            default:
                guard let index = run.under.indices.randomElement(using: &random) else { continue }
                let (isTrial, time) = (run.under[index].isTrial, run.circuit.nextTrial)
                let fails: Bool? = [true, true, false, nil].randomElement(using: &random) ?? nil
                let retryAfter = fails == true && Bool.random(using: &random) ? 6.0 : nil
                switch run.end(index, fails: fails, retryAfter: retryAfter) {
                case .opened:
                    expect(fails == true && (isTrial || time == nil), "seed \(seed), step \(step)")
                    let next = run.circuit.nextTrial ?? .infinity
                    expect(next >= run.now + (retryAfter ?? 0) && next <= run.now + 26, "seed \(seed), step \(step)")
                case .closed: expect(fails == false && isTrial, "seed \(seed), step \(step)")
                case .freed:
                    expect(fails == nil && isTrial && run.circuit.nextTrial != nil, "seed \(seed), step \(step)")
                case nil: expect(!isTrial, "the end of a trial is not heard: seed \(seed), step \(step)")
                }
            }
        }
        // From wherever it is, it closes.
        while !run.under.isEmpty { _ = run.end(0, fails: nil) }
        if let time = run.circuit.nextTrial {
            run.now = max(run.now, time)
            expect(run.call(fails: false), equals: .closed, "seed \(seed)")
        }
        expect(run.isClosed, "seed \(seed)")
    }
}
