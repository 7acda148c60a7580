import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import EasyNetworkTesting
@testable import TestSupport

@Suite("Uploads that resume", .timeLimit(.minutes(10)))
struct ResumedUploadTests {
    typealias Kind = ResumableUpload.Kind

    // MARK: - Arriving

    @Test("TRF-7: a file and data arrive in parts", arguments: UploadFixture.kinds, Wire.allCases)
    func arrives(kind: Kind, wire: Wire) async throws {
        for isFile in [true, false] {
            let fixture = try UploadFixture(kind, 95_000, over: wire)
            let upload = fixture.operation(data: isFile ? nil : fixture.bytes)
            upload.keepsResponseBody = true
            let response = try await fixture.run(upload).get()
            expect(fixture.uploads.completed, equals: [fixture.bytes])
            expect(await eventually { fixture.journals.names.isEmpty })
            let parts = (0..<10).map { $0 * 10_000 } + (kind == .http ? [95_000] : [])
            expect(fixture.offsets, equals: parts)
            expect(fixture.methods, equals: ["POST"] + parts.map { _ in "PATCH" })
            // The IETF's last response is the item's.
            expect(String(decoding: response.body, as: UTF8.self), equals: kind == .http ? "95000" : "")
            expect(response.url?.path, equals: "/files/1")
            let created = try #require(fixture.server.requests.first)
            expect(created.headers["Upload-Length"], equals: "95000")
            expect(created.headers["Content-Type"], equals: kind == .http && isFile ? "video/mp4" : nil)
            if kind == .tus, isFile {
                expect(created.headers["Upload-Metadata"], equals: "filename ZmlsbS5tcDQ=,filetype dmlkZW8vbXA0")
            }
            expect(upload.progress.isFinished && upload.progress.completedUnitCount == 95_000)
        }
    }

    @Test("TRF-7: an empty body, one part, and parts of exactly the length", arguments: UploadFixture.kinds)
    func sizes(kind: Kind) async throws {
        for count in [0, 1, 10_000, 20_000] {
            let fixture = try UploadFixture(kind, count)
            _ = try await fixture.run(fixture.operation()).get()
            expect(fixture.uploads.completed, equals: [fixture.bytes], "\(count) bytes")
        }
    }

    @Test("TRF-7: the bandwidth limit applies, and the bytes are the same", arguments: UploadFixture.kinds)
    func bandwidth(kind: Kind) async throws {
        let fixture = try UploadFixture(kind)
        let upload = fixture.operation()
        upload.bandwidthLimit = 1_000_000_000
        _ = try await fixture.run(upload).get()
        expect(fixture.uploads.completed, equals: [fixture.bytes])
    }

    @Test("TRF-7: the server's limit lowers the parts")
    func limits() async throws {
        let fixture = try UploadFixture(.http, 20_000, limits: "max-append-size=7000")
        _ = try await fixture.run(fixture.operation()).get()
        expect(fixture.offsets, equals: [0, 7_000, 14_000, 20_000])
    }

    // MARK: - Failures

    @Test(
        "TRF-7: whichever response is lost, the upload resumes, and nothing is sent twice",
        arguments: UploadFixture.kinds
    )
    func lostResponses(kind: Kind) async throws {
        // The last response of the IETF's protocol cannot be requested again.
        for lost in 0..<6 {
            let fixture = try UploadFixture(kind, 45_000)
            fixture.uploads.failResponse(number: lost)
            let upload = fixture.operation()
            let told = Locked<[Int64]>([])
            upload.meter.whenPublished { count in told.withLock { $0.append(count.completedBytes) } }
            _ = try await fixture.run(upload).get()
            expect(fixture.uploads.completed, equals: [fixture.bytes], "response \(lost)")
            let data = fixture.offsets.filter { $0 < 45_000 }
            expect(data, equals: [0, 10_000, 20_000, 30_000, 40_000], "response \(lost)")
            expect(fixture.methods.filter { $0 == "HEAD" }.count, equals: lost == 0 ? 0 : 1)
            let all = told.withLock { $0 }
            expect(zip(all, all.dropFirst()).allSatisfy { $0 <= $1 }, "progress goes back: \(all)")
        }
    }

