import EasyNetwork
import Foundation

/// A plain GET of an absolute URL.
struct FileRequest: BaseAPIRequest {
    let api: String
}

/// The downloads: one job for each file, all in one queue.
struct Jobs: Sendable {
    private let queue: NetworkQueue
    private let downloads: [DownloadOperation]
    private let screen: Screen

    /// - Parameter idle: for how many seconds a server may be silent; nil for ever.
    init(_ arguments: Arguments, screen: Screen, idle: Double? = 60) {
        self.screen = screen
        queue = NetworkQueue(name: "Downloader", maxConcurrentOperationCount: arguments.jobCount)
        queue.bandwidthLimit = arguments.byteLimit.map { BandwidthLimit(bytesPerSecond: $0) }

        let host = HostConfiguration(baseURL: nil) { host in
            host.deadlines.connect = 30
            host.deadlines.idle = idle
            // Counted anew whenever some bytes have come, and for each file by itself.
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

    /// Two jobs with one address would go on with the same part, which one alone can have at a time.
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
        // So that a second start goes on instead of beginning again. But what lies there may not be what is wanted.
        options.existingFile = arguments.sha256 == nil ? .keep : .replace
        return options
    }

    /// Ends when all have ended.
    func run() async {
        await withTaskGroup { group in
            for (index, download) in downloads.enumerated() {
                // Before it starts, so that nothing is missed.
                let updates = download.updates
                group.addTask { await follow(download, updates, index) }
            }
            queue.addOperations(downloads, waitUntilFinished: false)
        }
    }

    /// What has come stays, for another start.
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

/// Tells when a job has got its turn; the first bytes may be long in coming.
private final class StartSign: OperationAccessory {
    private let action: @Sendable () async -> Void

    init(_ action: @escaping @Sendable () async -> Void) {
        self.action = action
    }

    func operationWillStart(_ operation: NetworkOperation) {
        Task { await action() }
    }
}
