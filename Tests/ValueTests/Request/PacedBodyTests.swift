import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Paced bodies", .timeLimit(.minutes(10)))
struct PacedBodyTests {
    private let clock = ManualClock()

    private func stream(_ body: RequestBody) throws -> TransportBodyStream {
        guard case .stream(let stream) = try Built(AnyRequest(method: .post, body: body)).message.body else {
            throw CocoaError(.featureUnsupported)
        }
        return stream
    }

    @Test("REQ-4: pieces have at most the given size, with a pause between two and none after the last")
    func pieces() async throws {
        let stream = try stream(.text("0123456789").paced(pieceSize: 4, delay: 3, clock: clock))
        expect(stream.length, equals: 10)
        let reader = try stream.reader()
        try await expect(reader.next(), equals: Data("0123".utf8))
        for (piece, time) in [("4567", 3.0), ("89", 6)] {
            let next = Task { try await reader.next() }
            await expect(clock.waitForTimers(1))
            clock.advance(by: 2.9)
            expect(clock.pendingCount, equals: 1)
            clock.advance(by: 0.1)
            try await expect(next.value, equals: Data(piece.utf8))
            expect(abs(clock.now - time) < 0.001)
        }
        try await expect(reader.next() == nil)
        expect(clock.pendingCount, equals: 0)
    }

    @Test("REQ-4: a cancel ends a pause")
    func cancel() async throws {
        let reader = try stream(.text("0123456789").paced(pieceSize: 4, delay: 3, clock: clock)).reader()
        _ = try await reader.next()
        let code = Locked<NetworkError.Code?>(nil)
        let told = Gate()
        reader.next { result in
            if case .failure(let error) = result { code.withLock { $0 = error.code } }
            told.open()
        }
        await expect(clock.waitForTimers(1))
        reader.cancel()
        await told.opened()
        expect(code.withLock { $0 }, equals: .cancelled)
        expect(clock.pendingCount, equals: 0)
        let error = await #expect(throws: NetworkError.self) { try await reader.next() }
        expect(error?.code, equals: .cancelled)
    }

    @Test("REQ-4: pacing keeps the type of every kind of body, and whether it can be sent again")
    func kinds() async throws {
        let folder = TestFolder()
        let file = folder.url.appendingPathComponent("a.png")
        try Data("picture".utf8).write(to: file)
        let once = TransportBodyStream(isReplayable: false) { InputStream(data: Data("once".utf8)) }
        var form = MultipartForm(boundary: "b")
        form.append(file: file, name: "f")
        let whole = try await form.stream().wholeBody()
        let table: [(RequestBody, Data, String)] = [
            (.file(file), Data("picture".utf8), "image/png"), (.jsonObject([1]), Data("[1]".utf8), "application/json"),
            (.stream(once), Data("once".utf8), "application/octet-stream"),
            (.multipart(form), whole, "multipart/form-data; boundary=b"),
            (.text("", contentType: "a/b"), Data(), "a/b"),
        ]
        for (body, expected, contentType) in table {
            let paced = body.paced(pieceSize: 3, delay: 0)
            let built = try Built(AnyRequest(method: .post, body: paced))
            expect(built.contentType, equals: contentType)
            let stream = try stream(paced)
            try await expect(stream.wholeBody(), equals: expected)
            expect(stream.isReplayable, equals: (contentType != "application/octet-stream"))
            if stream.isReplayable { expect(stream.length, equals: expected.count) }
        }
    }

    @Test("REQ-4, BEY-13: a paced file is read from the place that the outbox keeps it at")
    func placed() async throws {
        let folder = TestFolder()
        let copy = folder.url.appendingPathComponent("copy")
        try Data("kept".utf8).write(to: copy)
        let body = RequestBody.file(folder.url.appendingPathComponent("gone")).paced(pieceSize: 4, delay: 0)
        let bytes = try await stream(body.placed { _ in copy }).wholeBody()
        expect(bytes, equals: Data("kept".utf8))
    }

    @Test("REQ-4: an invalid pace fails the request")
    func refusals() {
        for (size, delay) in [(0, 1), (-1, 1), (1, -1), (1, .nan), (1, .infinity)] as [(Int, TimeInterval)] {
            let body = RequestBody.text("x").paced(pieceSize: size, delay: delay)
            expect(Built.failure(AnyRequest(method: .post, body: body)).hasPrefix("pieceSize must be"))
        }
    }

    @Test("REQ-4: a paced form arrives whole", arguments: TransportFixture.Kind.allCases)
    func arrival(kind: TransportFixture.Kind) async throws {
        let fixture = try TransportFixture(kind)
        fixture.route("POST", "/form") { _ in .status(201) }
        var form = MultipartForm()
        form.append(String(repeating: "text", count: 100), name: "t")
        var request = try fixture.request("/form", .post)
        request.body = .stream(try stream(.multipart(form).paced(pieceSize: 100, delay: 0.000_1)))
        await expect(fixture.start(request).end().head?.statusCode, equals: 201)
        let received = try #require(fixture.requests.last)
        expect(MultipartText.parts(received.body, boundary: form.boundary)?.first?.data.count, equals: 400)
    }
}