    @Test("TRF-7: connections that break in a part cost that part", arguments: UploadFixture.kinds)
    func brokenParts(kind: Kind) async throws {
        let fixture = try UploadFixture(kind)
        let uploads = fixture.uploads
        fixture.server.route("POST", "/files") { [weak server = fixture.server] request in
            server?.failNextRequests(2, with: .reset(at: .requestBody(after: 20_000)))
            return uploads.respond(to: request)
        }
        let upload = fixture.operation(partSize: 50_000)
        let told = Locked<[Int64]>([])
        upload.meter.whenPublished { count in told.withLock { $0.append(count.completedBytes) } }
        _ = try await fixture.run(upload).get()
        expect(fixture.uploads.completed, equals: [fixture.bytes])
        let all = told.withLock { $0 }
        expect(zip(all, all.dropFirst()).allSatisfy { $0 <= $1 }, "progress goes back: \(all)")
        // The first part, and the question for the offset after it, broke.
        expect(fixture.offsets.filter { $0 < 100_000 }, equals: [0, 50_000])
        expect(fixture.server.faultCount, equals: 2)
    }

    @Test("TRF-7: bytes that the server has not confirmed stay in the progress")
    func progress() async {
        let meter = TransferMeter(kind: .downloading, clock: SystemClock())
        for count in [10, 50, 20] as [Int64] { meter.raise(to: count) }
        await meter.finish(success: false).wait()
        expect(meter.progress.completedUnitCount, equals: 50)
    }

    @Test("TRF-7: without retries, a failure ends it, and the next operation resumes", arguments: UploadFixture.kinds)
    func nextOperation(kind: Kind) async throws {
        let fixture = try UploadFixture(kind, retries: 0)
        fixture.uploads.failResponse(number: 4)
        let error = await fixture.run(fixture.operation()).failure
        expect(error?.code, equals: .connectionLost)
        expect(fixture.journals.names.count, equals: 1)
        let before = fixture.server.requests.count
        _ = try await fixture.run(fixture.operation()).get()
        expect(Array(fixture.methods.dropFirst(before).prefix(2)), equals: ["HEAD", "PATCH"])
        expect(fixture.offsets.filter { $0 < 100_000 }, equals: (0..<10).map { $0 * 10_000 })
        expect(fixture.uploads.completed, equals: [fixture.bytes])
        expect(await eventually { fixture.journals.names.isEmpty })
    }

    @Test("TRF-7: a cancelled upload is resumed, with at most a part sent twice", arguments: UploadFixture.kinds)
    func cancelled(kind: Kind) async throws {
        let fixture = try UploadFixture(kind, 1_000_000)
        await fixture.breakOff(after: 300_000)
        // An operation that is added at once waits until the cancelled one has released the journal.
        _ = try await fixture.run(fixture.operation()).get()
        expect(fixture.uploads.completed, equals: [fixture.bytes])
        expect(fixture.offsets.filter { $0 < 1_000_000 }, equals: (0..<100).map { $0 * 10_000 })
        expect(fixture.methods.filter { $0 == "POST" }.count, equals: 1)
    }

    @Test("TRF-7: wrong offsets are corrected", arguments: UploadFixture.kinds)
    func wrongOffsets(kind: Kind) async throws {
        let fixture = try UploadFixture(kind, retries: 0)
        fixture.uploads.rejectNextOffsets(3)
        _ = try await fixture.run(fixture.operation()).get()
        expect(fixture.uploads.completed, equals: [fixture.bytes])
    }

    @Test("TRF-7: an upload that the server has forgotten begins again, and says so", arguments: UploadFixture.kinds)
    func expired(kind: Kind) async throws {
        let fixture = try UploadFixture(kind, retries: 0)
        fixture.uploads.failResponse(number: 4)
        await fixture.run(fixture.operation { $0.idempotencyKey = "key" })
        fixture.uploads.expire()
        let (reasons, result) = await startedOver(fixture, fixture.operation { $0.idempotencyKey = "key" })
        _ = try result.get()
        expect(reasons, equals: ["the server no longer has the upload"])
        expect(fixture.uploads.completed, equals: [fixture.bytes])
        // With the same key, a server may return the upload that it has forgotten.
        let keys = fixture.server.requests.filter { $0.method == "POST" }.map { $0.headers["Idempotency-Key"] }
        expect(keys.count == 2 && keys.first == "key" && keys.last != "key" && keys.last??.hasPrefix("key-") == true)
    }

    /// Runs the operation to its end, and returns the reasons of its new beginnings.
    private func startedOver(
        _ fixture: UploadFixture,
        _ upload: UploadOperation<UploadFixture.Post>
    ) async -> ([String], Result<NetworkResponse, NetworkError>) {
        let queue = NetworkQueue(name: "uploads")
        let events = queue.events
        queue.addOperation(upload)
        var reasons: [String] = []
        for await event in events {
            if case .uploadStartedOver(let reason) = event.kind { reasons.append(reason) }
            if case .finished = event.kind { break }
        }
        return (reasons, upload.result ?? .failure(NetworkError(code: .cancelled)))
    }

