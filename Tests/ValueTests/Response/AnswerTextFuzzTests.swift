import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

/// Reads answers whose body need not be what their type and charset say.
@Suite("Texts at random", .timeLimit(.minutes(30)))
struct AnswerTextFuzzTests {
    private static let count = TestLoad.count(1_000, part: 200)

    private static let charsets = [
        "utf-8", "utf-16", "utf-16be", "us-ascii", "latin1", "iso-8859-2", "windows-1252", "windows-1254", "shift_jis",
        "macintosh", "gbk", "gb18030", "big5", "euc-jp", "euc-kr", "koi8-r", "iso-8859-15", "iso-2022-jp", "utf-7",
        "utf-32", "klingon", "", "\"", "utf-8//IGNORE", "utf-8;", "x y", String(repeating: "x", count: 300),
    ]

    private static let types = [
        "text/plain", "text/plain", "text/plain", "text/html", "application/json", "application/problem+json",
        "application/xml", "text/xml", "application/x-plist", "image/png", "nonsense", "",
    ]

    private static let texts = [
        "Não", "Not here", "你好 <b>", #"{"error":"Não"}"#, #"{"message":{"a":["é"]}}"#, "<a>é</a>", "[", "\u{FEFF}a", "",
        "<?xml version=\"1.0\" encoding=\"klingon\"?><a/>", "<plist><string>é</string></plist>", "bplist00é",
        String(repeating: "é", count: 300), String(repeating: "[", count: 2_000),
    ]

    @Test("BEY-17, RSP-2, RSP-6: an answer with any text in any charset has an item or an error, read in any way")
    func directly() {
        var generator = Self.generator()
        for _ in 0..<Self.count { Self.read(Self.answer(&generator).response) }
    }

    @Test("BEY-17, RSP-2, RSP-6: the same for answers that come over a transport", arguments: Wire.allCases)
    func transported(wire: Wire) async throws {
        var generator = Self.generator()
        let answer = Locked(MockResponse())
        let server = try MockServer()
        server.route("GET", "/") { _ in answer.withLock { $0 } }
        let service = EasyNetworkService(server.host(transport: wire.transport))
        for _ in 0..<Self.count / 10 {
            let (message, response) = Self.answer(&generator)
            answer.exchange(message)
            do {
                let received = try await service.send(Get(api: "/"))
                expect(response.statusCode < 400 && received.body == response.body)
                Self.read(received)
            } catch {
                expect(response.statusCode >= 400 && error.statusCode == response.statusCode, "\(error)")
            }
        }
    }

    private static func generator() -> SeededGenerator {
        let seed = UInt64.random(in: 0 ... .max)
        print("AnswerTextFuzzTests: seed \(seed)")
        return SeededGenerator(seed: seed)
    }

    private static func read(_ response: NetworkResponse) {
        var errors = [response.error(.unacceptableStatus), response.mappingError(CancellationError())]
        let readers: [(NetworkResponse) throws -> Any] = [
            { try $0.text() }, { try $0.json() }, { try $0.xml() }, { try $0.propertyList() },
            { try $0.decode([String: Int].self) }, { try $0.decode([String: Int].self, with: .propertyList) },
        ]
        for reader in readers {
            if case .failure(let error) = response.item(reader) { errors.append(error) }
        }
        for error in errors {
            expect(!error.localizedDescription.isEmpty && !error.debugDescription.isEmpty)
            expect(error.statusCode, equals: response.statusCode)
        }
    }

    private static func answer(_ generator: inout SeededGenerator) -> (message: MockResponse, response: NetworkResponse)
    {
        let status = [200, 201, 400, 404, 422, 500, 503].randomElement(using: &generator) ?? 404
        var headers = HTTPHeaders()
        if var type = types.randomElement(using: &generator), !type.isEmpty {
            if Bool.random(using: &generator) {
                type += "; charset=" + (charsets.randomElement(using: &generator) ?? "")
            }
            headers["Content-Type"] = type
        }
        let body = Self.body(&generator)
        return (
            MockResponse(statusCode: status, headers: headers, body: .data(body)),
            NetworkResponse(statusCode: status, headers: headers, body: body)
        )
    }

    private static func body(_ generator: inout SeededGenerator) -> Data {
        guard Int.random(in: 0..<4, using: &generator) > 0, let text = texts.randomElement(using: &generator) else {
            let count = Int.random(in: 0..<40, using: &generator)
            return Data((0..<count).map { _ in UInt8.random(in: 0 ... .max, using: &generator) })
        }
        let encodings: [String.Encoding] = [.utf8, .isoLatin1, .utf16, .utf16BigEndian, .shiftJIS, .windowsCP1251]
        let encoding = encodings.randomElement(using: &generator) ?? .utf8
        var body = text.data(using: encoding, allowLossyConversion: true) ?? Data(text.utf8)
        if !body.isEmpty, Bool.random(using: &generator) {
            body[Int.random(in: 0..<body.count, using: &generator)] = UInt8.random(in: 0 ... .max, using: &generator)
        }
        return body
    }
}
