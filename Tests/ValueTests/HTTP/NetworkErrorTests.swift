import Foundation
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@testable import EasyNetwork
@testable import TestSupport

@Suite("NetworkError")
struct NetworkErrorTests {
    @Test("RSP-6: the text is one sentence with the server's message and the request, without secrets")
    func sentence() throws {
        let url = try #require(URL(string: "https://user:secret@h:8443/a/b?token=secret#secret"))
        let notFound = HTTPURLResponse.localizedString(forStatusCode: 404)
        var error = NetworkError(
            code: .unacceptableStatus,
            statusCode: 404,
            serverMessage: "No such user",
            request: .init(method: "GET", url: url),
            attempts: 2
        )
        let sentence = "The server responded with 404 \(notFound): No such user"
        expect(error.localizedDescription, equals: sentence + ".")
        expect("\(error)", equals: "NetworkError.unacceptableStatus: \(sentence) (GET https://h:8443/a/b).")
        error.serverMessage = "No such user."
        expect(error.localizedDescription, equals: sentence + ".")
        error.request = nil
        expect("\(error)", equals: "NetworkError.unacceptableStatus: \(sentence).")
        expect(NetworkError(code: .cancelled).localizedDescription, equals: "Cancelled.")
        expect(NetworkError(code: .unauthorized, statusCode: 401).localizedDescription.contains("401"))
        expect(NetworkError(code: .refused, message: "offline").localizedDescription.hasSuffix("sent: offline."))
        expect(
            NetworkError(code: .init(rawValue: 10_001)).localizedDescription,
            equals: "The request failed with code 10001."
        )
        expect(!String(describing: error).contains("secret"))
    }

    @Test("RSP-6: every code has its own text and name")
    func codes() {
        let codes: [NetworkError.Code] = [
            .invalidRequest, .cancelled, .dependencyFailed, .cycle, .refused, .cannotConnect, .tls, .timedOut,
            .connectionLost, .badServerResponse, .unacceptableStatus, .unauthorized, .cannotParseResponse, .notCached,
            .notConnected, .bodyTooLong, .redirectFailed, .cannotSendAgain, .cannotWriteFile, .digestMismatch,
        ]
        expect(Set(codes).count, equals: codes.count)
        expect(Set(codes.map(\.description)).count, equals: codes.count)
        expect(Set(codes.map { NetworkError(code: $0).localizedDescription }).count, equals: codes.count)
        for code in codes {
            let error = NetworkError(code: code) as NSError
            expect(error.code, equals: code.rawValue)
            expect(error.domain, equals: "EasyNetwork.NetworkError")
        }
    }

    @Test("RSP-6: only a bounded prefix of the body is kept, however it is set")
    func boundedBody() {
        let limit = NetworkError.responseBodyLimit
        var error = NetworkError(code: .unacceptableStatus, responseBody: Data(repeating: 1, count: limit + 1))
        expect(error.responseBody, equals: Data(repeating: 1, count: limit))
        error.responseBody = Data(repeating: 2, count: 10 * limit)
        expect(error.responseBody, equals: Data(repeating: 2, count: limit))
        error.responseBody = Data([3])
        expect(error.responseBody, equals: Data([3]))
    }

    @Test("RSP-6: the root cause is the error of the dependency that failed first")
    func rootCause() {
        let bottom = NetworkError(code: .timedOut)
        let row = (0..<3).reduce(bottom) { cause, _ in NetworkError(code: .dependencyFailed, underlying: cause) }
        expect(row.rootCause.code, equals: .timedOut)
        expect(bottom.rootCause.code, equals: .timedOut)
        expect(
            NetworkError(code: .dependencyFailed, underlying: URLError(.timedOut)).rootCause.code,
            equals: .dependencyFailed
        )
    }