    @Test(
        "TRF-7, BEY-23: an upload that is gone after all bytes were sent fails, and is not sent again",
        arguments: UploadFixture.kinds
    )
    func goneAtTheEnd(kind: Kind) async throws {
        let fixture = try UploadFixture(kind, 10_000)
        let uploads = fixture.uploads
        fixture.server.route("PATCH", "/files/1") { request in
            var response = uploads.respond(to: request)
            guard uploads.completed.count == 1 else { return response }
            response.fault = .reset
            uploads.expire()
            return response
        }
        let error = await fixture.run(fixture.operation()).failure
        expect(error?.statusCode == 404 && error?.mayHaveReachedServer == true, "\(String(describing: error))")
        expect(fixture.methods.filter { $0 == "POST" }.count, equals: 1)
        expect(fixture.uploads.completed.count, equals: 1)
        expect(await eventually { fixture.journals.names.isEmpty })
    }

    @Test("TRF-7: a last response that is cut off does not make the upload act twice", arguments: UploadFixture.kinds)
    func cutEnd(kind: Kind) async throws {
        let fixture = try UploadFixture(kind, 10_000)
        let uploads = fixture.uploads
        fixture.server.route("POST", "/files") { request in
            var response = MockResponse.text("created", status: 201, headers: uploads.respond(to: request).headers)
            if uploads.offsets.count == 1 { response.fault = .truncate(after: 2) }
            return response
        }
        for number in 1...2 {
            fixture.server.route("PATCH", "/files/\(number)") { request in
                let response = uploads.respond(to: request)
                guard uploads.completed.count == 1 else { return response }
                var cut = MockResponse.text("complete", headers: response.headers)
                cut.headers["Content-Length"] = nil
                cut.fault = .truncate(after: 2)
                return cut
            }
        }
        let result = await fixture.run(fixture.operation())
        switch kind {
        case .tus: _ = try result.get()
        case .http:
            expect(result.failure?.code == .cannotParseResponse && result.failure?.statusCode == 200, "\(result)")
        }
        expect(fixture.methods.filter { $0 == "POST" }.count, equals: 2)
        expect(fixture.uploads.completed, equals: [fixture.bytes])
        expect(await eventually { fixture.journals.names.isEmpty })
    }

    /// Fails before a message with this method is sent.
    private struct Offline: RequestInterceptor {
        let method: NetworkService.Method

        func adapt(_ message: TransportRequest, context: AttemptContext) async throws -> TransportRequest {
            if message.method == method { throw NetworkError(code: .cannotConnect) }
            return message
        }
    }

    @Test(
        "TRF-7, BEY-23: after all bytes were sent, any error says that the server may have them",
        arguments: UploadFixture.kinds
    )
    func maybeComplete(kind: Kind) async throws {
        for method in [NetworkService.Method.head, .patch] {
            let fixture = try UploadFixture(kind, 10_000)
            fixture.uploads.failResponse(number: kind == .tus ? 1 : 2)
            let upload = fixture.operation { $0.interceptors = [Offline(method: method)] }
            let error = await fixture.run(upload).failure
            expect(error?.code, equals: .cannotConnect)
            expect(error?.mayHaveReachedServer, equals: method == .head)
            expect(fixture.uploads.completed.count, equals: method == .head ? 1 : 0)
        }
    }

    @Test("TRF-7: the IETF's last response can be lost; then the item comes from the address that the option names")
    func lostEnd() async throws {
        for hasItem in [false, true] {
            let fixture = try UploadFixture(.http, 10_000)
            fixture.server.route("GET", "/films/1") { _ in .text("the film") }
            fixture.uploads.failResponse(number: 2)
            let item: @Sendable (URL) -> String = { "films/\(segment: $0.lastPathComponent)" }
            let upload = fixture.operation { $0.resuming = fixture.settings(item: hasItem ? item : nil) }
            upload.keepsResponseBody = true
            let result = await fixture.run(upload)
            if hasItem {
                expect((try? result.get()).map { String(decoding: $0.body, as: UTF8.self) }, equals: "the film")
            } else {
                expect(result.failure?.code, equals: .cannotParseResponse)
                expect(result.failure?.mayHaveReachedServer == true)
            }
            expect(fixture.uploads.completed.count, equals: 1)
            expect(await eventually { fixture.journals.names.isEmpty })
        }
    }

