import Foundation

/// How a ``DownloadOperation`` makes its file.
public struct DownloadOptions: Sendable {
    /// What becomes of a file that lies at the destination.
    public enum ExistingFile: Sendable {
        /// ``replace`` where the destination names the file, and ``number`` where it is a directory: there the server
        /// says the name, and would choose which file to replace.
        case automatic
        /// The download takes its place, in one step, when it is complete and has been checked.
        case replace
        /// It stays, and is the result; nothing is fetched when its name is known before, little when the server says the
        /// name.
        case keep
        /// It stays, and the download gets a name with a number: `report (2).pdf`.
        case number
    }

    /// What becomes of a file that lies at the destination. A link to a file counts as the file, and is replaced itself.
    /// Default ``ExistingFile/automatic``.
    public var existingFile = ExistingFile.automatic

    /// Whether directories that are missing on the way to the destination are made. Default false: that is an error.
    public var createsDirectories = false

    /// The SHA-256 digest (FIPS 180-4) that the file must have, 64 hexadecimal digits. Default nil: any.
    public var sha256: String?

    /// In how many ranges the file is fetched at once, when the server allows it: it says `Accept-Ranges: bytes`, a length
    /// and a strong validator, and each gets at least a megabyte. Below 1 counts as 1. Default 1.
    ///
    /// They are exchanges of one operation, and count once in the limits of a queue.
    public var segmentCount = 1

    /// Whether what has come is kept when the operation fails or is cancelled, for another one to go on with. Default
    /// true. See ``DownloadOperation/cancel(keepingPart:)``.
    public var keepsPart = true

    /// How long the parts of others that lie in the same directory are kept, in seconds; older ones are removed when a
    /// download begins there, once in a process. Default seven days; nil: for ever.
    public var partLifetime: TimeInterval? = 7 * 24 * 3_600

    /// How many bytes a second come at most; its ``BandwidthLimit/bytesPerSecond`` may be changed later. Default nil: no
    /// limit but that of the queue.
    public var bandwidthLimit: BandwidthLimit?

    public init() {}

    /// - Throws: ``NetworkError/Code/invalidRequest`` for a digest that is malformed.
    func check() throws(NetworkError) {
        guard let sha256, sha256.utf8.count != 64 || !sha256.allSatisfy(\.isHexDigit) else { return }
        throw NetworkError(
            code: .invalidRequest,
            message: "DownloadOptions.sha256 needs 64 hexadecimal digits, and is '\(sha256)'"
        )
    }
}
