import Foundation

/// What has come of a body and is not fetched yet, and how it ends, as a value.
struct StreamBuffer {
    /// What is to be done with who asks for the next bytes.
    enum Step {
        case chunk(Data)
        case failed(NetworkError)
        case end
        /// Nothing is there yet.
        case wait
    }

    /// More than this waits only because it was on its way, in bytes.
    static let limit = 256 * 1_024

    /// Bytes that come in small pieces are put together up to so many.
    private static let pieceLimit = 4_096

    private var chunks: [Data] = []
    /// Those before it have been fetched.
    private var first = 0
    /// How many bytes wait.
    private(set) var byteCount = 0
    /// Nil before the end.
    private var end: Result<Void, NetworkError>?

    /// Whether the sender is to be held back.
    var isFull: Bool { byteCount > Self.limit }
    /// Whether the sender may go on.
    var hasRoom: Bool { byteCount < Self.limit / 2 }
    var isOver: Bool { end != nil }
    var chunkCount: Int { chunks.count - first }

    mutating func append(_ data: Data) {
        guard !data.isEmpty, end == nil else { return }
        byteCount += data.count
        if chunkCount > 0, let last = chunks.last, last.count + data.count <= Self.pieceLimit {
            chunks[chunks.count - 1].append(data)
        } else {
            // A small one is copied, so that putting more to it lets go of nothing of somebody else's.
            chunks.append(data.count < Self.pieceLimit ? Data(Array(data)) : data)
        }
    }

    /// Nothing more comes; what is there is fetched first. The first end counts.
    mutating func finish(_ result: Result<Void, NetworkError>) {
        if end == nil { end = result }
    }

    /// Ends at once, unless all has been fetched.
    ///
    /// - Returns: what will not be fetched, to be let go of elsewhere.
    mutating func abandon(_ error: NetworkError) -> (chunks: [Data], end: Result<Void, NetworkError>?) {
        let old = (chunks.take(), end)
        if byteCount > 0 || end == nil { end = .failure(error) }
        first = 0
        byteCount = 0
        return old
    }

    mutating func next() -> Step {
        if chunkCount > 0 {
            let chunk = chunks[first]
            chunks[first] = Data()
            first += 1
            byteCount -= chunk.count
            if first > chunks.count / 2 {
                chunks.removeFirst(first)
                first = 0
            }
            return .chunk(chunk)
        }
        switch end {
        case nil: return .wait
        case .success: return .end
        case .failure(let error):
            // It is told once.
            end = .success(())
            return .failed(error)
        }
    }
}
