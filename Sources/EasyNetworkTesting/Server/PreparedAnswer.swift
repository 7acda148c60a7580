import Foundation

/// An answer worked out for its request, so that the loop has only to send it: 10,000 header fields take a while.
struct PreparedAnswer: Sendable {
    /// Seconds before anything of it is sent.
    let delay: TimeInterval
    let hasFault: Bool
    let segments: [WireSegment]
    let pace: Pace?
    /// What comes after the bytes; nil when it is the next request.
    let ending: MockResponse.Fault.Action?

    /// - Parameter fault: takes the place of the response's own; nil leaves that.
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
