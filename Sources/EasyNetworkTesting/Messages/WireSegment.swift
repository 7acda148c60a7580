import Foundation

/// A run of bytes to send: as they are, or one byte over and over, which takes no memory.
enum WireSegment: Hashable, Sendable {
    case bytes(Data)
    case repeating(UInt8, count: Int)

    var count: Int {
        switch self {
        case .bytes(let data): data.count
        case .repeating(_, let count): count
        }
    }

    func prefix(_ length: Int) -> WireSegment {
        switch self {
        case .bytes(let data): .bytes(data.prefix(length))
        case .repeating(let byte, let count): .repeating(byte, count: min(count, length))
        }
    }

    /// The bytes from an offset on: all that are there, or a run of at most that many of those not there.
    func data(from offset: Int, runLength: Int = 65_536) -> Data {
        switch self {
        case .bytes(let data): data.dropFirst(offset)
        case .repeating(let byte, let count): Data(repeating: byte, count: max(0, min(count - offset, runLength)))
        }
    }
}
