import EasyNetworkTesting
import Foundation
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@testable import EasyNetwork
@testable import TestSupport

@Suite("Every transport, bodies that are made while they are sent", .timeLimit(.minutes(10)))
struct TransportStreamTests {
    typealias Kind = TransportFixture.Kind

    private struct NoPaper: LocalizedError {
        var errorDescription: String? { "out of paper" }
    }

    private let bytes = bodyBytes(300_000)

    private func fixture(_ kind: Kind) throws -> TransportFixture {
        let fixture = try TransportFixture(kind)
        fixture.route("PUT", "/stream") { _ in .status(201) }
        return fixture
    }

    private func request(_ fixture: TransportFixture, _ stream: TransportBodyStream) throws -> TransportRequest {
        var request = try fixture.request("/stream", .put)
        request.body = .stream(stream)
        return request
    }

    /// Pieces of random lengths, some of them empty.
    private func pieces(seed: UInt64) -> [Data] {
        var random = SeededGenerator(seed: seed)
        var pieces: [Data] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            let piece = rest.prefix(Int.random(in: 0...90_000, using: &random))
            pieces.append(Data(piece))
            rest = rest.dropFirst(piece.count)
        }
        return pieces
    }

    @Test(
        "REQ-3: an input stream and an asynchronous sequence arrive whole, with their length known or not",
        arguments: Kind.allCases,
        [true, false]
    )
    func whole(kind: Kind, hasLength: Bool) async throws {
        let fixture = try fixture(kind)
        let length = hasLength ? bytes.count : nil
        let bytes = bytes
        let streams = [
            TransportBodyStream(length: length) { InputStream(data: bytes) },
            TransportBodyStream(
                length: length,
                pieces: { [pieces = pieces(seed: 1)] in
                    AsyncStream { continuation in
                        for piece in pieces { continuation.yield(piece) }
                        continuation.finish()
                    }
                }
            ),
            TransportBodyStream(length: hasLength ? 0 : nil) { InputStream(data: Data()) },
        ]
        for (stream, expected) in zip(streams, [bytes, bytes, Data()]) {
            // Runs twice, because each message makes a new stream.
            for _ in 0..<2 {
                let outcome = await fixture.start(try request(fixture, stream)).end()
                expect(outcome.head?.statusCode == 201 && outcome.faults.isEmpty)
                let received = try #require(fixture.requests.last)
                expect(received.body, equals: expected)
                let isChunked = received.headers["Transfer-Encoding"] != nil
                if TransportCapability.streamedUploads.known(kind) == nil, kind != .inMemory {
                    expect(isChunked, equals: !hasLength)
                }
            }
        }
    }

    @Test("REQ-3: too many bytes, too few, none, an error: the request ends and says so", arguments: Kind.allCases)
    func wrong(kind: Kind) async throws {
        let fixture = try fixture(kind)
        let bytes = bytes
        let table: [(TransportBodyStream, String)] = [
            (TransportBodyStream(length: 299_999) { InputStream(data: bytes) }, "more than the 299999 bytes"),
            (TransportBodyStream(length: 300_001) { InputStream(data: bytes) }, "300000 instead of the 300001 bytes"),
            (
                TransportBodyStream(
                    length: 5,
                    pieces: {
                        AsyncStream { continuation in
                            for piece in ["hello", " world"] { continuation.yield(Data(piece.utf8)) }
                            continuation.finish()
                        }
                    }
                ),
                "more than the 5 bytes"
            ),
            (TransportBodyStream { InputStream(fileAtPath: "/nowhere/at/all") }, "cannot be read"),
            (TransportBodyStream { nil }, "cannot be read"),
            (TransportBodyStream { throw NoPaper() }, "out of paper"),
            (
                TransportBodyStream(pieces: {
                    AsyncThrowingStream { continuation in
                        continuation.yield(bytes)
                        continuation.finish(throwing: NoPaper())
                    }
                }),
                "out of paper"
            ),
            (TransportBodyStream(pieces: { () throws -> AsyncStream<Data> in throw NoPaper() }), "out of paper"),
        ]
        for (stream, message) in table {
            let outcome = await fixture.start(try request(fixture, stream)).end()
            expect(outcome.code == .invalidRequest && outcome.faults.isEmpty, "\(message)")
            expect(
                outcome.end?.error?.message?.contains(message),
                equals: true,
                "\(String(describing: outcome.end?.error))"
            )
        }
        expect(fixture.requests.isEmpty)
    }

    @Test(
        "CBK-2: a cancel while the body is awaited gives a single end and cancels the producer",
        arguments: Kind.allCases
    )
    func cancel(kind: Kind) async throws {
        let fixture = try fixture(kind)
        let awaited = Gate()
        let told = Gate()
        let stream = TransportBodyStream(pieces: {
            AsyncStream(
                unfolding: {
                    let cancelled = Gate()
                    await withTaskCancellationHandler {
                        awaited.open()
                        await cancelled.opened()
                    } onCancel: {
                        cancelled.open()
                    }
                    told.open()
                    return nil as Data?
                }
            )
        })
        let exchange = fixture.start(try request(fixture, stream))
        await awaited.opened()
        exchange.exchange.cancel()
        let outcome = await exchange.end()
        expect(outcome.code == .cancelled && outcome.faults.isEmpty)
        await told.opened()
        expect(fixture.requests.isEmpty)
    }

    private final class Token: Sendable {}

    @Test("CBK-2: reads of a cancelled sequence fail, and the sequence is released")
    func cancelReader() async {
        for asksBefore in [true, false] {
            weak var released: Token?
            do {
                let token = Token()
                released = token
                let reader = PiecesReader(
                    AsyncStream<Data> {
                        withExtendedLifetime(token) {}
                        return nil
                    }
                )
                let answers = Locked<[NetworkError.Code?]>([])
                let told = Gate()
                @Sendable func ask() {
                    reader.next { result in
                        var code: NetworkError.Code?
                        if case .failure(let error) = result { code = error.code }
                        answers.withLock { $0.append(code) }
                        told.open()
                    }
                }
                if asksBefore { ask() }
                reader.cancel()
                if !asksBefore { ask() }
                await told.opened()
                let heard = answers.withLock { $0 }
                // If asked before the cancel, the sequence may have answered first.
                expect(heard == [.cancelled] || asksBefore && heard == [nil])
            }
            await expect(eventually { released == nil })
        }
    }

    private func answers(_ reader: InputStreamReader, _ count: Int) async -> [Result<Data?, NetworkError>] {
        var answers: [Result<Data?, NetworkError>] = []
        for _ in 0..<count {
            answers.append(
                await withCheckedContinuation { continuation in reader.next { continuation.resume(returning: $0) } }
            )
        }
        return answers
    }

    @Test("CBK-2: reads of a cancelled input stream fail, before and after its first byte")
    func cancelInputStream() async {
        for asksBefore in [false, true] {
            let reader = InputStreamReader(InputStream(data: bytes))
            if asksBefore { await expect(answers(reader, 1).first?.code == nil) }
            reader.cancel()
            reader.cancel()
            await expect(answers(reader, 2).map(\.code), equals: [.cancelled, .cancelled])
        }
    }

    @Test("REQ-3: an input stream that is given up between two reads is closed")
    func releasedInputStream() async {
        // The type is not Sendable; the test reads it only after its reader is gone.
        nonisolated(unsafe) let stream = InputStream(data: Data(count: 1_000_000))
        do {
            let reader = InputStreamReader(stream)
            await expect(answers(reader, 1).first?.code == nil && stream.streamStatus == .open)
        }
        await expect(eventually { stream.streamStatus == .closed })
    }

    @Test("REQ-3: an input stream stays at its end, and a failed stream repeats its error")
    func endOfInputStream() async throws {
        let whole = InputStreamReader(InputStream(data: Data("x".utf8)))
        await expect(answers(whole, 3).map { try? $0.get() }, equals: [Data("x".utf8), nil, nil])
        let folder = TestFolder()
        for place in [folder.url, folder.url.appendingPathComponent("nothing")] {
            let broken = InputStreamReader(try #require(InputStream(url: place)))
            await expect(answers(broken, 2).map(\.code), equals: [.invalidRequest, .invalidRequest])
        }
    }

    @Test(
        "REQ-3: an input stream that was used already, or is in use, is an error that says so",
        arguments: Kind.allCases
    )
    func usedInputStream(kind: Kind) async throws {
        let fixture = try fixture(kind)
        let message = "the input stream was already used; return a new one"
        // The type is not Sendable; its readers ensure that only one of them reads it.
        nonisolated(unsafe) let stream = InputStream(data: bytes)
        let body = TransportBodyStream { stream }
        await expect(fixture.start(try request(fixture, body)).end().head?.statusCode, equals: 201)
        let second = await fixture.start(try request(fixture, body)).end()
        expect(second.code == .invalidRequest && second.end?.error?.message == message && second.faults.isEmpty)
        expect(fixture.requests.count, equals: 1)

        // Shared on purpose: the second reader must be refused.
        nonisolated(unsafe) let shared = InputStream(data: bytes)
        let reader = InputStreamReader(shared)
        await expect(answers(reader, 1).first?.code == nil)
        let other = InputStreamReader(shared)
        let refused = await answers(other, 1).first
        let error = #expect(throws: NetworkError.self) { try refused?.get() }
        expect(error?.code == .invalidRequest && error?.message == message)
        other.cancel()
        // The first reader can continue.
        await expect(answers(reader, 1).first.map { (try? $0.get())?.isEmpty }, equals: false)
    }

    @Test("REQ-6: a URLRequest with a stream is sent once, and fails the second time")
    func customStreamTwice() async throws {
        struct Custom: BaseAPIRequest {
            let api = "stream"
            let customURLRequest: URLRequest?
            var options: RequestOptions { RequestOptions(customURLRequest: customURLRequest) }
        }
        let server = try MockServer()
        server.route("PUT", "/stream") { _ in .status(201) }
        var message = URLRequest(url: server.baseURL.appendingPathComponent("stream"))
        message.httpMethod = "PUT"
        message.httpBodyStream = InputStream(data: bytes)
        let service = EasyNetworkService(server.host())
        _ = try await service.send(Custom(customURLRequest: message))
        expect(server.requests.first?.body, equals: bytes)
        let error = await #expect(throws: NetworkError.self) {
            try await service.send(Custom(customURLRequest: message))
        }
        expect(error?.code == .invalidRequest && error?.message?.contains("already used") == true)
        expect(server.requests.count, equals: 1)
    }

    @Test(
        "REQ-3: a piece is requested only when there is room for it",
        arguments: Kind.those(that: .streamedUploads)
    )
    func demand(kind: Kind) async throws {
        guard kind != .inMemory else { return }
        let fixture = try fixture(kind)
        let listener = try DeafListener(.open)
        let asked = Locked(0)
        let stream = TransportBodyStream(pieces: {
            AsyncStream(
                unfolding: {
                    asked.withLock { $0 += 1 }
                    return Data(count: 100_000)
                }
            )
        })
        var request = try request(fixture, stream)
        request.url = listener.url
        let exchange = fixture.start(request)
        // The stream is read until the system's buffers are full, and no further.
        var (last, equalLooks) = (-1, 0)
        await expect(
            eventually {
                let now = asked.withLock { $0 }
                equalLooks = now == last ? equalLooks + 1 : 0
                last = now
                return now > 1 && equalLooks > TestLoad.count(1_000)
            }
        )
        expect(asked.withLock { $0 } < 1_000)
        exchange.exchange.cancel()
        await expect(exchange.end().code, equals: .cancelled)
    }
}
