import EasyNetwork
import Foundation

/// One connection of a ``ServerLoop``; used on the loop's thread only.
final class ServerConnection {
    enum Phase {
        /// Between requests or inside one.
        case reading
        /// A closure works on the answer.
        case answering
        /// The answer waits for its delay to pass.
        case delayed(PreparedAnswer, timer: any ClockTimer)
        /// Never to be answered.
        case stalled
        /// An answer is on its way, and then the connection ends, or the next request may come.
        case writing(then: MockResponse.Fault.Action?)
        /// Neither read nor written to any more.
        case halfOpen
        /// All is written and the client knows it; what it still sends is thrown away until it closes as well. Closing
        /// at once would make a reset of bytes not yet read, and that may take away the answer from the client.
        case draining(timer: any ClockTimer)
    }

    /// Counted from 1.
    let id: Int
    let descriptor: Int32
    var phase = Phase.reading
    var parser = RequestParser()
    /// Whether the first byte of the next request has come.
    var hasBegunRequest = false
    /// Whether the fault of the request's route is known.
    var hasLookedUpFault = false
    /// What the request that is being read or answered is to meet.
    var fault: MockResponse.Fault?
    /// How fast the answer may go out; nil when it may as fast as it can.
    var pace: Pace?
    /// Set while the answer waits for its pace.
    var paceTimer: (any ClockTimer)?
    /// The client sends nothing more.
    var isInputEnded = false
    var isOpen = true

    private var output: [WireSegment] = []
    private var sentCount = 0
    /// Bytes of a segment that has none of its own.
    private var run = Data()
    /// How many bytes of such a segment are made at a time.
    private static let runLength = 262_144

    init(id: Int, descriptor: Int32) {
        self.id = id
        self.descriptor = descriptor
    }

    var hasOutput: Bool { !output.isEmpty }
    /// Whether there is output that has to wait for its pace.
    var isPaused: Bool { hasOutput && pace?.allowance == 0 }
    /// Whether to wait until the system takes bytes.
    var wantsOutput: Bool { hasOutput && !isPaused }

    /// Whether to read on. While a request is answered, reading goes on, to notice a client that closes, but not for
    /// ever: a client that does not wait for its answers fills the memory otherwise.
    var wantsInput: Bool {
        if isInputEnded { return false }
        switch phase {
        case .halfOpen: return false
        case .reading, .stalled, .draining: return true
        case .answering, .delayed, .writing: return parser.bufferedCount < RequestParser.headLimit
        }
    }

    func enqueue(_ segments: [WireSegment]) {
        output.append(contentsOf: segments.filter { $0.count > 0 })
    }

    /// Sends what the system takes, but no more than a share of it, so that a large answer does not hold up others.
    ///
    /// - Returns: false when the connection is broken.
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
