#if os(Linux) || os(macOS)
import Foundation
import Programs

/// A download or an upload of 1 GiB.
enum LargeTransfer: CaseIterable {
    case download, upload

    var name: String {
        switch self {
        case .download: "download"
        case .upload: "upload"
        }
    }

    /// - Returns: the time in seconds.
    /// - Throws: also when bytes are missing.
    func seconds(by carrier: any Carrier, _ server: LocalServer, _ file: URL) throws -> Double {
        let url = try url(server)
        var answer = Data()
        let seconds = try Measurement.seconds {
            switch self {
            case .download: try carrier.download(url, to: file)
            case .upload: answer = try carrier.upload(file, to: url)
            }
        }
        switch self {
        case .download:
            let size = try FileManager.default.attributesOfItem(atPath: file.path)[.size] as? NSNumber
            let count = size?.intValue ?? 0
            guard count == LocalServer.bigCount else { throw Incomplete(description: "the file has \(count) bytes") }
        case .upload:
            // The head counts too.
            let count = Int(String(decoding: answer, as: UTF8.self)) ?? 0
            guard count >= LocalServer.bigCount else { throw Incomplete(description: "\(count) bytes at the server") }
        }
        return seconds
    }

    /// Runs the transfer by the `curl` program.
    ///
    /// - Returns: the seconds that it reports, without its start.
    func seconds(with curl: URL, _ server: LocalServer, _ file: URL) throws -> Double {
        var arguments = ["--silent", "--show-error", "--fail", "--noproxy", "*", "--write-out", "%{time_total}"]
        switch self {
        case .download: arguments += ["-o", file.path]
        case .upload: arguments += ["-T", file.path, "-o", "/dev/null"]
        }
        let output = try ChildProcess.run(curl, arguments + [try url(server).absoluteString])
        // The decimal separator depends on the language of the machine.
        guard let seconds = Double(output.replacingOccurrences(of: ",", with: ".")) else {
            throw ChildProcess.Failure(description: "curl wrote: \(output)")
        }
        return seconds
    }

    private func url(_ server: LocalServer) throws -> URL {
        switch self {
        case .download: try server.url("/big")
        case .upload: try server.url("/upload")
        }
    }

    /// Bytes are missing without an error.
    private struct Incomplete: Error, CustomStringConvertible {
        let description: String
    }
}
#endif
