import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

/// The request of these uploads.
private struct Put: APIRequest {
    typealias Item = String
    var api = "upload"
    var method = NetworkService.Method.put
    var body: RequestBody?
    var retry: RetryPolicy?
    var options: RequestOptions { RequestOptions(retry: retry, repeatPolicy: repeatPolicy) }
    var repeatPolicy = RepeatPolicy.allow

    func item(from response: NetworkResponse) throws -> String { String(decoding: response.body, as: UTF8.self) }
}

@Suite("Uploads", .timeLimit(.minutes(10)))
struct UploadOperationTests {
    enum Form: CaseIterable {
        case data
        case file
        case stream
        case streamOfUnknownLength
        case form
    }

    private let bytes = bodyBytes(1_000_000)
    private let queue = NetworkQueue()

    private func server(_ wire: Wire = .standard) throws -> (MockServer, EasyNetworkService) {
        let server = try MockServer()
        server.route("PUT", "/upload") { request in .text("\(request.body.count)") }
        return (server, EasyNetworkService(server.host(transport: wire.transport)))
    }

    private func body(_ form: Form, in folder: TestFolder) throws -> RequestBody {
        let bytes = bytes
        switch form {
        case .data: return .data(bytes)
        case .file:
            let file = folder.url.appendingPathComponent("body")
            try bytes.write(to: file)
            return .file(file)
        case .stream: return .stream(TransportBodyStream(length: bytes.count) { InputStream(data: bytes) })
        case .streamOfUnknownLength: return .stream(TransportBodyStream { InputStream(data: bytes) })
        case .form:
            var form = MultipartForm(boundary: "boundary")
            form.append(bytes, name: "file", filename: "file.bin")
            return .multipart(form)
        }
    }

    /// Collects the updates until the end.
    private func collect(_ updates: AsyncStream<TransferMeter.Count>) -> Task<[TransferMeter.Count], Never> {
        Task {
            var all: [TransferMeter.Count] = []
            for await progress in updates { all.append(progress) }
            return all
        }
    }

    @Test(
        "TRF-4: data, files, streams and forms arrive, in place of the request's body, with their length if it is known",
        arguments: Form.allCases.flatMap { form in [(form, false), (form, true)] },
        Wire.allCases
    )
    func arrives(_ form: (form: Form, isLimited: Bool), wire: Wire) async throws {
        let (form, isLimited) = form
        let (server, service) = try server(wire)
        let folder = TestFolder()
        let body = try body(form, in: folder)
        let upload = UploadOperation(Put(body: .text("the request's own")), from: body, service: service)
        if isLimited { upload.bandwidthLimit = 1_000_000_000 }
        let told = collect(upload.updates)
        queue.addOperation(upload)
        let received = Int(try await upload.value) ?? 0
        let request = try #require(server.requests.last)
        if form == .form {
            expect(MultipartText.parts(request.body, boundary: "boundary")?.first?.data, equals: bytes)
        } else {
            expect(request.body, equals: bytes)
        }
        // A URLSession writes a stream to a file first, and then knows its length.
        let hasLength = form != .streamOfUnknownLength || wire == .urlSession
        expect((request.headers["Content-Length"] == "\(received)"), equals: hasLength)
        // TRF-1
        let all = await told.value
        expect(zip(all, all.dropFirst()).allSatisfy { $0.completedBytes <= $1.completedBytes })
        expect(all.last?.completedBytes, equals: Int64(received))
        expect(all.last?.totalBytes, equals: (form == .streamOfUnknownLength ? nil : Int64(received)))
        expect(upload.progress.isFinished && upload.progress.fractionCompleted == 1)
        expect(upload.progress.totalUnitCount == received && upload.progress.completedUnitCount == received)
    }

