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
        var journals: URL
        var api: String { "films" }
        var method: NetworkService.Method { .post }
        var body: RequestBody? { .file(file) }
        var options: RequestOptions {
            RequestOptions(retry: .never, resuming: .tus(partSize: 10_000, directory: journals))
        }
    }

    @Test("TRF-7, BEY-13: an entry's upload that broke off is resumed by the next attempt, with the outbox's own file")
    func resumes() async throws {
        let folder = TestFolder()
        let bytes = RangedFile.bytes(100_000)
        try bytes.write(to: folder.file("film"))
        let server = try MockServer()
        let uploads = server.routeUploads("/films", .tus)
        uploads.failResponse(number: 4)
        let host = server.host { $0.random = { 0 } }
        let outbox = try Outbox(directory: folder.file("outbox"), service: EasyNetworkService(host))
        outbox.register(Film.self, name: "film", options: OutboxOptions(retryDelays: 0.001...0.001))
        let id = try outbox.add(Film(file: folder.file("film"), journals: folder.file("journals")))
        try FileManager.default.removeItem(at: folder.file("film"))
        try outbox.start()
        expect(await eventually { uploads.completed == [bytes] })
        try await expect(outbox.drain(deadline: 60).isEmpty)
        expect(server.requests.map(\.method).filter { $0 == "HEAD" || $0 == "POST" }, equals: ["POST", "HEAD"])
        expect(server.requests.first?.headers["Idempotency-Key"], equals: id.uuidString)
        expect(folder.names, equals: ["journals", "outbox"])
    }
}
