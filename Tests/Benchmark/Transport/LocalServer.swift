#if os(Linux) || os(macOS)
import Foundation

/// A local nginx on 127.0.0.1 without TLS: `/small` has ``smallCount`` bytes, `/big` has ``bigCount``, `/bulk` sends
/// ``bulkCount`` slowly, and `/upload` reads a whole body and answers with the number of bytes of head and body.
///
/// The server and its folder disappear soon after ``stop()``, and after any end of this process.
final class LocalServer {
    static let smallCount = 1_024
    static let bigCount = 1 << 30
    static let bulkCount = 200_000_000
    /// Bytes a second of all connections for `/bulk` together, each of which has its share.
    static let bulkRate = 20_000_000
    static let bulkConnections = 6

    /// The folder of all files of the server, with room for others.
    let folder: URL
    private let port: UInt16
    /// The end of a pipe that tells the shell that this process is alive.
    private let lifeline: FileHandle

    /// - Throws: ``TransportBenchmark/Unavailable`` without nginx, or when it does not start.
    convenience init(in parent: URL) throws {
        guard let nginx = Program("nginx") else {
            throw TransportBenchmark.Unavailable(description: "there is no nginx in PATH or /usr/sbin to measure with")
        }
        var attempt = 1
        while true {
            do {
                try self.init(nginx, in: parent, port: try FreePort.find())
                return
            } catch is PortTaken where attempt < 5 {
                attempt += 1
            }
        }
    }

    /// Another process took the port before the server started.
    private struct PortTaken: Error {}

    private init(_ nginx: Program, in parent: URL, port: UInt16) throws {
        self.port = port
        // Short, because the path of a socket has at most 104 bytes.
        let folder = parent.appendingPathComponent("benchmark-\(UUID().uuidString.prefix(8))")
        self.folder = folder
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        do {
            try ServerFiles(folder: folder, port: port).write()
            lifeline = try Self.start(nginx, folder)
        } catch {
            try? FileManager.default.removeItem(at: folder)
            throw error
        }
    }

    /// Ends nginx and removes its folder, possibly after this method has returned.
    func stop() {
        try? lifeline.close()
    }

    /// - Parameter path: begins with a slash.
    func url(_ path: String) throws -> URL {
        let text = "http://127.0.0.1:\(port)\(path)"
        guard let url = URL(string: text) else {
            throw TransportBenchmark.Unavailable(description: "\(text) is no URL")
        }
        return url
    }

    /// The file behind `/bulk`.
    var bulk: URL { folder.appendingPathComponent("www/bulk") }

    /// The bytes of the answers for `/bulk` so far.
    func bulkBytesSent() throws -> Int64 {
        let log = folder.appendingPathComponent("bulk.log")
        guard let text = try? String(contentsOf: log, encoding: .utf8) else { return 0 }
        return text.split(separator: "\n").compactMap { Int64($0) }.reduce(0, +)
    }

    // MARK: - The process

    /// - Returns: a descriptor whose close ends nginx and removes the folder; the system closes it with this process.
    private static func start(_ nginx: Program, _ folder: URL) throws -> FileHandle {
        let lifeline = Pipe()
        let shell = Process()
        shell.executableURL = URL(fileURLWithPath: "/bin/sh")
        shell.arguments = ["-c", watch, "sh", nginx.file.path, folder.path]
        shell.standardInput = lifeline
        shell.standardOutput = FileHandle.nullDevice
        shell.standardError = FileHandle.nullDevice
        let end = lifeline.fileHandleForWriting
        // A process that starts at the same time would keep it open.
        _ = fcntl(end.fileDescriptor, F_SETFD, FD_CLOEXEC)
        try shell.run()
        do {
            try waitUntilListening(shell, folder)
        } catch {
            try? end.close()
            throw error
        }
        return end
    }

    /// Runs nginx, and a shell that ignores the signals of a terminal, because it has to clean up after them. nginx
    /// removes its pid file after the end of its worker.
    private static let watch = """
        trap '' HUP INT QUIT TERM
        exec 3<&0 </dev/null
        {
            read -r _ <&3
            kill -TERM $$
            looks=0
            while [ -e "$2/nginx.pid" ] && [ $looks -lt 100 ]; do
                looks=$((looks + 1))
                sleep 0.02
            done
            kill -KILL $$
            rm -rf "$2"
        } &
        exec "$1" -c "$2/nginx.conf" -e "$2/error.log" 3<&-
        """

    /// Waits for the pid file of nginx, which exists as soon as its sockets listen.
    private static func waitUntilListening(_ shell: Process, _ folder: URL) throws {
        let limit = DispatchTime.now() + 10
        let number = folder.appendingPathComponent("nginx.pid").path
        let log = folder.appendingPathComponent("error.log")
        while !FileManager.default.fileExists(atPath: number) {
            let isRunning = shell.isRunning
            let text = (try? String(contentsOf: log, encoding: .utf8)) ?? ""
            if text.contains("Address already in use") { throw PortTaken() }
            guard isRunning, DispatchTime.now() < limit else {
                throw TransportBenchmark.Unavailable(description: "nginx does not start: \(text)")
            }
            // There is no event to wait for: a pause between two checks, before anything is measured.
            usleep(5_000)
        }
    }
}
#endif
