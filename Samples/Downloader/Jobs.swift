import EasyNetwork
import Foundation

/// A plain GET of an absolute URL.
struct FileRequest: BaseAPIRequest {
    let api: String
}

/// The downloads, one job for each file in one queue.
struct Jobs: Sendable {
    private let queue: NetworkQueue
    private let downloads: [DownloadOperation]
    private let screen: Screen

    /// - Parameter idle: the longest silence of a server in seconds; nil for no limit.
    init(_ arguments: Arguments, screen: Screen, idle: Double? = 60) {
        self.screen = screen
        queue = NetworkQueue(name: "Downloader", maxConcurrentOperationCount: arguments.jobCount)
        queue.bandwidthLimit = arguments.byteLimit.map { BandwidthLimit(bytesPerSecond: $0) }

        let host = HostConfiguration(baseURL: nil) { host in
            host.deadlines.connect = 30
            host.deadlines.idle = idle
            // Progress resets the count, which is separate for each file.
            host.retry = RetryPolicy(maximumRetryCount: 8)
            host.retryBudget = .unlimited
        }
        let service = EasyNetworkService(host)
        let directory = URL(fileURLWithPath: arguments.directory, isDirectory: true)
        let options = Self.options(arguments)
        downloads = arguments.addresses.map { address in
            DownloadOperation(FileRequest(api: address), to: directory, options: options, service: service)
        }
        for (index, download) in downloads.enumerated() {
            download.addAccessory(StartSign { await screen.start(index) })
        }
        takeTurns(arguments.addresses)
    }

    /// Two jobs with one address would resume the same partial file, which only one of them can have.
    private func takeTurns(_ addresses: [String]) {
        var last: [Substring: DownloadOperation] = [:]
        for (address, download) in zip(addresses, downloads) {
            let file = address.prefix { $0 != "#" }
            if let before = last.updateValue(download, forKey: file) {
                download.addDependency(before, policy: .allowFailure)
            }
        }
    }

    static func options(_ arguments: Arguments) -> DownloadOptions {
        var options = DownloadOptions()
        options.createsDirectories = true
        options.segmentCount = arguments.segmentCount
        options.sha256 = arguments.sha256
        // A second run keeps complete files. With a digest it replaces them, because their content may be wrong.
        options.existingFile = arguments.sha256 == nil ? .keep : .replace
        return options
    }

    /// Returns when all jobs have ended.
    func run() async {
        await withTaskGroup { group in
            for (index, download) in downloads.enumerated() {
                // Subscribed before the start, so that no progress is lost.
                let updates = download.updates
                group.addTask { await follow(download, updates, index) }
            }
            queue.addOperations(downloads, waitUntilFinished: false)
        }
    }

    /// Cancels all jobs. Their partial files stay for a later run.
    func cancel() {
        queue.cancelAllOperations()
    }

    private func follow(
        _ download: DownloadOperation,
        _ updates: AsyncStream<TransferProgress>,
        _ index: Int
    ) async {
        for await progress in updates {
            await screen.update(index) { transfer in
                transfer.progress(
                    completedBytes: progress.completedBytes,
                    earlierBytes: progress.initialBytes,
                    totalBytes: progress.totalBytes,
                    bytesPerSecond: progress.bytesPerSecond,
                    secondsLeft: progress.secondsLeft
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

/// Reports the start of a job, which may be long before its first bytes.
private final class StartSign: OperationAccessory {
    private let action: @Sendable () async -> Void

    init(_ action: @escaping @Sendable () async -> Void) {
        self.action = action
    }

    func operationWillStart(_ operation: NetworkOperation) {
        Task { await action() }
    }
}
