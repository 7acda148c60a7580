import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("MultipartForm", .timeLimit(.minutes(10)))
struct MultipartFormTests {
    private func bytes(_ form: MultipartForm) async throws -> Data {
        try await form.stream().wholeBody()
    }

    private func text(_ form: MultipartForm) async throws -> String {
        String(decoding: try await bytes(form), as: UTF8.self)
    }

    private func failure(_ form: MultipartForm) -> String {
        Built.failure(AnyRequest(method: .post, body: .multipart(form)))
    }

    @Test("REQ-4: the bytes of a form with a text, bytes with and without file name")
    func wire() async throws {
        var form = MultipartForm(boundary: "b")
        form.append("Ada\r\né", name: "who")
        form.append(Data([0, 255]), name: "raw")
        form.append(Data("<>".utf8), name: "page", filename: "a.b.HTML")
        form.append("{}", name: "meta", contentType: "application/json")
        form.append(Data(), name: "who", filename: "none", contentType: "a/b; c=\"d\"")
        form.append(Data(), name: "odd", filename: "a/.png")
        let expected =
            Data(
                ("--b\r\nContent-Disposition: form-data; name=\"who\"\r\n\r\nAda\r\né\r\n"
                    + "--b\r\nContent-Disposition: form-data; name=\"raw\"\r\n\r\n").utf8
            ) + [0, 255]
            + Data(
                ("\r\n--b\r\nContent-Disposition: form-data; name=\"page\"; filename=\"a.b.HTML\"\r\n"
                    + "Content-Type: text/html\r\n\r\n<>\r\n"
                    + "--b\r\nContent-Disposition: form-data; name=\"meta\"\r\nContent-Type: application/json\r\n\r\n{}\r\n"
                    + "--b\r\nContent-Disposition: form-data; name=\"who\"; filename=\"none\"\r\n"
                    + "Content-Type: a/b; c=\"d\"\r\n\r\n\r\n"
                    + "--b\r\nContent-Disposition: form-data; name=\"odd\"; filename=\"a/.png\"\r\n"
                    + "Content-Type: image/png\r\n\r\n\r\n--b--\r\n").utf8
            )
        try await expect(bytes(form), equals: expected)
        try expect(form.stream().length, equals: expected.count)
        try expect(
            Built(AnyRequest(method: .post, body: .multipart(form))).contentType,
            equals: "multipart/form-data; boundary=b"
        )
    }

    @Test("REQ-4: a form without parts is its closing boundary")
    func empty() async throws {
        try await expect(text(MultipartForm(boundary: "b")), equals: "--b--\r\n")
    }

    @Test("REQ-4: quotes and line breaks in names and file names are escaped, other characters are sent in UTF-8")
    func escaping() async throws {
        let table = [
            ("a\"b", "a%22b"), ("a\r\nX-Evil: 1", "a%0D%0AX-Evil: 1"), ("a\rb\nc", "a%0Db%0Ac"),
            ("a%22b\\;'é漢😀=", "a%22b\\;'é漢😀="), ("\"\u{301}", "%22\u{301}"), ("", ""), ("../etc", "../etc"),
        ]
        for (name, sent) in table {
            var form = MultipartForm(boundary: "b")
            form.append("x", name: name, filename: name)
            let expected =
                "--b\r\nContent-Disposition: form-data; name=\"\(sent)\"; filename=\"\(sent)\"\r\n\r\nx\r\n--b--\r\n"
            try await expect(text(form), equals: expected)
        }
    }

    @Test("REQ-4: no input can add or break a header field; the error names the part and hides values")
    func injection() {
        func form(_ name: String = "n", _ filename: String? = nil, _ type: String? = nil) -> MultipartForm {
            var form = MultipartForm()
            form.append("x", name: name, filename: filename, contentType: type)
            return form
        }
        let table: [(MultipartForm, String)] = [
            (form("a\u{0}"), "the name must not contain"), (form("n", "\u{7F}"), "the file name must not"),
            (form("n", nil, "a/b\r\nX: secret"), "the content type must not contain line breaks"),
        ]
        for (form, fragment) in table {
            let text = failure(form)
            expect(text.hasPrefix("part \"") && text.contains(fragment), "\(text)")
            expect(!text.contains("secret"))
        }
    }

    @Test("REQ-4: boundaries are random tokens of at most 70 characters")
    func boundaries() throws {
        let boundaries = Set((0..<100).map { _ in MultipartForm().boundary })
        expect(boundaries.count, equals: 100)
        expect(boundaries.allSatisfy { (27...70).contains($0.utf8.count) && HTTPSyntax.isToken($0.utf8) })
    }

