import Foundation

/// How a ``DownloadOperation`` makes its file.
public struct DownloadOptions: Sendable {
    /// How a file that lies at the destination is treated.
    public enum ExistingFile: Sendable {
        /// ``replace`` where the destination names the file, and ``number`` where it is a directory, in which the server would
        /// choose the file to replace.
        case automatic
        /// The download replaces it in one step, when it is complete and has been checked.
        case replace
        /// It stays, and is the result. It fetches nothing when its name is known before, and little when the server names the
        /// file.
        case keep
        /// It stays, and the download gets a name with a number: `report (2).pdf`.
        case number
    }

    /// How a file that lies at the destination is treated. A link to a file counts as the file, and is replaced itself.
    /// Default ``ExistingFile/automatic``.
    public var existingFile = ExistingFile.automatic

    /// Whether missing directories of the destination are made. Default false: they are an error.
    public var createsDirectories = false

    /// The SHA-256 digest (FIPS 180-4) that the file must have, 64 hexadecimal digits. Default nil: any.
    public var sha256: String?

    /// The number of ranges that are fetched at once, each of at least a megabyte, when the server sends
    /// `Accept-Ranges: bytes`, a length and a strong validator. Less than 1 counts as 1. Default 1.
    ///
    /// They belong to one operation, and count once in the limits of a queue.
    public var segmentCount = 1

    /// Whether the part is kept when the operation fails or is cancelled, so that another one can resume it. Default true.
    /// See ``DownloadOperation/cancel(keepingPart:)``.
    public var keepsPart = true

    /// How long parts of other downloads in the same directory are kept, in seconds. Older ones are removed when a download
    /// begins there, once in a process. Default seven days; nil: for ever.
    public var partLifetime: TimeInterval? = 7 * 24 * 3_600

    /// How fast the bytes may come; its ``BandwidthLimit/bytesPerSecond`` may be changed later. Default nil: no limit but that
    /// of the queue.
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
