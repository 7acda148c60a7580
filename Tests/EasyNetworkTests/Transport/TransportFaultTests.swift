import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork

@Suite("Every transport, every fault", .timeLimit(.minutes(10)))
struct TransportFaultTests {
    typealias Kind = TransportFixture.Kind

    @Test("BEY-11: one end, with the right code and phase; the next request is answered", arguments: Kind.allCases)
    func faults(kind: Kind) async throws {
        for fault in TransportFault.all {
            guard let capability = fault.needs, let reason = capability.known(kind) else {
                try await check(fault, kind)
                continue
            }
            guard !capability.isDangerous else { continue }
            // Should the platform learn it, the table is to be mended.
            await withKnownIssue(Comment(rawValue: "\(kind.testDescription): \(reason)")) {
                try await check(fault, kind)
            }
        }
    }

    private func check(_ fault: TransportFault, _ kind: Kind) async throws {
        let fixture = try TransportFixture(kind)
        fixture.route("POST", "/fault") { _ in fault.response }
        fixture.route("GET", "/ok") { _ in .text("ok") }
        if fault.isInRequest, let cause = fault.response.fault { fixture.failNextRequest(with: cause) }
        var request = try fixture.request("/fault", .post)
        request.body = .data(Data(repeating: 1, count: 5_000))
        request.deadlines = TransportDeadlines(idle: 5)
        let exchange = fixture.start(request)
        if fault.isSilent {
            await fixture.waitForFaults(1)
            if let count = fault.bodyCount {
                #expect(await eventually { exchange.recording.contents.body.count == count })
            }
            await fixture.clock.waitForTimers(1)
            // What was still on its way when the time passed has moved the deadline.
            #expect(
                await eventually {
                    fixture.clock.advance(by: 5)
                    return exchange.recording.contents.end != nil
                },
                "\(fault.name)"
            )
        }
        let outcome = await exchange.end()
        #expect(outcome.code == fault.code, "\(fault.name): \(String(describing: outcome.end?.error))")
        #expect(outcome.faults.isEmpty, "\(fault.name)")
        if let count = fault.bodyCount { #expect(outcome.body.count == count, "\(fault.name)") }
        #expect(outcome.head?.headers["X-Name"] == fault.field, "\(fault.name)")
        if let phase = outcome.end?.error?.phase {
            #expect(fault.phases.contains(phase), "\(fault.name)")
        } else {
            #expect(fault.phases.isEmpty || TransportCapability.phases.known(kind) != nil, "\(fault.name)")
        }
        #expect(outcome.end?.error?.mayHaveReachedServer ?? true || outcome.end?.error?.phase == nil, "\(fault.name)")
        guard !fault.leavesDeadConnection else { return }
        #expect(await fixture.start(try fixture.request("/ok")).end().body == Data("ok".utf8), "\(fault.name)")
        #expect(exchange.recording.contents.faults.isEmpty, "\(fault.name): something came after the end")
    }

    @Test(
        "SEC-2: 10,000 header fields, and one of a megabyte, are a bad answer",
        arguments: Kind.those(that: .manyFields).filter { $0 != .inMemory }
    )
    func endlessHead(kind: Kind) async throws {
        for fault in [MockResponse.Fault.manyHeaders(), .longHeader()] {
            let fixture = try TransportFixture(kind)
            fixture.route("GET", "/long") { _ in .fault(fault) }
            let outcome = await fixture.start(try fixture.request("/long")).end()
            #expect(outcome.code == .badServerResponse && outcome.head == nil && outcome.faults.isEmpty)
        }
    }

    @Test(
        "SEC-2: an inflation bomb ends at the limit, and what is no longer does not",
        arguments: Kind.allCases.filter { $0 != .inMemory }
    )
    func inflationBomb(kind: Kind) async throws {
        let limit = 1_000_000
        let fixture = try TransportFixture(kind, TransportConfiguration(maximumDecodedBodyCount: limit))
        fixture.route("GET", "/bomb") { _ in .inflationBomb(1 << 28) }
        fixture.route("GET", "/full") { _ in .inflationBomb(limit) }
        fixture.route("GET", "/plain") { _ in .data(Data(count: 2 * limit)) }
        let bomb = await fixture.start(try fixture.request("/bomb")).end()
        #expect(bomb.code == .bodyTooLong && bomb.body.count <= limit && bomb.faults.isEmpty)
        #expect(bomb.end?.error?.phase == .body)
        let full = await fixture.start(try fixture.request("/full")).end()
        #expect(full.code == nil && full.body.count == limit)
        let plain = await fixture.start(try fixture.request("/plain")).end()
        #expect(plain.code == nil && plain.body.count == 2 * limit)
    }

    @Test("RSP-3: a gzip that is cut short says so", arguments: Kind.allCases.filter { $0 != .inMemory })
    func cutGzip(kind: Kind) async throws {
        let fixture = try TransportFixture(kind)
        fixture.route("GET", "/cut") { _ in .gzip(Data(repeating: 7, count: 1_000), missing: 20) }
        let outcome = await fixture.start(try fixture.request("/cut")).end()
        #expect(outcome.faults.isEmpty)
        withKnownIssue(Comment(rawValue: TransportCapability.cutCoding.known(kind) ?? "")) {
            #expect(outcome.code == .cannotParseResponse)
        } when: {
            TransportCapability.cutCoding.known(kind) != nil
        }
    }

    #if os(Linux)
    @Test("BEY-14: the documentation has the table of what a transport cannot do")
    func table() throws {
        print(TransportCapability.table)
        let article = URL(fileURLWithPath: #filePath)
            .deletingLastPathComponent()
            .appendingPathComponent("../../../Sources/EasyNetwork/EasyNetwork.docc/Transports.md")
        #expect(try String(contentsOf: article.standardized, encoding: .utf8).contains(TransportCapability.table))
    }
    #endif
}