    @Test("REQ-4: a file has its name, its type and its length; a missing file fails the request")
    func files() async throws {
        let folder = TestFolder()
        let file = folder.url.appendingPathComponent("é \"b\".png")
        try Data("picture".utf8).write(to: file)
        var form = MultipartForm(boundary: "b")
        form.append(file: file, name: "f")
        form.append(file: file, name: "g", filename: "other.txt", contentType: "a/b")
        let expected =
            "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"é %22b%22.png\"\r\nContent-Type: image/png\r\n\r\n"
            + "picture\r\n--b\r\nContent-Disposition: form-data; name=\"g\"; filename=\"other.txt\"\r\nContent-Type: a/b\r\n"
            + "\r\npicture\r\n--b--\r\n"
        try await expect(text(form), equals: expected)
        try expect(form.stream().length, equals: expected.utf8.count)
        for (wrong, fragment) in [("none", "does not exist"), ("", "is a directory")] {
            var form = MultipartForm()
            form.append(file: folder.url.appendingPathComponent(wrong), name: "photo")
            let text = failure(form)
            expect(
                text.hasPrefix("part \"photo\" of the form cannot be read from") && text.contains(fragment),
                "\(text)"
            )
        }
    }

    @Test("REQ-4: a form has a length if all parts have one, and can be sent again if all parts can")
    func streams() async throws {
        let known = TransportBodyStream(length: 5) { InputStream(data: Data("hello".utf8)) }
        let unknown = TransportBodyStream { InputStream(data: Data("world".utf8)) }
        let once = TransportBodyStream(length: 1, isReplayable: false) { InputStream(data: Data("!".utf8)) }
        var form = MultipartForm(boundary: "b")
        form.append(stream: known, name: "a", filename: "a.txt")
        let whole = try await bytes(form)
        try expect(form.stream().length, equals: whole.count)
        form.append(stream: unknown, name: "b")
        try expect(form.stream().length == nil)
        try expect(form.stream().isReplayable)
        let stream = try form.stream()
        let first = try await stream.wholeBody()
        try await expect(stream.wholeBody(), equals: first)
        form.append(stream: once, name: "c")
        try expect(!form.stream().isReplayable)
        _ = try await bytes(form)
        let error = await #expect(throws: NetworkError.self) { try await bytes(form) }
        expect(error?.message?.contains("part \"c\" of the form: the body can be read only once"), equals: true)
    }

    @Test("REQ-4: parts whose lengths overflow are an error")
    func lengthOverflow() {
        var form = MultipartForm()
        for name in ["a", "b"] {
            form.append(stream: TransportBodyStream(length: .max) { InputStream(data: Data()) }, name: name)
        }
        expect(failure(form).contains("the parts of the form have a total length of more than"))
    }

    @Test("REQ-4: a part that fails, or has another length than declared, ends the request with its name")
    func wrongLengths() async throws {
        struct NoPaper: LocalizedError { var errorDescription: String? { "out of paper" } }
        let data = Data(count: 100_000)
        let folder = TestFolder()
        let file = folder.url.appendingPathComponent("f")
        try data.write(to: file)
        let table: [(TransportBodyStream, String)] = [
            (TransportBodyStream(length: 99_999) { InputStream(data: data) }, "more than the 99999 bytes"),
            (TransportBodyStream(length: 100_001) { InputStream(data: data) }, "100000 instead of the 100001 bytes"),
            (TransportBodyStream { throw NoPaper() }, "out of paper"), (TransportBodyStream { nil }, "cannot be read"),
        ]
        for (stream, fragment) in table {
            var form = MultipartForm()
            form.append(stream: stream, name: "p")
            let error = await #expect(throws: NetworkError.self) { try await bytes(form) }
            expect(error?.code, equals: .invalidRequest)
            expect(error?.message?.hasPrefix("part \"p\" of the form: "), equals: true)
            expect(error?.message?.contains(fragment), equals: true, "\(error?.message ?? "")")
        }
        for count in [99_999, 100_001] {
            try data.write(to: file)
            var form = MultipartForm()
            form.append(file: file, name: "p")
            let stream = try form.stream()
            try Data(count: count).write(to: file)
            let error = await #expect(throws: NetworkError.self) { try await stream.wholeBody() }
            expect(error?.message?.contains("100000 bytes of its declared length"), equals: true)
        }
    }

