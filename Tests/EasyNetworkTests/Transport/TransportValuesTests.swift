import Foundation
import Testing

@testable import EasyNetwork

@Suite("DeadlineWatch")
struct DeadlineWatchTests {
    @Test("REQ-5: activity moves the idle deadline, and not the total one")
    func deadlines() {
        var watch = DeadlineWatch(TransportDeadlines(idle: 10, total: 25), now: 100)
        #expect(watch.verdict(now: 100) == .checkAgain(after: 10))
        watch.activity(now: 108)
        #expect(watch.verdict(now: 110) == .checkAgain(after: 8))
        watch.activity(now: 117)
        #expect(watch.verdict(now: 120) == .checkAgain(after: 5))
        #expect(watch.verdict(now: 125) == .expired(message: "not done after 25.0 seconds"))
        #expect(DeadlineWatch(TransportDeadlines(idle: 0.5), now: 0).verdict(now: 0.5) != .checkAgain(after: 0))
        #expect(DeadlineWatch(TransportDeadlines(idle: nil), now: 0).verdict(now: 1e9) == .never)
        #expect(
            DeadlineWatch(TransportDeadlines(idle: .nan, total: 3), now: 0).verdict(now: 1) == .checkAgain(after: 2)
        )
    }

    @Test("REQ-5: the deadlines for the connection and the first byte hold until there is one")
    func phases() {
        var watch = DeadlineWatch(TransportDeadlines(connect: 2, firstByte: 5, idle: nil), now: 10)
        #expect(watch.verdict(now: 11) == .checkAgain(after: 1))
        #expect(watch.verdict(now: 12) == .expired(message: "no connection after 2.0 seconds"))
        watch.connected()
        #expect(watch.verdict(now: 12) == .checkAgain(after: 3))
        #expect(watch.verdict(now: 15) == .expired(message: "no answer after 5.0 seconds"))
        watch.answered()
        #expect(watch.verdict(now: 15) == .never)
    }

    @Test("REQ-5: a silence of the one who takes the bytes in does not count as the server's")
    func paused() {
        var watch = DeadlineWatch(TransportDeadlines(idle: 10, total: 1_000), now: 0)
        watch.setPaused(true, now: 5)
        #expect(watch.verdict(now: 500) == .checkAgain(after: 500))
        watch.setPaused(false, now: 500)
        #expect(watch.verdict(now: 505) == .checkAgain(after: 5))
        #expect(watch.verdict(now: 510) == .expired(message: "no byte moved for 10.0 seconds"))
    }
}

@Suite("TransportRequest")
struct TransportRequestTests {
    @Test("RSP-6: a message that is printed or dumped tells no secret")
    func secrecy() throws {
        let message = TransportRequest(
            method: .put,
            url: try #require(URL(string: "https://ada:s3cret@h/a?token=s3cret&page=2")),
            headers: ["Authorization": "Bearer s3cret", "Accept": "a/b"],
            body: .data(Data("s3cret".utf8))
        )
        var dumped = ""
        dump([message], to: &dumped)
        for text in ["\(message)", message.debugDescription, String(describing: [message]), dumped] {
            #expect(!text.contains("s3cret"))
        }
        #expect("\(message)" == "PUT https://h/a")
        #expect(message.debugDescription.hasPrefix("TransportRequest PUT https://REDACTED@h/a?token=REDACTED&page=2\n"))
        #expect(message.debugDescription.contains("Accept: a/b"))
    }
}

