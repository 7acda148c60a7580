import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import EasyNetworkOutbox
@testable import EasyNetworkTesting
@testable import TestSupport

@Suite("An outbox whose uploads resume", .timeLimit(.minutes(10)))
struct OutboxUploadTests {
    private struct Film: APIRequest, Codable {
        typealias Item = Void
        var file: URL
        var api: String { "films" }
        var method: NetworkService.Method { .post }
        var body: RequestBody? { .file(file) }
        var options: RequestOptions { RequestOptions(retry: .never, resuming: .tus(partSize: 10_000)) }
    }

    private let folder = TestFolder()
    private let bytes = RangedFile.bytes(100_000)
    private let server: MockServer
    private let uploads: MockUploads

    init() throws {
        server = try MockServer()
        uploads = server.routeUploads("/films", .tus)
    }

    private func outbox(_ name: String = "outbox") throws -> Outbox {
        let host = server.host { $0.random = { 0 } }
        let outbox = try Outbox(directory: folder.file(name), queue: NetworkQueue(), service: EasyNetworkService(host))
        outbox.register(Film.self, name: "film", options: OutboxOptions(retryDelays: 0.001...0.001))
        return outbox
    }

    /// Adds a film whose original is gone.
    private func addFilm(to outbox: Outbox) throws -> UUID {
        try bytes.write(to: folder.file("film"))
        let id = try outbox.add(Film(file: folder.file("film")))
        try FileManager.default.removeItem(at: folder.file("film"))
        return id
    }

    /// The names of the journals.
    private func journals(_ name: String = "outbox") throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder.file(name).path + "/uploads")
    }

    private var messages: [String] {
        server.requests.map { "\($0.method) \($0.headers["Upload-Offset"] ?? "")" }
    }

    private static let parts = stride(from: 0, to: 100_000, by: 10_000).map { "PATCH \($0)" }

    @Test("TRF-7, BEY-13: an entry's upload that broke off is resumed by the next attempt, with the outbox's own file")
    func resumes() async throws {
        uploads.failResponse(number: 4)
        let outbox = try outbox()
        let id = try addFilm(to: outbox)
        try outbox.start()
        expect(await eventually { uploads.completed == [bytes] })
        try await expect(outbox.drain(deadline: 60).isEmpty)
        expect(server.requests.map(\.method).filter { $0 == "HEAD" || $0 == "POST" }, equals: ["POST", "HEAD"])
        expect(server.requests.first?.headers["Idempotency-Key"], equals: id.uuidString)
        try expect(folder.names == ["outbox"] && journals().isEmpty)
    }

    @Test("TRF-7, BEY-13: after a kill, the next process resumes the upload of an entry")
    func relaunch() async throws {
        let first = try outbox()
        let id = try addFilm(to: first)
        uploads.hold(after: 30_000)
        try first.start()
        await server.waitForFaults(1)
        try expect(journals(), equals: [id.uuidString])
        // What the next process would find if this one were killed now.
        try FileManager.default.copyItem(at: folder.file("outbox"), to: folder.file("copy"))
        let film = try #require(try first.folder.list(.entries).first).text + "/file0"
        // A copy has another date.
        try FileManager.default.removeItem(at: folder.file("copy/entries/" + film))
        expect(link(folder.file("outbox/entries/" + film).path, folder.file("copy/entries/" + film).path), equals: 0)
        let next = try outbox("copy")
        try await expect(next.drain(deadline: 60).isEmpty)
        expect(uploads.completed, equals: [bytes])
        expect(messages, equals: ["POST "] + Self.parts.prefix(3) + ["HEAD "] + Self.parts.dropFirst(3))
        try expect(journals("copy").isEmpty)
        // The upload of an entry that is removed ends, and so does its journal.
        try first.remove(id)
        await expect(eventually { (try? journals())?.isEmpty == true })
        try await first.drain(deadline: 0)
    }

    @Test("TRF-7, BEY-13: a dead letter keeps the journal of its upload, and a retry resumes it")
    func deadLetter() async throws {
        let uploads = uploads
        let isRefused = Locked(true)
        server.route("PATCH", "/films/1") { request in
            let isRefused = request.headers["Upload-Offset"] == "30000" && isRefused.withLock { $0 }
            return isRefused ? .status(422) : uploads.respond(to: request)
        }
        let outbox = try outbox()
        let id = try addFilm(to: outbox)
        try await expect(outbox.drain(deadline: 60).isEmpty)
        try expect(outbox.deadLetters.map(\.id), equals: [id])
        outbox.folder.sweep()
        try expect(journals(), equals: [id.uuidString])
        isRefused.exchange(false)
        try outbox.retry(id)
        try await expect(outbox.drain(deadline: 60).isEmpty)
        expect(uploads.completed, equals: [bytes])
        expect(messages, equals: ["POST "] + Self.parts.prefix(4) + ["HEAD "] + Self.parts.dropFirst(3))
        try expect(journals().isEmpty)
    }

    @Test("TRF-7, BEY-13: an entry or a dead letter that is removed takes the journal of its upload with it")
    func removed() async throws {
        let uploads = uploads
        for status in [422, 503] {
            server.route("PATCH", "/films/*") { request in
                request.headers["Upload-Offset"] == "30000" ? .status(status) : uploads.respond(to: request)
            }
            let outbox = try outbox()
            let id = try addFilm(to: outbox)
            try outbox.start()
            await expect(
                eventually {
                    let entries = status == 422 ? try? outbox.deadLetters : try? outbox.entries
                    return entries?.first?.attemptCount ?? 0 > 0 || status == 422 && entries?.isEmpty == false
                }
            )
            try expect(journals(), equals: [id.uuidString])
            try await outbox.drain(deadline: 0)
            try outbox.remove(id)
            try expect(journals().isEmpty)
        }
    }
}
