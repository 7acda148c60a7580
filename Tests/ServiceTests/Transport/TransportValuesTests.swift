import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("DeadlineWatch")
struct DeadlineWatchTests {
    private struct Late: Error, Equatable {
        let message: String?

        init(_ message: String?) { self.message = message }
    }

    private func timeLeft(_ watch: DeadlineWatch, _ now: TimeInterval) -> Result<TimeInterval, Late> {
        Result { () throws(NetworkError) in try watch.timeLeft(now: now) }.mapError { error in
            expect(error.code, equals: .timedOut)
            return Late(error.message)
        }
    }

    @Test("REQ-5: activity moves the idle deadline, and not the total one")
    func deadlines() {
        var watch = DeadlineWatch(TransportDeadlines(idle: 10, total: 25), now: 100)
        expect(timeLeft(watch, 100), equals: .success(10))
        watch.activity(now: 108)
        expect(timeLeft(watch, 110), equals: .success(8))
        watch.activity(now: 117)
        expect(timeLeft(watch, 120), equals: .success(5))
        expect(timeLeft(watch, 125), equals: .failure(Late("not finished after 25.0 seconds")))
        expect(timeLeft(DeadlineWatch(TransportDeadlines(idle: 0.5), now: 0), 0.5) != .success(0))
        expect(timeLeft(DeadlineWatch(TransportDeadlines(idle: nil), now: 0), 1e9), equals: .success(.infinity))
        expect(timeLeft(DeadlineWatch(TransportDeadlines(idle: .nan, total: 3), now: 0), 1), equals: .success(2))
    }

    @Test("REQ-5: the connect and first-byte deadlines end with the connection and the answer")
    func phases() {
        var watch = DeadlineWatch(TransportDeadlines(connect: 2, firstByte: 5, idle: nil), now: 10)
        expect(timeLeft(watch, 11), equals: .success(1))
        expect(timeLeft(watch, 12), equals: .failure(Late("no connection after 2.0 seconds")))
        watch.connected()
        expect(timeLeft(watch, 12), equals: .success(3))
        expect(timeLeft(watch, 15), equals: .failure(Late("no response after 5.0 seconds")))
        watch.answered()
        expect(timeLeft(watch, 15), equals: .success(.infinity))
    }

    @Test("REQ-5: a pause of the receiver does not count as the server's silence")
    func paused() {
        var watch = DeadlineWatch(TransportDeadlines(idle: 10, total: 1_000), now: 0)
        watch.setPaused(true, now: 5)
        expect(timeLeft(watch, 500), equals: .success(500))
        watch.setPaused(false, now: 500)
        expect(timeLeft(watch, 505), equals: .success(5))
        expect(timeLeft(watch, 510), equals: .failure(Late("no byte was transferred for 10.0 seconds")))
    }

    @Test("REQ-5: a timer that fires seconds late, after a suspension, grants each deadline one idle period more")
    func suspended() {
        var watch = DeadlineWatch(TransportDeadlines(firstByte: 3, idle: 10, total: 25), now: 0)
        watch.timerFired(due: 3, now: 4)
        expect(timeLeft(watch, 4), equals: .failure(Late("no response after 3.0 seconds")))
        watch.timerFired(due: 3, now: 600)
        expect(timeLeft(watch, 600), equals: .success(3))
        watch.answered()
        expect(timeLeft(watch, 601), equals: .success(9))
        expect(timeLeft(watch, 610), equals: .failure(Late("not finished after 25.0 seconds")))

        var patient = DeadlineWatch(TransportDeadlines(idle: nil, total: 25), now: 0)
        patient.timerFired(due: 25, now: 600)
        expect(timeLeft(patient, 601), equals: .success(24))
        patient = DeadlineWatch(TransportDeadlines(idle: .nan, total: 25), now: 0)
        patient.timerFired(due: 25, now: 600)
        expect(timeLeft(patient, 600), equals: .success(25))
    }
}

@Suite("TransportRequest")
struct TransportRequestTests {
    @Test("RSP-6: a printed or dumped message contains no secret")
    func secrecy() throws {
        let message = TransportRequest(
            method: .put,
            url: try #require(URL(string: "https://lovelace:s3cret@h/a?token=s3cret&page=2")),
            headers: ["Authorization": "Bearer s3cret", "Accept": "a/b"],
            body: .data(Data("s3cret".utf8))
        )
        var dumped = ""
        dump([message], to: &dumped)
        for text in ["\(message)", message.debugDescription, String(describing: [message]), dumped] {
            expect(!text.contains("s3cret"))
        }
        expect("\(message)", equals: "PUT https://h/a")
        expect(message.debugDescription.hasPrefix("TransportRequest PUT https://REDACTED@h/a?token=REDACTED&page=2\n"))
        expect(message.debugDescription.contains("Accept: a/b"))
    }
}

