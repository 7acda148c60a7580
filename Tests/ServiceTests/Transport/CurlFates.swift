#if os(Linux)
import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

/// Runs many requests with all kinds of outcomes over one transport, and checks that nothing of it is left.
struct CurlFates {
    static var descriptorCount: Int {
        (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count) ?? 0
    }

    static var residentBytes: Int {
        let text = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)) ?? ""
        let pages = text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        return pages * Int(sysconf(Int32(_SC_PAGESIZE)))
    }

    func run(count: Int, seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        let server = try MockServer()
        let paths = [
            "/ok", "/chunked", "/reset", "/close", "/cut", "/stall", "/slow", "/missing", "/gzip", "/trailers",
        ]
        server.route("*", "/ok") { _ in .text("ok") }
        server.route("*", "/chunked") { _ in .chunked(Array(repeating: Data(repeating: 1, count: 9_000), count: 9)) }
        server.route("*", "/reset") { _ in .fault(.reset) }
        server.route("*", "/close") { _ in .fault(.close) }
        server.route("*", "/cut") { _ in
            var response = MockResponse.data(Data(repeating: 7, count: 1_000))
            response.fault = .truncate(after: 10)
            return response
        }
        server.route("*", "/stall") { _ in .fault(.stall) }
        server.route("*", "/gzip") { _ in .gzip(Data(repeating: 4, count: 100_000)) }
        server.route("*", "/trailers") { _ in
            MockResponse(body: .chunks([Data("a".utf8)]), trailers: ["X-After": "1"])
        }
        server.route("*", "/slow") { _ in
            var response = MockResponse.text("late")
            response.delay = 0.005
            return response
        }
        let file = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try Data(repeating: 3, count: 150_000).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        weak var loop: CurlLoop?
        let configuration = TransportConfiguration(maximumConnectionsPerHost: 8, proxy: .none)
        var transport: CurlTransport? = CurlTransport(configuration)
        loop = transport?.loop
        var exchanges: [RecordedExchange] = []
        for _ in 0..<count {
            let path = paths.randomElement(using: &random) ?? "/ok"
            var request = TransportRequest(url: try #require(URL(string: server.baseURL.absoluteString + path)))
            request.deadlines.idle = 0.05
            if Bool.random(using: &random) {
                request.method = .post
                let body = Data(repeating: 2, count: Int.random(in: 0..<200_000, using: &random))
                switch Int.random(in: 0..<3, using: &random) {
                case 0: request.body = .file(file)
                case 1: request.body = .data(body)
                default: request.body = .stream(TransportBodyStream { Self.pieces(of: body) })
                }
            }
            let recording = Recording {}
            let sender = try #require(transport)
            let exchange = sender.start(request) { recording.note($0) }
            exchanges.append(RecordedExchange(exchange: exchange, recording: recording))
            switch Int.random(in: 0..<8, using: &random) {
            case 0: exchange.cancel()
            case 1: exchanges.randomElement(using: &random)?.exchange.cancel()
            case 2: await Task.yield()
            case 3:
                // A paused exchange would never end nor free its connection.
                for exchange in exchanges { exchange.exchange.resume() }
                await exchanges.randomElement(using: &random)?.recording.ended.opened()
            case 4: exchange.pause()
            case 5: exchanges.randomElement(using: &random)?.exchange.resume()
            default: break
            }
        }
        // The last exchanges are still in progress.
        for exchange in exchanges { exchange.exchange.resume() }
        for exchange in exchanges.dropLast(20) { _ = await exchange.end() }
        transport = nil
        for exchange in exchanges { _ = await exchange.end() }
        await expect(server.waitForConnections(0), "seed \(seed)")
        // The loop's transfers retain the exchanges.
        let left = exchanges.map { Left(exchange: $0.exchange as? CurlExchange) }
        expect(left.allSatisfy { $0.exchange != nil })
        let recordings = exchanges.map(\.recording)
        exchanges = []
        await expect(eventually { loop == nil }, "seed \(seed)")
        await expect(eventually { left.allSatisfy { $0.exchange == nil } }, "seed \(seed)")
        expect(recordings.allSatisfy { $0.contents.faults.isEmpty && $0.contents.end != nil }, "seed \(seed)")
        server.stop()
    }

    private final class Left {
        weak var exchange: CurlExchange?

        init(exchange: CurlExchange?) {
            self.exchange = exchange
        }
    }

    private static func pieces(of body: Data) -> AsyncStream<Data> {
        AsyncStream { continuation in
            for start in stride(from: 0, to: body.count, by: 50_000) {
                continuation.yield(body[start..<min(start + 50_000, body.count)])
            }
            continuation.finish()
        }
    }
}
#endif