    @Test("TRF-4: the body of the request, also one made of its parameters")
    func ownBody() async throws {
        struct Post: APIRequest {
            typealias Item = NetworkResponse
            var api = "own"
            var method = NetworkService.Method.post
            var query = NetworkService.QueryType.json
            var params: [String: Any]? { ["name": "Ada"] }
        }
        let (server, service) = try server()
        server.route("POST", "/own") { _ in .text("") }
        let uploads = [
            UploadOperation(Put(body: .text("the request's own")), service: service),
            UploadOperation(Put(body: nil), service: service),
        ]
        for upload in uploads { queue.addOperation(upload) }
        try await expect(uploads[0].value, equals: "17")
        try await expect(uploads[1].value, equals: "0")
        expect(uploads.map(\.progress.totalUnitCount), equals: [17, 1])
        let post = UploadOperation(Post(), service: service)
        queue.addOperation(post)
        _ = try await post.value
        expect(server.requests.last?.body, equals: Data(#"{"name":"Ada"}"#.utf8))
        expect(post.progress.totalUnitCount == 14 && post.progress.isFinished)
    }

    @Test(
        "TRF-4, REQ-2: beside a body that it is given, the parameters of a POST go into the query, wherever they went",
        arguments: [NetworkService.QueryType.automatic, .path, .form, .json]
    )
    func parametersBesideBody(place: NetworkService.QueryType) async throws {
        struct Post: APIRequest {
            typealias Item = NetworkResponse
            let query: NetworkService.QueryType
            let api = "own"
            let method = NetworkService.Method.post
            var params: [String: Any]? { ["name": "Ada"] }
        }
        let (server, service) = try server()
        server.route("POST", "/own") { _ in .text("") }
        let upload = UploadOperation(Post(query: place), from: .text("body"), service: service)
        queue.addOperation(upload)
        _ = try await upload.value
        expect(server.requests.last?.query == "name=Ada" && server.requests.last?.body == Data("body".utf8))
    }

    @Test("TRF-1: in a batch an upload counts by its progress and its weight")
    func batch() async throws {
        let (server, service) = try server()
        let upload = UploadOperation(Put(), from: .data(bytes), service: service)
        upload.progressWeight = 9
        let other = TestJob { _ in }
        let batch = BatchOperation([upload, other])
        queue.addOperation(batch)
        await upload.ended()
        let progress = batch.progress
        await expect(eventually { progress.completedUnitCount == 9 && progress.fractionCompleted == 0.9 })
        expect(progress.totalUnitCount, equals: 10)
        batch.progress.cancel()
        await batch.ended()
        expect(other.isCancelled && upload.error == nil && upload.result != nil && server.requests.count == 1)
    }

    @Test("TRF-1: cancelling the progress cancels the upload, while its body is awaited; it cannot be paused")
    func cancel() async throws {
        let (server, service) = try server()
        let asked = Gate()
        let upload = UploadOperation(
            Put(),
            from: .stream(
                TransportBodyStream(pieces: {
                    AsyncStream(unfolding: {
                        asked.open()
                        let cancelled = Gate()
                        await withTaskCancellationHandler {
                            await cancelled.opened()
                        } onCancel: {
                            cancelled.open()
                        }
                        return nil as Data?
                    })
                })
            ),
            service: service
        )
        expect(upload.progress.isCancellable && !upload.progress.isPausable)
        queue.addOperation(upload)
        await asked.opened()
        upload.progress.cancel()
        await upload.ended()
        expect(upload.isCancelled && upload.error?.code == .cancelled && server.requests.isEmpty)
        expect(!upload.progress.isFinished)
    }

    @Test("TRF-4: a server that refuses after the head ends it at once; most of the body is never asked for")
    func refused() async throws {
        let (server, service) = try server()
        server.route("PUT", "/upload", fault: .refuse(413))
        let taken = Locked(0)
        let count = 64 << 20
        let stream = TransportBodyStream(
            length: count,
            isReplayable: false,
            pieces: {
                AsyncStream(unfolding: {
                    taken.withLock { taken in
                        guard taken < count else { return nil }
                        taken += 65_536
                        return Data(count: 65_536)
                    }
                })
            }
        )
        let upload = UploadOperation(Put(retry: RetryPolicy(baseDelay: 0)), from: .stream(stream), service: service)
        queue.addOperation(upload)
        await upload.ended()
        expect(upload.error?.statusCode == 413 && upload.error?.code == .unacceptableStatus)
        expect(taken.withLock { $0 } < count / 2)
        expect(!upload.progress.isFinished)
    }

    @Test("TRF-4: a replayable body is sent again, and the progress begins again", arguments: [true, false])
    func replay(isReplayable: Bool) async throws {
        let (server, service) = try server()
        server.failNextRequests(with: .reset(at: .requestBody(after: 600_000)))
        let (bytes, made) = (bytes, Locked(0))
        let stream = TransportBodyStream(length: bytes.count, isReplayable: isReplayable) {
            made.withLock { $0 += 1 }
            return InputStream(data: bytes)
        }
        let upload = UploadOperation(Put(retry: RetryPolicy(baseDelay: 0)), from: .stream(stream), service: service)
        queue.addOperation(upload)
        await upload.ended()
        expect(made.withLock { $0 }, equals: (isReplayable ? 2 : 1))
        expect((upload.error == nil) == isReplayable && upload.progress.isFinished == isReplayable)
        expect(server.requests.count, equals: (isReplayable ? 1 : 0))
        if isReplayable { expect(server.requests.first?.body, equals: bytes) }
    }

    @Test("TRF-4: a redirect that keeps the method sends the body again", arguments: [Form.file, .form])
    func redirect(form: Form) async throws {
        let (server, service) = try server()
        server.route("PUT", "/elsewhere") { request in .text("\(request.body.count)") }
        server.route("PUT", "/upload") { _ in .status(307, headers: ["Location": "/elsewhere"]) }
        let folder = TestFolder()
        let upload = UploadOperation(Put(), from: try body(form, in: folder), service: service)
        queue.addOperation(upload)
        let received = Int(try await upload.value) ?? 0
        expect(server.requests.map(\.path), equals: ["/upload", "/elsewhere"])
        expect(received >= bytes.count && server.requests.allSatisfy { $0.body.count == received })
        expect(upload.progress.isFinished && upload.progress.totalUnitCount == received)
    }

    @Test(
        "TRF-4: the limits of the operation and of its queue pace the body; the slower one counts",
        arguments: Form.allCases
    )
    func limits(form: Form) async throws {
        let clock = ManualClock()
        let server = try MockServer()
        server.route("PUT", "/upload") { request in .text("\(request.body.count)") }
        let host = server.host(transport: TransportConfiguration.sharedTransport) { $0.clock = clock }
        let folder = TestFolder()
        let upload = UploadOperation(Put(), from: try body(form, in: folder), service: EasyNetworkService(host))
        let queue = NetworkQueue(clock: clock)
        upload.bandwidthLimit = 100_000
        queue.bandwidthLimit = 1_000_000
        queue.addOperation(upload)
        let isFinished = await eventually {
            // More often than the pace needs, which makes the upload slower, never faster.
            clock.advance(by: 0.05)
            return upload.isFinished
        }
        expect(isFinished)
        expect(Int(try await upload.value) ?? 0 >= bytes.count)
        // Allows a tenth of a second sent in advance, and another one after the last piece.
        expect(clock.now > 9.7, "\(clock.now)")
    }

    @Test(
        "TRF-4: an upload is never joined, and takes a slot; with .ignoreNewer an equal body is refused"
    )
    func repeats() async throws {
        let (server, service) = try server()
        let uploads = [1, 2].map { number in
            UploadOperation(Put(repeatPolicy: .join), from: .text("body \(number)"), service: service)
        }
        for upload in uploads { queue.addOperation(upload) }
        for upload in uploads { try await expect(upload.value, equals: "6") }
        expect(Set(server.requests.map(\.body)), equals: [Data("body 1".utf8), Data("body 2".utf8)])
        queue.isSuspended = true
        let others = ["a", "b", "a"].map { text in
            UploadOperation(Put(repeatPolicy: .ignoreNewer), from: .text(text), service: service)
        }
        for other in others { queue.addOperation(other) }
        queue.isSuspended = false
        for other in others { await other.ended() }
        expect(others.map { $0.error?.code }, equals: [nil, nil, .refused])
    }
}
