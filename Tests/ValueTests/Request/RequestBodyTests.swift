import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("RequestBody")
struct RequestBodyTests {
    private struct Song: Codable, Sendable, Equatable {
        var name = "é \"<&>"
        var bytes = Data([0, 255])
        var date = Date(timeIntervalSince1970: 1_782_907_200)
        var list = [1, -2]
    }

    private func post(_ body: RequestBody) throws -> Built {
        try Built(AnyRequest(method: .post, body: body))
    }

    private func failure(_ body: RequestBody) -> String {
        Built.failure(AnyRequest(method: .post, body: body))
    }

    @Test("REQ-3: a property list in XML and in binary reads back")
    func propertyList() throws {
        for (format, start) in [(PropertyListSerialization.PropertyListFormat.xml, "<?xml"), (.binary, "bplist00")] {
            let built = try post(.propertyList(Song(), format: format))
            let data = try #require(built.data)
            expect(built.contentType, equals: "application/x-plist")
            expect(data.starts(with: start.utf8))
            try expect(PropertyListDecoder().decode(Song.self, from: data), equals: Song())
        }
        try expect(post(.propertyList(Song())).data?.starts(with: "<?xml".utf8), equals: true)
    }

    private struct Counted: Encodable, Sendable {
        let calls = Locked(0)

        func encode(to encoder: any Encoder) throws {
            calls.withLock { $0 += 1 }
            try ["a": 1].encode(to: encoder)
        }
    }

    @Test("REQ-3: a value is encoded once for each body")
    func once() throws {
        for make in [{ .json($0) }, { .json($0, encoder: JSONEncoder()) }, { .propertyList($0) }]
            as [(Counted) -> RequestBody]
        {
            let value = Counted()
            _ = try post(make(value))
            expect(value.calls.withLock { $0 }, equals: 1)
        }
        let value = Counted()
        _ = try Built(AnyRequest(encodableParams: value))
        expect(value.calls.withLock { $0 }, equals: 1)
    }

    private struct Everything: Encodable, Sendable {
        struct Inner: Encodable, Sendable {
            var someURL = URL(string: "https://h/?a=b")
            var price = Decimal(string: "12345678901234567.89")
        }

        var firstName = ["someKey": Date(timeIntervalSince1970: 1)]
        var innerValues = ["someKey": [Inner(), Inner(price: nil)]]
        var byNumber = [1: Data([1, 2])]
        var nothing: [Int?] = [nil, 2]
        var numbers: [Double] = [0.1, .infinity]
        var small = Float(0.1)
        var large = UInt64.max
    }

