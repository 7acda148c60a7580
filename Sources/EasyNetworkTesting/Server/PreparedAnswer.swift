import Foundation

/// The bytes of the response to a request. They are created outside the loop, because 10,000 header fields take a
/// while.
struct PreparedAnswer: Sendable {
    /// The seconds before the first byte.
    let delay: TimeInterval
    let hasFault: Bool
    let segments: [WireSegment]
    let pace: Pace?
    /// The action after the bytes; `nil` if the next request can follow.
    let ending: MockResponse.Fault.Action?

    /// - Parameter fault: A fault that replaces the response's fault. `nil` keeps it.
    init(_ scripted: MockResponse, to request: RequestParser.Message, fault: MockResponse.Fault? = nil) {
        var response = scripted
        response.fault = fault ?? scripted.fault
        delay = response.delay
        hasFault = response.fault != nil
        switch response.fault?.kind {
        case .breaksOff(let action, let place) where place.isBeforeResponse:
            (segments, pace, ending) = ([], nil, action)
        case .raw(let bytes, let keepsConnection):
            (segments, pace, ending) = ([.bytes(bytes)], nil, keepsConnection ? nil : .close)
        case .breaksOff, .malformed, nil:
            let plan = ResponsePlan(response, method: request.method)
            let closing = !request.keepsAlive
            segments = plan.wire(closing: closing, minorVersion: request.minorVersion)
            pace = plan.bytesPerSecond.map(Pace.init)
            ending = plan.ending ?? (closing || plan.asksToClose ? .close : nil)
        }
    }
}

/// The speed of a slow response. Each tick of a timer allows at most a share of bytes.
///
/// The first tick precedes the first byte, and a late tick allows no extra bytes, so the rate is never exceeded.
struct Pace: Equatable, Sendable {
    /// The maximum number of bytes for each tick.
    let share: Int
    /// The minimum number of seconds between two ticks.
    let interval: TimeInterval
    /// The number of bytes that may be sent now.
    private(set) var allowance = 0

    /// - Parameter bytesPerSecond: A value below 1 counts as 1.
    init(bytesPerSecond: Int) {
        let rate = max(bytesPerSecond, 1)
        // 50 ticks per second are smooth and cheap.
        share = max(rate / 50, 1)
        interval = TimeInterval(share) / TimeInterval(rate)
    }

    /// Creates the pace of a response that only the network slows down.
    ///
    /// - Returns: `nil` if the bandwidth has no limit.
    init?(_ link: NetworkLink) {
        guard link.share < .max else { return nil }
        (share, interval) = (link.share, 0)
    }

    mutating func tick(_ count: Int) {
        allowance = min(count, share)
    }

    mutating func spend(_ count: Int) {
        allowance = max(allowance - count, 0)
    }
}