    @Test("TRF-7: a failure of processing is the IETF's last response, and is not repeated")
    func rejected() async throws {
        let fixture = try UploadFixture(.http, 10_000)
        let uploads = fixture.server.routeUploads("/files", .http) { _, _ in .error("no film", status: 503) }
        let error = await fixture.run(fixture.operation()).failure
        expect(error?.statusCode == 503 && error?.mayHaveReachedServer == true)
        expect(uploads.completed.count, equals: 1)
        expect(await eventually { fixture.journals.names.isEmpty })
    }

    // MARK: - tus

    struct Film: Decodable, Equatable, Sendable { var name: String }

    struct AddFilm: APIRequest {
        typealias Item = Film
        var api: String { "files" }
        var method: NetworkService.Method { .post }
        var options: RequestOptions
    }

    @Test("TRF-7: in tus, an item comes from the address that the option names, or is refused before anything is sent")
    func tusItem() async throws {
        let fixture = try UploadFixture(.tus)
        fixture.server.route("GET", "/films/1") { _ in .json(["name": "Ada"]) }
        let queue = NetworkQueue(name: "uploads")
        let refused = UploadOperation(
            AddFilm(options: RequestOptions(resuming: fixture.settings())),
            from: .file(fixture.file),
            service: fixture.service
        )
        queue.addOperation(refused)
        await refused.ended()
        expect(refused.error?.code == .invalidRequest && fixture.server.requests.isEmpty)
        let settings = fixture.settings { "films/\(segment: $0.lastPathComponent)" }
        let upload = UploadOperation(
            AddFilm(options: RequestOptions(resuming: settings)),
            from: .file(fixture.file),
            service: fixture.service
        )
        queue.addOperation(upload)
        try await expect(upload.value, equals: Film(name: "Ada"))
    }

    @Test("TRF-7: with PATCH, the URL of the request is the URL of the upload, as Vimeo and Cloudflare return it")
    func existingUpload() async throws {
        let fixture = try UploadFixture(.tus)
        struct Create: APIRequest {
            typealias Item = Void
            var api: String { "files" }
            var method: NetworkService.Method { .post }
            var headers: [String: String] { ["Tus-Resumable": "1.0.0", "Upload-Length": "100000"] }
        }
        try await fixture.service.perform(Create())
        _ = try await fixture.run(fixture.operation(method: .patch, api: "files/1")).get()
        expect(fixture.uploads.completed, equals: [fixture.bytes])
        expect(Array(fixture.methods.prefix(3)), equals: ["POST", "HEAD", "PATCH"])
    }

    // MARK: - Servers without a protocol

    @Test(
        "TRF-7: a server without the protocol is an error, or gets the body in one message",
        arguments: UploadFixture.kinds
    )
    func unsupported(kind: Kind) async throws {
        let fixture = try UploadFixture(kind)
        fixture.server.route("POST", "/plain") { request in
            .text("\(request.body.count)", status: 201, headers: ["Location": "/plain/1"])
        }
        let error = await fixture.run(fixture.operation(api: "plain")).failure
        expect(error?.code, equals: .badServerResponse)
        expect(fixture.methods.filter { $0 == "POST" }.count, equals: 1)
        let upload = fixture.operation(api: "plain") { $0.resuming = $0.resuming?.ifSupported }
        upload.keepsResponseBody = true
        let response = try await fixture.run(upload).get()
        expect(String(decoding: response.body, as: UTF8.self), equals: "100000")
        expect(upload.progress.isFinished)
        let supported = fixture.operation { $0.resuming = $0.resuming?.ifSupported }
        _ = try await fixture.run(supported).get()
        expect(fixture.uploads.completed, equals: [fixture.bytes])
        expect(await eventually { fixture.journals.names.isEmpty })
    }

    @Test("TRF-7: what cannot be resumed is refused before anything is sent")
    func invalid() async throws {
        let fixture = try UploadFixture(.tus)
        var form = MultipartForm()
        form.append(Data("a".utf8), name: "a")
        let request = UploadFixture.Post(options: RequestOptions(resuming: fixture.settings()))
        let operations = [
            UploadOperation(request, from: .multipart(form), service: fixture.service),
            fixture.operation(method: .put),
            fixture.operation { $0.resuming = .tus(partSize: 0, directory: fixture.journals.url) },
            fixture.operation { $0.resuming = .tus(metadata: ["a b": "c"], directory: fixture.journals.url) },
        ]
        for operation in operations {
            expect(await fixture.run(operation).failure?.code, equals: .invalidRequest)
        }
        expect(fixture.server.requests.isEmpty)
        let full = fixture.operation { $0.resuming = .tus(directory: URL(fileURLWithPath: "/dev/null/folder")) }
        expect(await fixture.run(full).failure?.code, equals: .cannotWriteFile)
    }
}