    @Test("REQ-3: a custom encoder applies all its strategies to a body")
    func strategies() throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        encoder.keyEncodingStrategy = .convertToSnakeCase
        encoder.dateEncodingStrategy = .millisecondsSince1970
        encoder.dataEncodingStrategy = .custom { data, encoder in try "\(data.count)".encode(to: encoder) }
        encoder.nonConformingFloatEncodingStrategy = .convertToString(
            positiveInfinity: "inf",
            negativeInfinity: "",
            nan: ""
        )
        let built = try post(.json(Everything(), encoder: encoder))
        try expect(built.data, equals: encoder.encode(Everything()))
        expect(built.text?.contains(#""first_name":{"someKey":1000}"#), equals: true)
        try expect(post(.json(Date(timeIntervalSince1970: 1), encoder: encoder)).text, equals: "1000")
        let list = try #require(try post(.propertyList([Everything.Inner()], format: .binary)).data)
        let alone = PropertyListEncoder()
        alone.outputFormat = .xml
        try expect(post(.propertyList(Everything())).data, equals: alone.encode(Everything()))
        try expect(PropertyListSerialization.propertyList(from: list, format: nil) is [[String: Any]])
    }

    @Test("REQ-3: a property list that cannot be written is an error")
    func badPropertyList() {
        expect(failure(.propertyList(Song(), format: .openStep)).contains(".xml or .binary"))
        expect(failure(.propertyList(5)).hasPrefix("a body of type Int cannot be encoded"))
    }

    @Test("REQ-3: dictionaries, arrays and single values of Any become JSON")
    func jsonObject() throws {
        let table: [(Any, String)] = [
            (["b": [1, NSNull(), true] as [Any], "a": "x/y"] as [String: Any], #"{"a":"x/y","b":[1,null,true]}"#),
            ([1, "a", ["k": Date(timeIntervalSince1970: 0)]] as [Any], #"[1,"a",{"k":"1970-01-01T00:00:00Z"}]"#),
            ([Any](), "[]"), ("text", #""text""#), (NSNull(), "null"), (NSNumber(value: true), "true"), (1.5, "1.5"),
        ]
        for (value, expected) in table {
            let built = try post(.jsonObject(value))
            expect(built.text, equals: expected)
            expect(built.contentType, equals: "application/json")
        }
        expect(failure(.jsonObject(["a": [Double.nan]])).hasPrefix("parameter a[0]: nan"))
        expect(failure(.jsonObject(Set([1]))).contains("a value of type Set<Int> cannot be sent"))
        let circle = NSMutableArray()
        circle.add(circle)
        defer { circle.removeAllObjects() }
        expect(failure(.jsonObject(circle)).contains("more than 100 levels deep"))
    }

    @Test(
        "REQ-3: a file's Content-Type follows from its extension by default; an unreadable file fails"
    )
    func files() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("RequestBody-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let table = [
            ("a.png", "image/png"), ("a.PNG", "image/png"), ("a.tar.gz", "application/gzip"),
            ("a.json", "application/json"),
            ("a.unknown", "application/octet-stream"), ("a", "application/octet-stream"), ("é b.txt", "text/plain"),
        ]
        for (name, type) in table {
            let file = folder.appendingPathComponent(name)
            try Data("x".utf8).write(to: file)
            try expect(post(.file(file)).contentType, equals: type)
            try expect(post(.file(file)).message.body, equals: .file(file))
            try expect(post(.file(file, contentType: "a/b")).contentType, equals: "a/b")
            try expect(post(.file(file, contentType: nil)).contentType == nil)
        }
        let link = folder.appendingPathComponent("link.png")
        try FileManager.default.createSymbolicLink(
            at: link,
            withDestinationURL: folder.appendingPathComponent("a.json")
        )
        try expect(post(.file(link)).contentType, equals: "image/png")
        let loose = folder.appendingPathComponent("loose")
        try FileManager.default.createSymbolicLink(at: loose, withDestinationURL: folder.appendingPathComponent("none"))
        expect(failure(.file(loose)).contains("does not exist"))
        let pipe = folder.appendingPathComponent("pipe")
        expect(mkfifo(pipe.path, 0o600), equals: 0)
        expect(failure(.file(pipe)).contains("is not a regular file"))
        expect(failure(.file(folder)).contains("is a directory"))
    }

    @Test("REQ-4: a stream that can be read once is refused the second time")
    func replayable() throws {
        let again = TransportBodyStream { InputStream(data: Data()) }
        let once = TransportBodyStream(isReplayable: false) { InputStream(data: Data()) }
        let pieces = TransportBodyStream(isReplayable: false, pieces: { AsyncStream<Data> { nil } })
        expect(again.isReplayable && !once.isReplayable && !pieces.isReplayable)
        expect(TransportBody.stream(again).isReplayable && !TransportBody.stream(once).isReplayable)
        expect(TransportBody.none.isReplayable && TransportBody.data(Data()).isReplayable)
        for stream in [again, once, pieces] {
            try stream.reader().cancel()
            let isRefused = (try? stream.reader().cancel()) == nil
            expect(isRefused, equals: !stream.isReplayable)
        }
        let error = #expect(throws: NetworkError.self) { try once.reader() }
        expect(error?.code == .invalidRequest && error?.message?.contains("read only once") == true)
    }
}
