#if os(Linux)
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Nginx: uploads", .enabled(if: NginxServer.isInstalled), .timeLimit(.minutes(10)))
struct NginxUploadTests {
    private static let bytes = RangedFile.bytes(3_000_001)

    private struct Put: APIRequest {
        typealias Item = Void
        var api: String
        var method: NetworkService.Method { .put }
    }

    @Test(
        "TRF-4: data, a file and a stream arrive whole, and the progress has all their bytes",
        arguments: [NginxServer.Listener.http, .https1, .https2],
        ["data", "file", "stream"]
    )
    func whole(listener: NginxServer.Listener, form: String) async throws {
        let folder = TestFolder()
        let client = try await NginxClient()
        let host = HostConfiguration(
            baseURL: client.server.url(listener, "/files/"),
            deadlines: TransportDeadlines(idle: nil),
            transport: client.transport
        )
        let body: RequestBody
        switch form {
        case "data": body = .data(Self.bytes)
        case "file":
            try Self.bytes.write(to: folder.file("in"))
            body = .file(folder.file("in"))
        default:
            body = .stream(TransportBodyStream(length: Self.bytes.count) { InputStream(data: Self.bytes) })
        }
        let name = "upload-\(listener)-\(form)"
        let upload = UploadOperation(Put(api: name), from: body, service: EasyNetworkService(host))
        NetworkQueue(name: "uploads").addOperation(upload)
        await upload.ended()
        expect(upload.error == nil)
        expect(upload.progress.completedUnitCount, equals: Int64(Self.bytes.count))
        expect(upload.progress.isFinished)
        await expect(client.outcome(listener, "/files/\(name)").body, equals: Self.bytes)
    }
}
#endif