@Suite("Secrets of transports")
struct TransportSecretsTests {
    @Test("RSP-6: a printed or dumped configuration contains no password")
    func secrecy() throws {
        let file = URL(fileURLWithPath: "/etc/client.pem")
        var configuration = TransportConfiguration()
        configuration.proxy = .url(try #require(URL(string: "http://lovelace:s3cret@proxy:3128")))
        configuration.tls.clientCertificate = .init(certificateFile: file, keyFile: file, keyPassword: "s3cret")
        let transport = configuration.makeTransport()
        let all: [Any] = [
            configuration, configuration.proxy, configuration.tls, configuration.tls.clientCertificate as Any,
            [configuration], transport,
        ]
        for value in all {
            var dumped = ""
            dump(value, to: &dumped)
            // No address in hexadecimal digits contains this name.
            for text in ["\(value)", String(reflecting: value), dumped] {
                expect(!text.contains("s3cret") && !text.contains("lovelace"), "\(text)")
            }
        }
        expect("\(configuration)".contains("proxy:3128") && "\(configuration)".contains("client.pem"))
    }

    @Test("RSP-6: a printed head contains no secret")
    func head() {
        let head = TransportHead(statusCode: 200, headers: ["Set-Cookie": "id=s3cret", "X-Id": "7"])
        for value in [head, TransportEvent.head(head), TransportEnd(trailers: head.headers)] as [Any] {
            var dumped = ""
            dump(value, to: &dumped)
            for text in ["\(value)", String(reflecting: value), dumped] { expect(!text.contains("s3cret"), "\(text)") }
        }
        expect(String(reflecting: head).contains("X-Id: 7"))
    }
}

@Suite("DecodedBodyLimit")
struct DecodedBodyLimitTests {
    @Test("SEC-2: a body has a limit if a coding is removed, of the content or of the transfer")
    func limit() {
        let table: [(HTTPHeaders, Bool)] = [
            ([:], false), (["Content-Encoding": "identity"], false), (["Transfer-Encoding": "Chunked"], false),
            (["Content-Encoding": "gzip"], true), (["Transfer-Encoding": "gzip, chunked"], true),
        ]
        for (headers, isLimited) in table {
            let head = TransportHead(statusCode: 200, headers: headers)
            expect((head.hasContentCoding || head.hasTransferCoding), equals: isLimited, "\(headers)")
        }
        var limit = DecodedBodyLimit(10)
        let outcomes = [10, 1].map { count in Result { () throws(NetworkError) in try limit.take(count) } }
        #expect(throws: Never.self) { try outcomes[0].get() }
        #expect(throws: NetworkError.self) { try outcomes[1].get() }
    }
}

@Suite("ConnectionAdmission")
struct ConnectionAdmissionTests {
    private func names(_ tokens: [Token]) -> [Int] { tokens.map(\.name) }

    private final class Token {
        let name: Int
        init(_ name: Int) { self.name = name }
    }

    @Test("BEY-6: an origin has no more than its limit, the others wait in order, and origins are separate")
    func admission() {
        var admission = ConnectionAdmission<Token>(perOrigin: 2)
        let entered = (0..<50).map { admission.enter(Token($0), origin: "a") }
        expect(entered, equals: [true, true] + Array(repeating: false, count: 48))
        let otherOrigin = admission.enter(Token(50), origin: "b")
        expect(otherOrigin)
        for name in 2..<50 { expect(names(admission.end(origin: "a")), equals: [name]) }
        expect(admission.end(origin: "a").isEmpty)
        expect(admission.end(origin: "a").isEmpty)
        let later = admission.enter(Token(51), origin: "a")
        expect(later)
    }

    @Test("BEY-6: no more than the limit in all, in the order of the places with their origins")
    func total() {
        var admission = ConnectionAdmission<Token>(perOrigin: 2, total: 3)
        let origins = ["a", "a", "a", "b", "b", "c"]
        let entered = origins.enumerated().map { admission.enter(Token($0.offset), origin: $0.element) }
        expect(entered, equals: [true, true, false, true, false, false])
        // The free place in total goes to the second of b, which waited for it first; the place at origin a goes to the
        // third of a, which then waits for a place in total.
        expect(names(admission.end(origin: "a")), equals: [4])
        expect(names(admission.end(origin: "b")), equals: [5])
        expect(names(admission.end(origin: "a")), equals: [2])
        for origin in ["a", "b", "c"] { expect(admission.end(origin: origin).isEmpty) }
    }

    @Test("BEY-6: the limit of an origin can rise and fall")
    func originLimit() {
        var admission = ConnectionAdmission<Token>(perOrigin: 1, total: 5)
        for name in 0..<8 { _ = admission.enter(Token(name), origin: "a") }
        expect(names(admission.setLimit(3, origin: "a")), equals: [1, 2])
        expect(admission.setLimit(3, origin: "a").isEmpty)
        expect(names(admission.end(origin: "a")), equals: [3])
        expect(admission.setLimit(1, origin: "a").isEmpty)
        expect(admission.end(origin: "a").isEmpty && admission.end(origin: "a").isEmpty)
        expect(names(admission.end(origin: "a")), equals: [4])
        // The limit of an origin is kept while no exchange is in progress.
        expect(names(admission.setLimit(10, origin: "a")), equals: [5, 6, 7])
        for _ in 0..<4 { _ = admission.end(origin: "a") }
        let entered = (0..<6).map { admission.enter(Token($0), origin: "a") }
        expect(entered, equals: [true, true, true, true, true, false])
    }
}
