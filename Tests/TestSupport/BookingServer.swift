import EasyNetworkTesting
import Foundation

@testable import EasyNetwork

/// A booking, with the `Idempotency-Key` that it was made with.
struct Booked: Codable, Equatable {
    var name: String
    var key: String
}

struct Book: APIRequest {
    typealias Item = Booked
    var name: String
    var options = RequestOptions()
    var api: String { "bookings/\(name)" }
    var method: NetworkService.Method { .post }
}

/// Cancels a booking, or refuses it if it comes later.
struct CancelBooking: APIRequest, Codable {
    typealias Item = Void
    var key: String
    var api: String { "cancellations/\(key)" }
    var method: NetworkService.Method { .post }
}

/// A server with bookings by their keys.
final class BookingServer: Sendable {
    fileprivate struct State {
        /// The bookings in their order, and the keys of those that were cancelled.
        var booked: [Booked] = []
        var cancelled: [String] = []
        /// The `Idempotency-Key` of each cancellation.
        var cancelKeys: [String?] = []
        var refused: Set<String> = []
        var statuses: [String: [Int]] = [:]
    }

    let transport: InMemoryTransport
    private let state = Locked(State())

    init() {
        transport = InMemoryTransport()
        transport.route("POST", "/bookings/*") { [state] request in
            let booked = Booked(
                name: String(request.path.dropFirst("/bookings/".count)),
                key: request.headers["Idempotency-Key"] ?? ""
            )
            return state.withLock { state in
                if let status = state.takeStatus(booked.name), status >= 400 { return .status(status) }
                guard !state.cancelled.contains(booked.key) else { return .status(409) }
                if !state.booked.contains(booked) { state.booked.append(booked) }
                if state.takeStatus(booked.name + " lost") != nil { return .fault(.reset) }
                return .json(["name": booked.name, "key": booked.key], status: 201)
            }
        }
        transport.route("POST", "/cancellations/*") { [state] request in
            let key = String(request.path.dropFirst("/cancellations/".count))
            return state.withLock { state in
                state.cancelKeys.append(request.headers["Idempotency-Key"])
                let name = state.booked.first { $0.key == key }?.name ?? ""
                if let status = state.takeStatus("undo of " + name), status >= 400 { return .status(status) }
                state.cancelled.append(key)
                return .status(204)
            }
        }
    }

    func host(_ change: (inout HostSettings) -> Void = { _ in }) -> HostConfiguration {
        HostConfiguration(baseURL: URL(string: "https://api.example.com"), transport: transport) { host in
            host.retry.baseDelay = 0
            change(&host)
        }
    }

    /// Has the next requests about a name end with these statuses. The response to `"name lost"` is lost.
    func answer(_ name: String, _ statuses: Int...) { answer(name, statuses) }

    func answer(_ name: String, _ statuses: [Int]) { state.withLock { $0.statuses[name] = statuses } }

    var booked: [String] { state.withLock { $0.booked.map(\.name) } }
    var cancelled: [String] {
        state.withLock { state in
            state.cancelled.map { key in state.booked.first { $0.key == key }?.name ?? "unknown" }
        }
    }
    var cancelKeys: [String?] { state.withLock { $0.cancelKeys } }
}

extension BookingServer.State {
    fileprivate mutating func takeStatus(_ name: String) -> Int? {
        guard statuses[name]?.isEmpty == false else { return nil }
        return statuses[name]?.removeFirst()
    }
}

extension RequestOperation<Book> {
    /// A booking that can be undone by its key.
    convenience init(undoable name: String, _ host: HostConfiguration, _ options: RequestOptions = RequestOptions()) {
        self.init(Book(name: name, options: options), service: EasyNetworkService(host))
        self.name = name
        undo = { outcome in
            switch outcome {
            case .succeeded(let booked): CancelBooking(key: booked.key)
            case .unknown(let key): CancelBooking(key: key)
            }
        }
    }
}
