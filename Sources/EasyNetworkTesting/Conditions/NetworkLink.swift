import Foundation

/// The logic of ``NetworkConditions``: it decides when bytes arrive and which requests lose their connection. A value
/// without I/O.
struct NetworkLink: Sendable {
    enum Direction: Sendable {
        case up
        case down
    }

    /// The place where a connection is lost.
    enum Loss: Hashable, Sendable {
        /// Before the server has the request.
        case request
        /// After the request, before the response.
        case response
        /// After this share of the response's body: at least 0, and less than 1.
        case body(share: Double)
    }

    /// The delays and the loss of one request and its response.
    struct Trip: Hashable, Sendable {
        /// The delay of the request in seconds, without the time for its bytes.
        let up: TimeInterval
        /// The delay of the response in seconds, without the time for its bytes.
        let down: TimeInterval
        let loss: Loss?
    }

    /// The maximum number of bytes that occupy the link at once, so that connections take turns. `Int.max` if the
    /// bandwidth has no limit.
    let share: Int

    private let conditions: NetworkConditions
    /// The state of the random number generator, a SplitMix64.
    private var random: UInt64
    /// The time at which all bytes so far have arrived, for each direction.
    private var busyUntil: (up: TimeInterval, down: TimeInterval) = (-.infinity, -.infinity)

    /// - Parameter conditions: The conditions. Values out of bounds count as ``NetworkConditions`` documents.
    init(_ conditions: NetworkConditions) {
        // The comparisons also turn NaN into 0.
        func bounded(_ value: Double, to limit: Double) -> Double { value > 0 ? min(value, limit) : 0 }
        var conditions = conditions
        conditions.latency = bounded(conditions.latency, to: 3_600)
        conditions.jitter = bounded(conditions.jitter, to: 3_600)
        conditions.lossOfConnections = bounded(conditions.lossOfConnections, to: 1)
        conditions.bandwidth = conditions.bandwidth.map { max($0, 1) }
        // The link has 50 turns per second, like `Pace`. The limit keeps the turns of a fast link small.
        share = conditions.bandwidth.map { min(max($0 / 50, 1), 1_048_576) } ?? .max
        self.conditions = conditions
        random = conditions.seed
    }

    /// Draws the delays and the loss of the next request.
    mutating func nextTrip() -> Trip {
        // Always draw four values, so that one condition does not change the values of another.
        let (up, down, chance, place) = (draw(), draw(), draw(), draw())
        let loss: Loss =
            switch place * 3 {
            case ..<1: .request
            case ..<2: .response
            case let third: .body(share: third - 2)
            }
        return Trip(
            up: conditions.latency + up * conditions.jitter,
            down: conditions.latency + down * conditions.jitter,
            loss: chance < conditions.lossOfConnections ? loss : nil
        )
    }

    /// Adds bytes to the link, after those that are on their way in the same direction.
    ///
    /// - Returns: The seconds until the added bytes have arrived.
    mutating func wait(for count: Int, _ direction: Direction, now: TimeInterval) -> TimeInterval {
        guard let bandwidth = conditions.bandwidth else { return 0 }
        let seconds = TimeInterval(count) / TimeInterval(bandwidth)
        switch direction {
        case .up:
            busyUntil.up = max(busyUntil.up, now) + seconds
            return busyUntil.up - now
        case .down:
            busyUntil.down = max(busyUntil.down, now) + seconds
            return busyUntil.down - now
        }
    }

    /// Draws a number that is at least 0 and less than 1.
    private mutating func draw() -> Double {
        random &+= 0x9E37_79B9_7F4A_7C15
        var value = random
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return Double((value ^ (value >> 31)) >> 11) / 0x1p53
    }
}

extension NetworkLink.Trip {
    /// Returns the response as it arrives over the link: later, and possibly cut off.
    func applied(to scripted: MockResponse, method: String) -> MockResponse {
        var response = scripted
        response.delay = (scripted.delay > 0 ? scripted.delay : 0) + down
        if response.fault == nil { response.fault = fault(in: scripted, method: method) }
        return response
    }

    private func fault(in response: MockResponse, method: String) -> MockResponse.Fault? {
        guard case .body(let share) = loss else { return loss.map { _ in .reset } }
        let count = ResponsePlan(response, method: method).pieces.reduce(0) { $0 + $1.content.count }
        // A response without a body would be complete despite a loss in the body, so lose it as a whole.
        return count > 0 ? .reset(at: .responseBody(after: Int(share * Double(min(count, 1_048_576))))) : .reset
    }
}
