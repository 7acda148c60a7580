import EasyNetwork
import Foundation

/// A plain GET of an absolute URL.
struct FileRequest: BaseAPIRequest {
    let api: String
}

/// The downloads: a queue with one job for each file.
struct Jobs: Sendable {
    private let queue: NetworkQueue
    private let downloads: [DownloadOperation]
    private let screen: Screen

    /// - Parameter idle: The longest time without data from a server, in seconds. `nil` means no limit.
    init(_ arguments: Arguments, screen: Screen, idle: Double? = 60) {
        self.screen = screen
        queue = NetworkQueue(name: "Downloader", maxConcurrentOperationCount: arguments.jobCount)
        queue.bandwidthLimit = arguments.byteLimit

        let host = HostConfiguration(baseURL: nil) { host in
            host.deadlines.connect = 30
            host.deadlines.idle = idle
            // Each file has its own retry count, and progress resets it.
            host.retry = RetryPolicy(maximumRetryCount: 8)
            host.retryBudget = .infinity
        }
        let service = EasyNetworkService(host)
        let directory = URL(fileURLWithPath: arguments.directory, isDirectory: true)
        // If the directory cannot be created, each download fails with an error that says so.
        try? FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        downloads = arguments.addresses.enumerated().map { index, address in
            let download = DownloadOperation(FileRequest(api: address), to: directory, service: service)
            download.segmentCount = arguments.segmentCount
            download.sha256 = arguments.sha256
            // A second run keeps complete files. With a digest, it replaces them, because their content can be wrong.
            download.replacesExistingFile = arguments.sha256 != nil
            // The first bytes can arrive long after the start.
            download.addAccessory(willStart: { _ in Task { await screen.start(index) } })
            return download
        }
        takeTurns(arguments.addresses)
    }

    /// Makes jobs with the same address run one after another, because only one job can resume a partial file.
    private func takeTurns(_ addresses: [String]) {
        var last: [Substring: DownloadOperation] = [:]
        for (address, download) in zip(addresses, downloads) {
            let file = address.prefix { $0 != "#" }
            if let before = last.updateValue(download, forKey: file) {
                download.addDependency(before, policy: .allowFailure)
            }
        }
    }

    /// Returns when all jobs have ended.
    func run() async {
        await withTaskGroup { group in
            for (index, download) in downloads.enumerated() {
                // Subscribe before the jobs start, so that no progress is lost.
                let updates = download.updates
                group.addTask { await follow(download, updates, index) }
            }
            queue.addOperations(downloads)
        }
    }

    /// Cancels all jobs. Their partial files are kept for a later run.
    func cancel() {
        queue.cancelAllOperations()
    }

    private func follow(
        _ download: DownloadOperation,
        _ updates: AsyncStream<(completedBytes: Int64, totalBytes: Int64?)>,
        _ index: Int
    ) async {
        var earlier = Int64.max
        for await (completed, total) in updates {
            // The smallest count is the number of bytes from an earlier run; 0 if the download starts over.
            earlier = min(earlier, completed)
            let (earlierBytes, info) = (earlier, download.progress.userInfo)
            let bytesPerSecond = (info[.throughputKey] as? NSNumber)?.doubleValue ?? 0
            let secondsLeft = (info[.estimatedTimeRemainingKey] as? NSNumber)?.doubleValue
            await screen.update(index) { transfer in
                transfer.progress(
                    completedBytes: completed,
                    earlierBytes: earlierBytes,
                    totalBytes: total,
                    bytesPerSecond: bytesPerSecond,
                    secondsLeft: secondsLeft
                )
            }
        }
        do {
            await screen.finish(index, try await download.value)
        } catch {
            await screen.update(index) { transfer in
                transfer.phase = error.code == .cancelled ? .interrupted : .failed(error.localizedDescription)
            }
        }
    }
}