    @Test("REQ-4: no byte beyond the declared length of a part is sent")
    func excess() async throws {
        let stream = TransportBodyStream(
            length: 5,
            pieces: {
                AsyncStream { continuation in
                    for piece in ["hello", "!"] { continuation.yield(Data(piece.utf8)) }
                    continuation.finish()
                }
            }
        )
        var form = MultipartForm()
        form.append(stream: stream, name: "s")
        let reader = try form.stream().reader()
        try await expect(reader.next()?.starts(with: "--".utf8), equals: true)
        try await expect(reader.next(), equals: Data("hello".utf8))
        let error = await #expect(throws: NetworkError.self) { try await reader.next() }
        expect(error?.message?.contains("more than the 5 bytes"), equals: true)
        reader.cancel()
    }

    @Test("REQ-4: a file of any size is read in pieces, each on demand")
    func pieces() async throws {
        let folder = TestFolder()
        let file = folder.url.appendingPathComponent("large")
        try Data().write(to: file)
        let handle = try FileHandle(forWritingTo: file)
        try handle.truncate(atOffset: 20_000_000)
        try handle.close()
        var form = MultipartForm()
        form.append(file: file, name: "f")
        let stream = try form.stream()
        let reader = try stream.reader()
        var (count, longest) = (0, 0)
        while let piece = try await reader.next() {
            count += piece.count
            longest = max(longest, piece.count)
        }
        expect(count, equals: stream.length)
        expect(longest <= 65_536)
        try await expect(reader.next() == nil)
        reader.cancel()
    }

    @Test("REQ-4: after a cancel no more bytes come, and the current part is released")
    func cancel() async throws {
        let ended = Gate()
        let stream = TransportBodyStream(pieces: {
            AsyncStream<Data> { continuation in
                continuation.onTermination = { _ in ended.open() }
                continuation.yield(Data("x".utf8))
            }
        })
        var form = MultipartForm()
        form.append(stream: stream, name: "s")
        let reader = try form.stream().reader()
        try await expect(reader.next()?.starts(with: "--".utf8), equals: true)
        try await expect(reader.next(), equals: Data("x".utf8))
        reader.cancel()
        await ended.opened()
        let error = await #expect(throws: NetworkError.self) { try await reader.next() }
        expect(error?.code, equals: .cancelled)
    }

    @Test("REQ-4: random forms come back whole through an independent reader", arguments: 1...40 as ClosedRange<UInt64>)
    func roundTrip(seed: UInt64) async throws {
        var generator = SeededGenerator(seed: seed)
        var form = MultipartForm()
        var expected: [MultipartText.Part] = []
        for _ in 0..<Int.random(in: 0...8, using: &generator) {
            let (name, filename) = (Self.randomName(&generator), Self.randomName(&generator))
            let data = Self.randomBytes(&generator)
            let hasFilename = Bool.random(using: &generator)
            if Bool.random(using: &generator) {
                form.append(data, name: name, filename: hasFilename ? filename : nil)
            } else {
                let length = Bool.random(using: &generator) ? data.count : nil
                let stream = TransportBodyStream(length: length) { InputStream(data: data) }
                form.append(stream: stream, name: name, filename: hasFilename ? filename : nil)
            }
            expected.append(.init(name: name, filename: hasFilename ? filename : nil, data: data))
        }
        let stream = try form.stream()
        let bytes = try await stream.wholeBody()
        expect(stream.length == nil || stream.length == bytes.count, "seed \(seed)")
        expect(MultipartText.parts(bytes, boundary: form.boundary), equals: expected, "seed \(seed)")
    }

    private static func randomName(_ generator: inout SeededGenerator) -> String {
        let alphabet = Array("ab \"\\;=é漢😀'.-\r\n\t".unicodeScalars.filter { $0 != "\t" })
        var scalars = String.UnicodeScalarView()
        for _ in 0..<Int.random(in: 0...8, using: &generator) {
            scalars.append(alphabet[Int.random(in: 0..<alphabet.count, using: &generator)])
        }
        return String(scalars)
    }

    private static func randomBytes(_ generator: inout SeededGenerator) -> Data {
        // Favours bytes that resemble a boundary.
        let alphabet = Array("\r\n-\r\n--E".utf8) + [0, 255]
        return Data(
            (0..<Int.random(in: 0...200, using: &generator)).map { _ in
                alphabet[Int.random(in: 0..<alphabet.count, using: &generator)]
            }
        )
    }
}
