import Foundation
import Testing

@testable import EasyNetwork
@testable import EasyNetworkTesting

/// A transport with a scripted server and a manual clock for its deadlines.
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

    /// - Parameter known: The server, for a test that needs access to it; by default a new one.
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

    /// Makes the next request fail before it has arrived.
    func failNextRequest(with fault: MockResponse.Fault) {
        server?.failNextRequests(with: fault)
    }

    /// Sends unsolicited bytes, if the transport has connections.
    func sendUnasked(_ bytes: Data) async {
        await server?.sendUnasked(bytes)
    }

    func waitForFaults(_ count: Int) async {
        await server?.waitForFaults(count)
    }

    /// Waits until the client can see that the server has closed its connection.
    func waitForClose() async {
        _ = await server?.waitForClose()
    }

    var requests: [MockRequest] { server?.requests ?? inMemory?.requests ?? [] }

    func waitForRequests(_ count: Int) async {
        await server?.waitForRequests(count)
        await inMemory?.waitForRequests(count)
    }

    func request(_ path: String, _ method: NetworkService.Method = .get) throws -> TransportRequest {
        TransportRequest(method: method, url: try #require(URL(string: baseURL.absoluteString + path)))
    }

    /// Starts an exchange and records its events.
    func start(_ request: TransportRequest, whenHead: @escaping @Sendable () -> Void = {}) -> RecordedExchange {
        let recording = Recording(whenHead)
        return RecordedExchange(exchange: transport.start(request) { recording.note($0) }, recording: recording)
    }
}

/// An exchange and its recorded events.
struct RecordedExchange: Sendable {
    let exchange: any TransportExchange
    let recording: Recording

    func end() async -> Recording.Contents {
        await recording.ended.opened()
        return recording.contents
    }
}

/// Records the events of one exchange, and faults in their order.
final class Recording: Sendable {
    struct Contents: Sendable {
        var head: TransportHead?
        var body = Data()
        var end: TransportEnd?
        var faults: [String] = []
        /// The counts of sent body bytes.
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
