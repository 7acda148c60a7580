import Foundation

/// The download of one file.
struct Transfer: Equatable, Sendable {
    enum Phase: Equatable, Sendable {
        case waiting
        case running
        /// The file is complete and has this name.
        case done(String)
        case failed(String)
        case interrupted
    }

    let address: String
    var phase = Phase.waiting
    var completedBytes: Int64 = 0
    /// The number of bytes from an earlier run. `nil` before the first progress.
    private(set) var earlierBytes: Int64?
    /// `nil` while the size is unknown.
    var totalBytes: Int64?
    var bytesPerSecond = 0.0
    var secondsLeft: Double?

    init(_ address: String) {
        self.address = address
    }

    /// Applies the progress of the job.
    mutating func progress(
        completedBytes: Int64,
        earlierBytes: Int64 = 0,
        totalBytes: Int64?,
        bytesPerSecond: Double,
        secondsLeft: Double?
    ) {
        phase = .running
        self.earlierBytes = earlierBytes
        self.completedBytes = completedBytes
        self.totalBytes = totalBytes
        self.bytesPerSecond = bytesPerSecond
        self.secondsLeft = secondsLeft
    }

    /// - Parameter size: The size of the file. `nil` if it cannot be read.
    mutating func finish(_ name: String, size: Int64?) {
        if let size {
            // Bytes that no progress reported come from an earlier run.
            earlierBytes = (earlierBytes ?? 0) + max(size - completedBytes, 0)
            completedBytes = size
        }
        totalBytes = completedBytes
        phase = .done(name)
    }

    /// The number of bytes loaded by this run.
    var loadedBytes: Int64 { earlierBytes.map { max(completedBytes - $0, 0) } ?? 0 }

    /// The name of the file. Until the file is complete, the last part of the URL.
    var name: String {
        if case .done(let name) = phase { return PlainText.line(name) }
        let part = URL(string: address)?.path(percentEncoded: true).split(separator: "/").last
        return PlainText.line(part.map(String.init) ?? address)
    }

    /// From 0 to 1; `nil` if the size is unknown.
    var fraction: Double? {
        if case .done = phase { return 1 }
        guard let totalBytes, totalBytes > 0 else { return nil }
        return min(max(Double(completedBytes) / Double(totalBytes), 0), 1)
    }
}

/// The state of all files. The totals leave out failed files, because their bytes and lengths would keep the rest from
/// reaching 100%.
struct Board: Equatable, Sendable {
    var transfers: [Transfer]

    init(_ addresses: [String]) {
        transfers = addresses.map(Transfer.init)
    }

    var running: [Transfer] { transfers.filter { $0.phase == .running } }

    var doneCount: Int {
        transfers.count { if case .done = $0.phase { true } else { false } }
    }

    var failedCount: Int { transfers.count - counted.count }

    /// Whether no file is waiting or running.
    var hasEnded: Bool { !transfers.contains { $0.phase == .waiting || $0.phase == .running } }

    var completedBytes: Int64 {
        Self.sum(counted.map(\.completedBytes))
    }

    var loadedBytes: Int64 {
        Self.sum(counted.map(\.loadedBytes))
    }

    /// `nil` until the length of each counted file is known.
    var totalBytes: Int64? {
        let totals = counted.compactMap(\.totalBytes)
        return totals.count == counted.count ? Self.sum(totals) : nil
    }

    var bytesPerSecond: Double {
        running.reduce(0) { $0 + $1.bytesPerSecond }
    }

    var secondsLeft: Double? {
        guard let totalBytes, bytesPerSecond > 0 else { return nil }
        return Double(max(totalBytes - completedBytes, 0)) / bytesPerSecond
    }

    /// The fraction of the bytes if all lengths are known, otherwise of the files.
    var fraction: Double? {
        let counted = counted
        guard !counted.isEmpty else { return nil }
        if let totalBytes, totalBytes > 0 { return min(Double(completedBytes) / Double(totalBytes), 1) }
        return counted.reduce(0) { $0 + ($1.fraction ?? 0) } / Double(counted.count)
    }

    /// The files that have not failed.
    private var counted: [Transfer] {
        transfers.filter { if case .failed = $0.phase { false } else { true } }
    }

    /// The sum, or the largest number if it overflows because of the lengths that servers claim.
    private static func sum(_ counts: [Int64]) -> Int64 {
        counts.reduce(0) { sum, count in
            let (result, isTooMuch) = sum.addingReportingOverflow(count)
            return isTooMuch ? .max : result
        }
    }
}
