#if DEBUG
import EasyNetwork
import Foundation

/// Uploads all files of a folder, several at once, with a protocol that resumes them, and prints each one's end.
func upload(_ folder: URL, atOnce: Int, _ kind: String, to server: URL) async throws {
    struct Post: APIRequest {
        typealias Item = Void
        var api: String
        var method: NetworkService.Method { .post }
        var options: RequestOptions
    }

    let journals = folder.appendingPathComponent("journals", isDirectory: true)
    let files = folder.appendingPathComponent("files", isDirectory: true)
    let host = HostConfiguration(baseURL: server.deletingLastPathComponent()) { $0.retry.maximumRetryCount = 10 }
    let queue = NetworkQueue(name: "uploads", maxConcurrentOperationCount: atOnce)
    let names = try FileManager.default.contentsOfDirectory(atPath: files.path).sorted()
    await withTaskGroup(of: Void.self) { group in
        for name in names where !FileManager.default.fileExists(atPath: folder.appendingPathComponent(name).path) {
            group.addTask {
                let resuming: ResumableUpload = kind == "tus" ? .tus(directory: journals) : .http(directory: journals)
                let request = Post(api: server.lastPathComponent, options: RequestOptions(resuming: resuming))
                let job = UploadOperation(
                    request,
                    from: .file(files.appendingPathComponent(name)),
                    service: EasyNetworkService(host)
                )
                // A later process does not upload it again.
                let marker = folder.appendingPathComponent(name).path
                job.success = { _ in _ = FileManager.default.createFile(atPath: marker, contents: nil) }
                job.failure = { error in
                    guard error.code == .cannotParseResponse else { return Writer.tell("failed: \(error)") }
                    _ = FileManager.default.createFile(atPath: marker, contents: nil)
                    Writer.tell("lost the last response to \(name)")
                }
                queue.addOperation(job)
                try? await job.finished()
            }
        }
    }
}
#endif
