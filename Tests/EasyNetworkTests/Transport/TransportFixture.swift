import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork

/// A transport with something at its other end that answers as scripted; its deadlines follow a clock moved by hand.
struct TransportFixture: Sendable {
    enum Kind: CaseIterable, Sendable, CustomTestStringConvertible {
        case urlSession
        case inMemory
        #if os(Linux)
        case curl
        #endif

        var testDescription: String {
            switch self {
            case .urlSession: "URLSessionTransport"
            case .inMemory: "InMemoryTransport"
            #if os(Linux)
            case .curl: "CurlTransport"
            #endif
            }
        }
    }

    let transport: any NetworkTransport
    let baseURL: URL
    let clock = ManualClock()
    private let server: MockServer?
    private let inMemory: InMemoryTransport?

    /// - Parameter known: the server, for a test that asks it for more; by default one of its own.
    init(
        _ kind: Kind,
        _ configuration: TransportConfiguration = TransportConfiguration(),
        at known: MockServer? = nil
    ) throws {
        switch kind {
        case .urlSession:
            let server = try known ?? MockServer()
            self.server = server
            inMemory = nil
            baseURL = server.baseURL
            transport = URLSessionTransport(configuration, clock: clock)
        case .inMemory:
            let inMemory = InMemoryTransport(clock: clock)
            server = nil
            self.inMemory = inMemory
            baseURL = try #require(URL(string: "http://memory.test"))
            transport = inMemory
        #if os(Linux)
        case .curl:
            let server = try known ?? MockServer()
            self.server = server
            inMemory = nil
            baseURL = server.baseURL
            transport = CurlTransport(configuration, clock: clock)
        #endif
        }
    }

    func route(_ method: String, _ path: String, _ answer: @escaping @Sendable (MockRequest) -> MockResponse) {
        server?.route(method, path, answer)
        inMemory?.route(method, path, answer)
    }

    /// Makes the next request meet a fault before it has arrived.
    func failNextRequest(with fault: MockResponse.Fault) {
        server?.failNextRequests(with: fault)
    }

    /// Sends bytes that nobody asked for, where there is a connection.
    func sendUnasked(_ bytes: Data) async {
        await server?.sendUnasked(bytes)
    }

    func waitForFaults(_ count: Int) async {
        await server?.waitForFaults(count)
    }

    var requests: [MockRequest] { server?.requests ?? inMemory?.requests ?? [] }

    func waitForRequests(_ count: Int) async {
        await server?.waitForRequests(count)
        await inMemory?.waitForRequests(count)
    }

    func request(_ path: String, _ method: NetworkService.Method = .get) throws -> TransportRequest {
        TransportRequest(method: method, url: try #require(URL(string: baseURL.absoluteString + path)))
    }

    /// Starts an exchange and notes what happens to it.
    func start(_ request: TransportRequest, whenHead: @escaping @Sendable () -> Void = {}) -> RecordedExchange {
        let recording = Recording(whenHead)
        return RecordedExchange(exchange: transport.start(request) { recording.note($0) }, recording: recording)
    }
}

/// An exchange, and what happened to it.
struct RecordedExchange: Sendable {
    let exchange: any TransportExchange
    let recording: Recording

    func end() async -> Recording.Contents {
        await recording.ended.opened()
        return recording.contents
    }
}

/// The events of one exchange, and whether their order was right.
final class Recording: Sendable {
    struct Contents: Sendable {
        var head: TransportHead?
        var body = Data()
        var end: TransportEnd?
        var faults: [String] = []
        /// What was told of the request's body.
        var sent: [Int] = []

        var code: NetworkError.Code? { end?.error?.code }
    }

    let ended = Gate()
    private let state = Locked(Contents())
    private let whenHead: @Sendable () -> Void

    init(_ whenHead: @escaping @Sendable () -> Void) {
        self.whenHead = whenHead
    }

    var contents: Contents { state.withLock { $0 } }

    func note(_ event: TransportEvent) {
        state.withLock { contents in
            if contents.end != nil { contents.faults.append("\(event) after the end") }
            switch event {
            case .sent(let count):
                contents.sent.append(count)
            case .head(let head):
                if contents.head != nil { contents.faults.append("a second head") }
                contents.head = head
            case .body(let data):
                if contents.head == nil { contents.faults.append("a body before the head") }
                contents.body.append(data)
            case .end(let end):
                if contents.head == nil, end.error == nil { contents.faults.append("an end without head or error") }
                contents.end = end
            }
        }
        if case .head = event { whenHead() }
        if case .end = event { ended.open() }
    }
}
