import EasyNetworkTesting
import Foundation

@testable import EasyNetwork

/// A transport that plays events for each message, by its number from 0.
final class ScriptedTransport: NetworkTransport {
    typealias Script = @Sendable (TransportRequest, Int) -> [TransportEvent]

    private struct Exchange: TransportExchange {
        let cancelled: @Sendable () -> Void

        func cancel() { cancelled() }
    }

    let sent = Locked<[TransportRequest]>([])
    let cancelCount = Locked(0)
    private let isSynchronous: Bool
    private let script: Script
    private let queue = DispatchQueue(label: "ScriptedTransport")

    /// - Parameter isSynchronous: Whether the events come before `start` returns.
    init(isSynchronous: Bool = false, _ script: @escaping Script) {
        self.isSynchronous = isSynchronous
        self.script = script
    }

    var messages: [TransportRequest] { sent.withLock { $0 } }

    func start(
        _ request: TransportRequest,
        events: @escaping @Sendable (TransportEvent) -> Void
    ) -> any TransportExchange {
        let number = sent.withLock { sent in
            sent.append(request)
            return sent.count - 1
        }
        let all = script(request, number)
        if isSynchronous {
            for event in all { events(event) }
        } else {
            queue.async { for event in all { events(event) } }
        }
        return Exchange { [cancelCount] in cancelCount.withLock { $0 += 1 } }
    }

    /// A host at `https://api.example.com` that retries without delay.
    func host(_ change: (inout HostSettings) -> Void = { _ in }) -> HostConfiguration {
        HostConfiguration(baseURL: URL(string: "https://api.example.com"), transport: self) { settings in
            settings.random = { 0 }
            change(&settings)
        }
    }
}

extension [TransportEvent] {
    static func answer(_ status: Int, _ headers: HTTPHeaders = HTTPHeaders(), body: String = "") -> [TransportEvent] {
        [.head(TransportHead(statusCode: status, headers: headers)), .body(Data(body.utf8)), .end(TransportEnd())]
    }

    static func failure(_ code: NetworkError.Code, _ phase: TransportPhase) -> [TransportEvent] {
        var error = NetworkError(code: code)
        error.phase = phase
        return [.end(TransportEnd(error: error))]
    }
}
