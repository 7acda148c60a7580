import EasyNetworkTesting
import Foundation
import Testing

@testable import Downloader

@Suite("Jobs of the Downloader")
struct JobsTests {
    private let server: MockServer
    private let directory: URL

    init() throws {
        server = try MockServer()
        let name = "Downloader-\(UUID().uuidString)"
        directory = FileManager.default.temporaryDirectory.appendingPathComponent(name, isDirectory: true)
    }

    private func arguments(_ paths: String...) -> Arguments {
        var arguments = Arguments()
        arguments.addresses = paths.map { server.baseURL.absoluteString + $0 }
        arguments.directory = directory.path
        return arguments
    }

    private func screen(_ arguments: Arguments) -> Screen {
        Screen(arguments.addresses, size: { nil }, write: { _ in })
    }

    /// - Returns: The transfers in their final state.
    private func run(_ arguments: Arguments) async -> [Transfer] {
        let screen = screen(arguments)
        await Jobs(arguments, screen: screen).run()
        return await screen.board.transfers
    }

    private func clean() {
        server.stop()
        try? FileManager.default.removeItem(at: directory)
    }

    private func text(_ name: String) throws -> String {
        try String(contentsOf: directory.appendingPathComponent(name), encoding: .utf8)
    }

    @Test("TRF-2: files come into a directory that is made, under the server's names; one that fails leaves nothing")
    func files() async throws {
        defer { clean() }
        server.route("GET", "/a.txt") { _ in .text("first") }
        server.route("GET", "/get") { _ in
            .text("second", headers: ["Content-Disposition": "attachment; filename=\"../.b.txt\""])
        }
        server.route("GET", "/none") { _ in .json(["error": "gone"], status: 404) }
        var arguments = arguments("/a.txt", "/get", "/none")
        arguments.directory += "/deeper"
        arguments.jobCount = 2
        let transfers = await run(arguments)
        #expect(transfers.prefix(2).map(\.phase) == [.done("a.txt"), .done("b.txt")])
        #expect(transfers.map(\.completedBytes) == [5, 6, 0] && transfers.map(\.totalBytes) == [5, 6, nil])
        guard case .failed(let message) = transfers[2].phase else { throw CancellationError() }
        #expect(message.contains("404") && message.contains("gone"))
        #expect(try text("deeper/a.txt") == "first" && text("deeper/b.txt") == "second")
        let names = try FileManager.default.contentsOfDirectory(atPath: arguments.directory).sorted()
        #expect(names == ["a.txt", "b.txt"])
    }

    @Test("TRF-2: a second start leaves alone what is there, unless a digest says what it must be")
    func secondStart() async throws {
        defer { clean() }
        server.route("GET", "/a.txt") { _ in .text("new") }
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        try Data("old".utf8).write(to: directory.appendingPathComponent("a.txt"))
        var arguments = arguments("/a.txt")
        let kept = try #require(await run(arguments).first)
        #expect(kept.phase == .done("a.txt") && kept.completedBytes == 3 && kept.loadedBytes == 0)
        #expect(try text("a.txt") == "old")
        // The SHA-256 of "new", computed by another program.
        arguments.sha256 = "11507a0e2f5e69d5dfa40a62a1bd7b6ee57e6bcd85c67c9b8431b36fff21c437"
        #expect(await run(arguments).first?.phase == .done("a.txt"))
        #expect(try text("a.txt") == "new")
    }

    @Test(
        "TRF-2: URLs that differ only in their query are fetched in sequence, because they share a partial file"
    )
    func queries() async throws {
        defer { clean() }
        server.route("GET", "/get") { request in
            let query = request.query ?? ""
            return .text(query, headers: ["Content-Disposition": "attachment; filename=\(query).txt"])
        }
        let transfers = await run(arguments("/get?1", "/get?2", "/get?3"))
        #expect(transfers.map(\.phase) == (1...3).map { .done("\($0).txt") })
        for name in ["1", "2", "3"] { #expect(try text("\(name).txt") == name) }
    }

    @Test("TRF-3: bytes from before Ctrl-C are kept, and the next start requests only the rest")
    func interrupted() async throws {
        defer { clean() }
        let body = Data((0..<200_000).map { UInt8(truncatingIfNeeded: $0 / 7) })
        server.route("GET", "/large") { request in
            let head = ["ETag": "\"1\"", "Accept-Ranges": "bytes"]
            guard let range = request.headers["Range"], let first = Int(range.dropFirst(6).dropLast()) else {
                var answer = MockResponse.data(body, headers: .init(head))
                answer.fault = .stall(at: .responseBody(after: 100_000))
                return answer
            }
            let content = ["Content-Range": "bytes \(first)-199999/200000"]
            return .data(body.dropFirst(first), status: 206, headers: .init(head.merging(content) { $1 }))
        }
        let arguments = arguments("/large")
        let screen = screen(arguments)
        let jobs = Jobs(arguments, screen: screen, idle: nil)
        async let run: Void = jobs.run()
        for _ in 0..<60_000 {
            if await screen.board.completedBytes == 100_000 { break }
            // Paces the polling; it does not synchronise.
            try await Task.sleep(nanoseconds: 1_000_000)
        }
        jobs.cancel()
        await run
        let before = await screen.board.transfers
        #expect(before.first?.phase == .interrupted && before.first?.completedBytes == 100_000)
        let after = await self.run(arguments)
        #expect(after.first?.phase == .done("large") && after.first?.completedBytes == 200_000)
        #expect(try Data(contentsOf: directory.appendingPathComponent("large")) == body)
        #expect(server.requests(to: "/large").map { $0.headers["Range"] } == [nil, "bytes=100000-"])
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path) == ["large"])
    }
}
