#if DEBUG
import Foundation

@testable import EasyNetwork

/// Writes files in tiny pieces, so that a kill mostly hits a write in progress.
final class ChoppedFiles: CacheFiles, @unchecked Sendable {
    // Sendable because it has no state.
    private static let pieceLength = 2

    override func create(_ path: String, _ pieces: [Data], usedAt date: Date) throws {
        let whole = pieces.reduce(Data(), +)
        let chopped = stride(from: 0, to: whole.count, by: Self.pieceLength).map { start in
            whole[start..<min(start + Self.pieceLength, whole.count)]
        }
        try super.create(path, chopped, usedAt: date)
    }
}
#endif
