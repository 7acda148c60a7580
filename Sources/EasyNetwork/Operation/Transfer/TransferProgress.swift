import Foundation

/// How far a download or an upload is.
///
/// ```swift
/// for await progress in upload.updates {
///     bar.doubleValue = progress.fractionCompleted ?? 0
/// }
/// ```
public struct TransferProgress: Hashable, Sendable {
    /// The bytes of the body that have been moved, ``initialBytes`` included.
    public var completedBytes: Int64

    /// The bytes that were there when the operation began: of an earlier download. 0 when it begins again.
    public var initialBytes: Int64

    /// The length of the body in bytes; nil while it is not known.
    public var totalBytes: Int64?

    /// The average speed of the last seconds, without ``initialBytes``. 0 before the first bytes. While nothing comes it falls,
    /// and is published once a second.
    public var bytesPerSecond: Double

    /// The seconds that the rest takes at ``bytesPerSecond``; nil when that or the total is not known.
    public var secondsLeft: TimeInterval?

    public init(
        completedBytes: Int64,
        initialBytes: Int64 = 0,
        totalBytes: Int64? = nil,
        bytesPerSecond: Double = 0,
        secondsLeft: TimeInterval? = nil
    ) {
        self.completedBytes = completedBytes
        self.initialBytes = initialBytes
        self.totalBytes = totalBytes
        self.bytesPerSecond = bytesPerSecond
        self.secondsLeft = secondsLeft
    }

    /// From 0 to 1; nil while the total is not known. An empty body is complete.
    public var fractionCompleted: Double? {
        guard let totalBytes else { return nil }
        guard totalBytes > 0 else { return 1 }
        return min(1, max(0, Double(completedBytes) / Double(totalBytes)))
    }
}
