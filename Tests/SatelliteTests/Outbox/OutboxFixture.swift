import EasyNetworkTesting
import Foundation

@testable import EasyNetwork
@testable import EasyNetworkOutbox

struct OutboxMessage: APIRequest, Codable {
    typealias Item = Void
    var text: String
    var api: String { "messages" }
    var method: NetworkService.Method { .post }
    var params: [String: Any]? { ["text": text] }
    var query: NetworkService.QueryType { .json }
    var options: RequestOptions { RequestOptions(retry: .never) }
}

struct OutboxPhoto: APIRequest, Codable {
    typealias Item = Void
    var file: URL
    var isForm = false
    var api: String { "photos" }
    var method: NetworkService.Method { .post }
    var options: RequestOptions { RequestOptions(retry: .never) }
    var body: RequestBody? {
        guard isForm else { return .file(file) }
        var form = MultipartForm()
        form.append(file: file, name: "photo")
        return .multipart(form)
    }
}

/// Files of which some steps fail.
final class FailingOutboxFiles: CacheFiles, @unchecked Sendable {
    // Sendable because the state is behind its lock.
    private let state = Locked((step: 0, failing: 0..<0))
    /// Called before a rename, with the path of the file.
    let willRename = Locked<(@Sendable (String) -> Void)?>(nil)

    /// Has steps fail, counted from now on.
    func fail(_ steps: Range<Int>) {
        state.exchange((0, steps))
    }

    private func step() throws {
        let fails = state.withLock { state in
            state.step += 1
            return state.failing.contains(state.step - 1)
        }
        if fails { throw POSIXError(.ENOSPC) }
    }

    override func create(_ path: String, _ pieces: [Data], usedAt date: Date) throws {
        try step()
        try super.create(path, pieces, usedAt: date)
    }

    override func sync(_ path: String, isLast: Bool) throws {
        try step()
        try super.sync(path, isLast: isLast)
    }

    override func rename(_ path: String, to newPath: String) throws {
        willRename.withLock { $0 }?(path)
        try step()
        try super.rename(path, to: newPath)
    }

    override func link(_ path: String, to newPath: String) throws {
        try step()
        try super.link(path, to: newPath)
    }
}

final class OutboxFixture {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent("outbox-\(UUID().uuidString)")
    let clock = ManualClock()
    let transport: InMemoryTransport
    let files = FailingOutboxFiles()
    private let answer = Locked<[Int]>([])

    init() {
        transport = InMemoryTransport(clock: clock)
        transport.route("POST", "*") { [answer] _ in
            .status(answer.withLock { $0.count > 1 ? $0.removeFirst() : $0.first ?? 204 })
        }
    }

    deinit {
        try? FileManager.default.removeItem(at: directory)
    }

    /// The statuses of the next answers; the last one repeats.
    func answers(_ statuses: Int...) {
        answer.exchange(statuses)
    }

    /// - Parameter change: of the host's settings.
    func outbox(
        maximumCount: Int = .max,
        maximumAge: TimeInterval = .infinity,
        queue: NetworkQueue = NetworkQueue(),
        activity: ExpiringActivity? = nil,
        files: CacheFiles? = nil,
        _ change: (inout HostSettings) -> Void = { _ in }
    ) throws -> Outbox {
        let host = HostConfiguration(baseURL: URL(string: "https://api.example.com"), transport: transport) {
            $0.clock = clock
            $0.random = { 1 }
            change(&$0)
        }
        let outbox = Outbox(
            try OutboxFolder(directory, files: files ?? self.files),
            queue,
            EasyNetworkService(host),
            maximumCount,
            maximumAge,
            activity: activity
        )
        outbox.register(OutboxMessage.self, name: "message")
        outbox.register(OutboxPhoto.self, name: "photo")
        return outbox
    }

    var texts: [String] {
        transport.requests.compactMap { ($0.json() as? [String: Any])?["text"] as? String }
    }

    var keys: [String?] { transport.requests.map { $0.headers["Idempotency-Key"] } }

    /// The number of files in a folder; in that of temporary files, of those in the folders of all outboxes.
    func count(_ folder: String) -> Int {
        func names(_ path: String) -> [String]? { try? FileManager.default.contentsOfDirectory(atPath: path) }
        guard let found = names(directory.path + "/" + folder) else { return -1 }
        guard folder == "tmp" else { return found.count }
        return found.map { names(directory.path + "/tmp/" + $0)?.count ?? 1 }.reduce(0, +)
    }
}
