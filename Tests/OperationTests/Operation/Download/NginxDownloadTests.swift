#if os(Linux)
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Nginx: downloads", .enabled(if: NginxServer.isInstalled), .timeLimit(.minutes(10)))
struct NginxDownloadTests {
    private static let listeners: [NginxServer.Listener] = [.http, .https1, .https2]
    private static let bytes = RangedFile.bytes(5_000_001)

    private let folder = TestFolder()

    /// Makes a client, and a file with that name on the server.
    private func client(_ name: String, _ listener: NginxServer.Listener) async throws -> NginxClient {
        let client = try await NginxClient()
        let outcome = await client.outcome(listener, "/files/\(name)", .put, .data(Self.bytes))
        expect(outcome.end?.error == nil && (200...204).contains(outcome.head?.statusCode ?? 0))
        return client
    }

    private func run(
        _ client: NginxClient,
        _ listener: NginxServer.Listener,
        _ path: String,
        headers: [String: String]? = nil,
        _ change: (DownloadOperation) -> Void = { _ in }
    ) async -> DownloadOperation {
        let host = HostConfiguration(
            baseURL: client.server.url(listener, "/"),
            deadlines: TransportDeadlines(idle: nil),
            transport: client.transport
        )
        let request = FileRequest(api: String(path.dropFirst()), headers: headers)
        let operation = DownloadOperation(request, to: folder.file("out"), service: EasyNetworkService(host))
        change(operation)
        NetworkQueue(name: "downloads").addOperation(operation)
        await operation.ended()
        return operation
    }

    @Test("TRF-2: a file comes whole, in one and in ranges", arguments: listeners, [1, 4])
    func whole(listener: NginxServer.Listener, segments: Int) async throws {
        let name = "download-\(listener)-\(segments)"
        let client = try await client(name, listener)
        let digest = SHA256.digest(of: Self.bytes).hexadecimal
        let operation = await run(client, listener, "/files/\(name)") { options in
            options.segmentCount = segments
            options.sha256 = digest
        }
        expect(operation.error == nil)
        expect(folder.data("out"), equals: Self.bytes)
        expect(folder.names, equals: ["out"])
    }

    @Test("TRF-3: bytes that are there are fetched again only if the file has changed", arguments: listeners)
    func resumed(listener: NginxServer.Listener) async throws {
        let name = "resumed-\(listener)"
        let client = try await client(name, listener)
        let head = await client.outcome(listener, "/files/\(name)", .head)
        let tag = try #require(head.head?.headers["ETag"])
        for isSame in [true, false] {
            let place = try DownloadLocation(folder.file("out"), resource: "")
            // The bytes differ from the file's, which shows how many of them were kept.
            try Data(repeating: 7, count: 1_000_000).write(to: URL(fileURLWithPath: place.part))
            let count = Int64(Self.bytes.count)
            ResumeJournal(
                resource: client.server.url(listener, "/files/\(name)").downloadDigest,
                validator: .entityTag(isSame ? tag : "\"other\""),
                total: count,
                segments: [ResumeJournal.Segment(lower: 0, upper: count, count: 1_000_000)],
                boot: ResumeJournal.currentBoot
            ).write(to: place.journal)
            let operation = await run(client, listener, "/files/\(name)")
            expect(operation.error == nil)
            let expected = isSame ? Data(repeating: 7, count: 1_000_000) + Self.bytes.dropFirst(1_000_000) : Self.bytes
            expect(folder.data("out"), equals: expected, "same: \(isSame)")
        }
    }

    @Test("TRF-3: a part that is the whole file is confirmed by the server, and moved", arguments: listeners)
    func complete(listener: NginxServer.Listener) async throws {
        let name = "complete-\(listener)"
        let client = try await client(name, listener)
        let head = await client.outcome(listener, "/files/\(name)", .head)
        let place = try DownloadLocation(folder.file("out"), resource: "")
        try Self.bytes.write(to: URL(fileURLWithPath: place.part))
        let count = Int64(Self.bytes.count)
        ResumeJournal(
            resource: client.server.url(listener, "/files/\(name)").downloadDigest,
            validator: .entityTag(try #require(head.head?.headers["ETag"])),
            total: count,
            segments: [ResumeJournal.Segment(lower: 0, upper: count, count: count)],
            boot: ResumeJournal.currentBoot
        ).write(to: place.journal)
        let operation = await run(client, listener, "/files/\(name)")
        expect(operation.error == nil)
        expect(folder.data("out"), equals: Self.bytes)
    }

    @Test("TRF-3: a compressed answer is decoded, and never resumed", arguments: listeners)
    func gzip(listener: NginxServer.Listener) async throws {
        let client = try await NginxClient()
        let plain = await client.outcome(listener, "/text", .head)
        let text = Data(NginxServer.text.utf8)
        let headers = ["Accept-Encoding": "gzip"]
        await expect(run(client, listener, "/text", headers: headers).error == nil)
        expect(folder.data("out"), equals: text)
        // The part is of the plain file; the answer is compressed.
        let place = try DownloadLocation(folder.file("out"), resource: "")
        try text.prefix(1_000).write(to: URL(fileURLWithPath: place.part))
        let tag = (plain.head?.headers["ETag"]).map { $0.replacingOccurrences(of: "W/", with: "") }
        ResumeJournal(
            resource: client.server.url(listener, "/text").downloadDigest,
            validator: .entityTag(try #require(tag)),
            total: Int64(text.count),
            segments: [ResumeJournal.Segment(lower: 0, upper: Int64(text.count), count: 1_000)],
            boot: ResumeJournal.currentBoot
        ).write(to: place.journal)
        await expect(run(client, listener, "/text", headers: headers).error == nil)
        expect(folder.data("out"), equals: text)
        // Without the `Accept-Encoding` field the answer is not compressed.
        await expect(run(client, listener, "/text").error == nil)
        expect(folder.data("out"), equals: text)
    }
}
#endif