@Suite("What transports are made of")
struct TransportSecretsTests {
    @Test("RSP-6: neither printed nor dumped does a configuration tell a password of a proxy or of a key")
    func secrecy() throws {
        let file = URL(fileURLWithPath: "/etc/client.pem")
        var configuration = TransportConfiguration()
        configuration.proxy = .url(try #require(URL(string: "http://ada:s3cret@proxy:3128")))
        configuration.tls.clientCertificate = .init(certificateFile: file, keyFile: file, keyPassword: "s3cret")
        let transport = DefaultTransport(configuration)
        let all: [Any] = [
            configuration, configuration.proxy, configuration.tls, configuration.tls.clientCertificate as Any,
            [configuration], transport,
        ]
        for value in all {
            var dumped = ""
            dump(value, to: &dumped)
            for text in ["\(value)", String(reflecting: value), dumped] {
                #expect(!text.contains("s3cret") && !text.contains("ada"), "\(text)")
            }
        }
        #expect("\(configuration)".contains("proxy:3128") && "\(configuration)".contains("client.pem"))
    }

    @Test("RSP-6: what a server said in its head is printed without its secrets")
    func head() {
        let head = TransportHead(statusCode: 200, headers: ["Set-Cookie": "id=s3cret", "X-Id": "7"])
        for value in [head, TransportEvent.head(head), TransportEnd(trailers: head.headers)] as [Any] {
            var dumped = ""
            dump(value, to: &dumped)
            for text in ["\(value)", String(reflecting: value), dumped] { #expect(!text.contains("s3cret"), "\(text)") }
        }
        #expect(String(reflecting: head).contains("X-Id: 7"))
    }
}

@Suite("DecodedBodyLimit")
struct DecodedBodyLimitTests {
    @Test("SEC-2: a body has a limit when a coding is taken off, of the content or of the transfer")
    func limit() {
        let table: [(HTTPHeaders, Bool)] = [
            ([:], false), (["Content-Encoding": "identity"], false), (["Transfer-Encoding": "Chunked"], false),
            (["Content-Encoding": "gzip"], true), (["Transfer-Encoding": "gzip, chunked"], true),
        ]
        for (headers, isLimited) in table {
            var limit = DecodedBodyLimit(10, headers: headers)
            let (first, second) = (limit.take(10), limit.take(1))
            #expect(first == nil && (second?.code == .bodyTooLong) == isLimited, "\(headers)")
        }
    }
}

@Suite("ConnectionAdmission")
struct ConnectionAdmissionTests {
    private func names(_ tokens: [Token]) -> [Int] { tokens.map(\.name) }

    private final class Token {
        let name: Int
        init(_ name: Int) { self.name = name }
    }

    @Test("BEY-6: no more than the limit for one origin, the others in order, other origins apart")
    func admission() {
        var admission = ConnectionAdmission<Token>(perOrigin: 2)
        let entered = (0..<50).map { admission.enter(Token($0), origin: "a") }
        #expect(entered == [true, true] + Array(repeating: false, count: 48))
        let otherOrigin = admission.enter(Token(50), origin: "b")
        #expect(otherOrigin)
        for name in 2..<50 { #expect(names(admission.end(origin: "a")) == [name]) }
        #expect(admission.end(origin: "a").isEmpty)
        #expect(admission.end(origin: "a").isEmpty)
        let later = admission.enter(Token(51), origin: "a")
        #expect(later)
    }

    @Test("BEY-6: no more than the limit in all, of those that have a place with their origin, in order")
    func total() {
        var admission = ConnectionAdmission<Token>(perOrigin: 2, total: 3)
        let origins = ["a", "a", "a", "b", "b", "c"]
        let entered = origins.enumerated().map { admission.enter(Token($0.offset), origin: $0.element) }
        #expect(entered == [true, true, false, true, false, false])
        // The place in all goes to the one of b that waits for it longest, that with a to the third of a.
        #expect(names(admission.end(origin: "a")) == [4])
        #expect(names(admission.end(origin: "b")) == [5])
        #expect(names(admission.end(origin: "a")) == [2])
        for origin in ["a", "b", "c"] { #expect(admission.end(origin: origin).isEmpty) }
    }

    @Test("BEY-6: an origin that takes more at once gets them, and fewer again")
    func originLimit() {
        var admission = ConnectionAdmission<Token>(perOrigin: 1, total: 5)
        for name in 0..<8 { _ = admission.enter(Token(name), origin: "a") }
        #expect(names(admission.setLimit(3, origin: "a")) == [1, 2])
        #expect(admission.setLimit(3, origin: "a").isEmpty)
        #expect(names(admission.end(origin: "a")) == [3])
        #expect(admission.setLimit(1, origin: "a").isEmpty)
        #expect(admission.end(origin: "a").isEmpty && admission.end(origin: "a").isEmpty)
        #expect(names(admission.end(origin: "a")) == [4])
        // What is learned of an origin stays when nobody is there.
        #expect(names(admission.setLimit(10, origin: "a")) == [5, 6, 7])
        for _ in 0..<4 { _ = admission.end(origin: "a") }
        let entered = (0..<6).map { admission.enter(Token($0), origin: "a") }
        #expect(entered == [true, true, true, true, true, false])
    }
}
