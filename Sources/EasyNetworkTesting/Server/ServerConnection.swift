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
        case delayed(MockResponse, timer: any ClockTimer)
        /// Never to be answered.
        case stalled
        case writing(thenClose: Bool)
        /// All is written and the client knows it; what it still sends is thrown away until it closes as well. Closing
        /// at once would make a reset of bytes not yet read, and that may take away the answer from the client.
        case draining(timer: any ClockTimer)
    }

    /// Counted from 1.
    let id: Int
    let descriptor: Int32
    var phase = Phase.reading
    var parser = RequestParser()
    /// The request that is being answered.
    var request: RequestParser.Message?
    /// The client sends nothing more.
    var isInputEnded = false
    var isOpen = true

    private var output: [Data] = []
    private var sentCount = 0

    init(id: Int, descriptor: Int32) {
        self.id = id
        self.descriptor = descriptor
    }

    var hasOutput: Bool { !output.isEmpty }

    /// Whether to read on. While a request is answered, reading goes on, to notice a client that closes, but not for
    /// ever: a client that does not wait for its answers fills the memory otherwise.
    var wantsInput: Bool {
        if isInputEnded { return false }
        switch phase {
        case .reading, .stalled, .draining: return true
        case .answering, .delayed, .writing: return parser.bufferedCount < RequestParser.headLimit
        }
    }

    func enqueue(_ segments: [Data]) {
        output.append(contentsOf: segments)
    }

    /// Sends what the system takes, but no more than a share of it, so that a large answer does not hold up others.
    ///
    /// - Returns: false when the connection is broken.
    func flush() -> Bool {
        var share = 1_048_576
        while let segment = output.first, share > 0 {
            let end = min(segment.count, sentCount + share)
            let result = segment.withUnsafeBytes { bytes in
                Socket.send(descriptor, UnsafeRawBufferPointer(rebasing: bytes[sentCount..<end]))
            }
            switch result {
            case .count(let count):
                sentCount += count
                share -= count
            case .wouldBlock, .end: return true
            case .failed: return false
            }
            if sentCount >= segment.count {
                output.removeFirst()
                sentCount = 0
            }
        }
        return true
    }
}
