import EasyNetwork
import Foundation

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A connection of a ``ServerLoop``. Only the loop's thread uses it.
final class ServerConnection {
    enum Phase {
        /// The connection is between requests or inside one.
        case reading
        /// A route's closure is creating the response.
        case answering
        /// The request or the response waits for its delay.
        case delayed(Delayed, timer: any ClockTimer)
        /// The connection sends no response.
        case stalled
        /// The response is being sent. Afterwards, the connection ends with the action, or the next request can follow.
        case writing(then: MockResponse.Fault.Action?)
        /// The connection is neither read nor written.
        case halfOpen
        /// All bytes have been sent. Further bytes from the client are discarded until it closes the connection. If
        /// there are unread bytes, closing immediately would reset the connection, and the client might lose the
        /// response.
        case draining(timer: any ClockTimer)
    }

    /// A request or a response that waits for its delay.
    enum Delayed {
        case request(RequestParser.Message, NetworkLink.Trip)
        case answer(PreparedAnswer)
    }

    /// The number of the connection, from 1.
    let id: Int
    let descriptor: Int32
    var phase = Phase.reading
    var parser = RequestParser()
    /// Whether the first byte of the next request has arrived.
    var hasBegunRequest = false
    /// Whether the fault of the request's route has been looked up.
    var hasLookedUpFault = false
    /// The fault of the current request.
    var fault: MockResponse.Fault?
    /// The speed of the response; `nil` for no limit.
    var pace: Pace?
    /// The timer of the next tick of the pace.
    var paceTimer: (any ClockTimer)?
    /// The timer of received bytes that are still on their way over the link. No further bytes are read until it fires.
    var inputTimer: (any ClockTimer)?
    /// Whether the client has ended its side.
    var isInputEnded = false
    var isOpen = true

    private var output: [WireSegment] = []
    private var sentCount = 0
    /// The bytes to send for a segment with a repeated byte.
    private var run = Data()
    /// The number of bytes in ``run``.
    private static let runLength = 262_144

    init(id: Int, descriptor: Int32) {
        self.id = id
        self.descriptor = descriptor
    }

    var hasOutput: Bool { !output.isEmpty }
    /// The number of unsent bytes in the first segment of the output.
    var nextCount: Int { (output.first?.count ?? 0) - sentCount }
    /// Whether the output waits for its pace.
    var isPaused: Bool { hasOutput && pace?.allowance == 0 }
    /// Whether to wait until the system accepts bytes.
    var wantsOutput: Bool { hasOutput && !isPaused }

    /// Whether to read. While responding, the loop also reads, to detect that the client closes the connection. It
    /// reads only up to a limit, so that a client with many requests does not fill the memory.
    var wantsInput: Bool {
        if isInputEnded || inputTimer != nil { return false }
        switch phase {
        case .halfOpen: return false
        case .reading, .stalled, .draining: return true
        case .answering, .delayed, .writing: return parser.bufferedCount < RequestParser.headLimit
        }
    }

    /// Whether a response is being created or sent. A client that has ended its side still receives it.
    private var hasAnswer: Bool {
        switch phase {
        case .answering, .writing: true
        case .reading, .delayed, .stalled, .halfOpen, .draining: false
        }
    }

    /// Returns whether the connection is no longer usable, according to the events of poll(2), after all bytes have
    /// been read.
    ///
    /// A hang-up means that both sides have ended; on Darwin, it means that one side has. A client that has ended its
    /// side can still receive its response. If the client is gone, sending fails.
    func isGone(_ events: Int32) -> Bool {
        events & Int32(POLLERR | POLLNVAL) != 0 || events & Int32(POLLHUP) != 0 && !hasAnswer
    }

    func enqueue(_ segments: [WireSegment]) {
        output.append(contentsOf: segments.filter { $0.count > 0 })
    }

    /// Sends bytes up to a limit, so that a large response does not delay other connections.
    ///
    /// - Returns: `false` if the connection is broken.
    func flush() -> Bool {
        var share = pace?.allowance ?? 1_048_576
        while let segment = output.first, share > 0 {
            switch send(segment, atMost: share) {
            case .count(let count):
                sentCount += count
                share -= count
                pace?.spend(count)
            case .wouldBlock, .end: return true
            case .failed: return false
            }
            if sentCount >= segment.count {
                output.removeFirst()
                sentCount = 0
                run = Data()
            }
        }
        return true
    }

    private func send(_ segment: WireSegment, atMost share: Int) -> Socket.Transfer {
        let source: Data
        let start: Int
        switch segment {
        case .bytes(let data): (source, start) = (data, sentCount)
        case .repeating:
            if run.isEmpty { run = segment.data(from: 0, runLength: Self.runLength) }
            (source, start) = (run, 0)
        }
        let count = min(source.count - start, segment.count - sentCount, share)
        return source.withUnsafeBytes { bytes in
            Socket.send(descriptor, UnsafeRawBufferPointer(rebasing: bytes[start..<start + count]))
        }
    }
}