    private func full() throws -> NetworkError {
        let url = try #require(URL(string: "https://ada:s3cret@h/a?token=s3cret&page=2"))
        var error = NetworkError(
            code: .unacceptableStatus,
            message: "m",
            statusCode: 403,
            headers: ["Content-Type": "application/json", "Set-Cookie": "id=s3cret", "X-Id": "7"],
            responseBody: Data(#"{"message":"No\nway","access_token":"s3cret"}"#.utf8),
            serverMessage: "No\nway",
            underlying: NSError(
                domain: "D",
                code: 7,
                userInfo: ["NSErrorFailingURLStringKey": "https://h/?api_key=s3cret"]
            ),
            request: .init(method: "POST", url: url, headers: ["Authorization": "Basic s3cret", "Accept": "*/*"]),
            attempts: 3,
            dependencyPath: ["a", "b"]
        )
        error.phase = .body
        let first = NetworkAttempt(request: .init(method: "GET", url: url), errorCode: .timedOut)
        error.history = [
            first, NetworkAttempt(reason: .retry, request: .init(method: "GET", url: url), statusCode: 403),
        ]
        var metrics = TransportMetrics(total: 1.5)
        (metrics.bytesReceived, metrics.remoteAddress) = (120, "192.0.2.1:443")
        error.metrics = metrics
        return error
    }

    @Test("RSP-6: the debug description has everything on several lines, and no secret")
    func debugDescription() throws {
        let text = String(reflecting: try full())
        expect(!text.contains("s3cret"))
        expect(!text.contains("ada"))
        for line in [
            "NetworkError.unacceptableStatus (code 200)", "  Request: POST https://REDACTED@h/a?token=REDACTED&page=2",
            "    first: GET https://REDACTED@h/a?token=REDACTED&page=2 → timedOut",
            "    retry: GET https://REDACTED@h/a?token=REDACTED&page=2 → 403", "    Authorization: Basic REDACTED",
            "    Accept: */*", "  Attempts: 3", "  Phase: body", "  Status: 403",
            "    Set-Cookie: REDACTED", "    X-Id: 7", "  Server's message: No", "    way", "  Body: 45 bytes",
            #"    {"access_token":"REDACTED","message":"No\nway"}"#, "  Path: a → b", "  Underlying:",
        ] {
            expect(text.components(separatedBy: "\n").contains(line), "\(line) in \(text)")
        }
        expect(text.contains("Metrics: total 1.5 s, waited 0.0 s, 120 bytes in, 192.0.2.1:443"))
        expect(text.contains("Domain=D"))
        let lines = String(reflecting: NetworkError(code: .cancelled)).components(separatedBy: "\n")
        expect(lines, equals: ["NetworkError.cancelled (code 2)", "  Summary: Cancelled.", "  Attempts: 0"])
    }

    @Test("RSP-6: neither a dump nor the dictionary of an NSError has a secret")
    func dumps() throws {
        let error = try full()
        let answer = NetworkResponse(headers: ["Set-Cookie": "s3cret"], url: error.request?.url)
        for value in [error, error.request as Any, error.history, answer] as [Any] {
            var dumped = ""
            dump(value, to: &dumped)
            for text in [dumped, "\(value)", String(reflecting: value)] { expect(!text.contains("s3cret"), "\(text)") }
        }
        expect(
            String(describing: error.history[1]),
            equals: "retry: GET https://REDACTED@h/a?token=REDACTED&page=2 → 403"
        )
        let url = (error as NSError).userInfo[NSURLErrorFailingURLErrorKey] as? URL
        expect(url?.absoluteString, equals: "https://REDACTED@h/a?token=REDACTED&page=2")
    }

    /// All strings and URLs in the dictionary, including those of underlying errors.
    private func texts(_ information: [String: Any]) -> [String] {
        information.flatMap { key, value -> [String] in
            if let error = value as? any Error {
                return [key, "\((error as NSError).domain)"] + texts((error as NSError).userInfo)
            }
            return [key, "\(value)"]
        }
    }

    @Test("RSP-6: underlying errors in the dictionary of an NSError have no secrets at any depth; domain and code stay")
    func underlyingInformation() throws {
        let url = try #require(URL(string: "https://ada:s3cret@h/a?token=s3cret"))
        let bottom = NSError(
            domain: "NSURLErrorDomain",
            code: -1_001,
            userInfo: [
                NSLocalizedDescriptionKey: "no answer from https://ada:s3cret@h/", NSURLErrorFailingURLErrorKey: url,
                "NSErrorFailingURLStringKey": url.absoluteString, "headers": ["Authorization": "s3cret"],
            ]
        )
        let middle = NSError(domain: "D", code: 7, userInfo: [NSUnderlyingErrorKey: bottom, "api_key": "s3cret"])
        let error = NetworkError(code: .timedOut, underlying: middle)
        for error in [error, NetworkError(code: .dependencyFailed, underlying: error)] {
            let all = texts((error as NSError).userInfo)
            expect(!all.contains { $0.contains("s3cret") || $0.contains("ada") }, "\(all)")
            expect(all.contains("D") && all.contains("NSURLErrorDomain"), "\(all)")
            expect(all.contains("no answer from https://REDACTED@h/"), "\(all)")
        }
        let underlying = try #require((error as NSError).userInfo[NSUnderlyingErrorKey] as? NSError)
        expect(underlying.domain == "D" && underlying.code == 7)
        expect(
            (error.underlying as NSError?)?.userInfo["api_key"] as? String,
            equals: "s3cret",
            "the error itself has all"
        )
    }

    private static let hostile = "no\u{1B}[31m\u{202E}txet\u{2066}\r\nX: y\u{2028}z\u{85}\u{0}\u{200F}\u{9B}\u{7F}\tend"

    @Test("RSP-6: text from outside has no control characters, line breaks and marks of writing direction in a message")
    func hostileWords() {
        let body = Data((#"{"error":""# + Self.hostile + #""}"#).utf8)
        let text = try? JSONSerialization.data(withJSONObject: ["message": Self.hostile])
        let answer = NetworkResponse(statusCode: 500, headers: ["Content-Type": Self.hostile], body: text ?? body)
        var set = NetworkError(code: .refused)
        set.message = Self.hostile
        set.serverMessage = Self.hostile
        let errors = [
            answer.error(.unacceptableStatus), set,
            NetworkError(code: .refused, message: Self.hostile, serverMessage: Self.hostile),
            .thrown(Hostile(), otherwise: .refused),
            answer.mappingError(Hostile()),
        ]
        for error in errors {
            for text in [error.localizedDescription, "\(error)", error.message ?? ""] {
                expect(text.unicodeScalars.allSatisfy { $0 == "\t" || isPlain($0) }, "\(text.debugDescription)")
            }
            for text in [error.debugDescription, error.serverMessage ?? ""] {
                expect(
                    text.unicodeScalars.allSatisfy { $0 == "\n" || $0 == "\t" || isPlain($0) },
                    "\(text.debugDescription)"
                )
            }
            expect(error.localizedDescription.contains("no[31mtxet"), "\(error)")
        }
    }

    private struct Hostile: LocalizedError {
        var errorDescription: String? { NetworkErrorTests.hostile }
    }

    private func isPlain(_ scalar: Unicode.Scalar) -> Bool {
        let marks: [ClosedRange<UInt32>] = [
            0x061C...0x061C, 0x200E...0x200F, 0x202A...0x202E, 0x2066...0x2069, 0x2028...0x2029,
        ]
        return scalar.properties.generalCategory != .control && !marks.contains { $0.contains(scalar.value) }
    }

    @Test("RSP-6: messages are bounded")
    func boundedMessage() {
        for text in [String(repeating: "x", count: 100_000), "e" + String(repeating: "\u{301}", count: 100_000)] {
            let error = NetworkError(code: .refused, message: text, serverMessage: text)
            expect(error.localizedDescription.unicodeScalars.count < 5_000)
            expect(error.message?.hasSuffix("…") == true && error.serverMessage?.hasSuffix("…") == true)
        }
    }

    @Test("RSP-6: the message of a bad header name is one line")
    func headerName() throws {
        let url = try #require(URL(string: "https://h/"))
        for name in ["X\r\nSet-Cookie: a=b", "X\u{202E}"] {
            let message = TransportRequest(url: url, headers: HTTPHeaders([.init(name: name, value: "v")]))
            let error = #expect(throws: NetworkError.self) { try message.check() }
            let text = error?.message ?? "\n"
            expect(text.contains("be a token") && text.unicodeScalars.allSatisfy(isPlain), "\(text.debugDescription)")
        }
    }

    @Test("RSP-6: a body is shown as its length, unless it is whole JSON or a form")
    func debugBodies() {
        func text(_ body: Data) -> String {
            String(reflecting: NetworkError(code: .unacceptableStatus, responseBody: body))
        }
        expect(text(Data([0, 1, 2])).hasSuffix("Body: 3 bytes"))
        expect(text(Data("s3cret".utf8)).hasSuffix("Body: 6 bytes"))
        expect(text(Data(#"["a"]"#.utf8)).hasSuffix("Body: 5 bytes\n    [\"a\"]"))
        expect(text(Data()).contains("Body: empty"))
        let long = Data(#"["\#(String(repeating: "é", count: 8_000))"]"#.utf8)
        expect(text(long).contains("éé…"))
        expect(text(long).count < 5_000)
        expect(text(long + long).hasSuffix("Body: at least 16384 bytes"))
    }

    @Test("RSP-6: underlying errors are shown to a bounded depth, without secrets")
    func debugUnderlying() throws {
        let row = try (0..<100_000).reduce(full()) { cause, _ in
            // Flat, as the package makes them, so that the test does not depend on freeing a long chain.
            NetworkError(code: .dependencyFailed, underlying: cause.rootCause)
        }
        expect(String(reflecting: row).contains("NetworkError.unacceptableStatus"))
        expect(!String(reflecting: row).contains("s3cret"))
        let deep = (0..<50).reduce(NetworkError(code: .timedOut)) { cause, _ in
            NetworkError(code: .dependencyFailed, underlying: cause)
        }
        let text = String(reflecting: deep)
        expect(text.components(separatedBy: "dependencyFailed").count - 1, equals: 9)
    }

    @Test("RSP-6: the description of a response has no secrets")
    func response() {
        let body = Data(#"{"token":"s3cret","a":1}"#.utf8)
        let answer = NetworkResponse(
            headers: ["Cookie": "s3cret"],
            body: body,
            source: .cache,
            url: URL(string: "https://h/?secret=s3cret")
        )
        for text in ["\(answer)", String(reflecting: answer)] {
            expect(!text.contains("s3cret"))
            expect(text.hasPrefix("NetworkResponse 200 from cache\n  URL: https://h/?secret=REDACTED\n"))
            expect(text.contains(#"{"a":1,"token":"REDACTED"}"#))
        }
    }
}
