#if os(Linux) || os(macOS)
import Foundation

/// An nginx of one's own on 127.0.0.1, without TLS: `/small` has ``smallCount`` bytes, `/big` ``bigCount``, and `/upload`
/// takes a body, reads all of it, and answers with the number of bytes that head and body had.
///
/// It and its folder are gone soon after ``stop()``, and after this process ended, in whatever way it did.
final class LocalServer {
    static let smallCount = 1_024
    static let bigCount = 1 << 30

    /// Everything of the server's is in it, and there is room for more.
    let folder: URL
    private let port: UInt16
    /// The end of a pipe that is the shell's sign that we are alive.
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

    /// Somebody took it between our look and the server's start.
    private struct PortTaken: Error {}

    private init(_ nginx: Program, in parent: URL, port: UInt16) throws {
        self.port = port
        // Short, since the path of a socket may have 104 bytes.
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

    /// Ends nginx and removes its folder, soon, not before it returns.
    func stop() {
        try? lifeline.close()
    }

    /// - Parameter path: with its slash.
    func url(_ path: String) throws -> URL {
        let text = "http://127.0.0.1:\(port)\(path)"
        guard let url = URL(string: text) else {
            throw TransportBenchmark.Unavailable(description: "\(text) is no URL")
        }
        return url
    }

    // MARK: - The process

    /// - Returns: what ends nginx and removes the folder when it is closed, by us or, at our death, by the system.
    private static func start(_ nginx: Program, _ folder: URL) throws -> FileHandle {
        let lifeline = Pipe()
        let shell = Process()
        shell.executableURL = URL(fileURLWithPath: "/bin/sh")
        shell.arguments = ["-c", watch, "sh", nginx.file.path, folder.path]
        shell.standardInput = lifeline
        shell.standardOutput = FileHandle.nullDevice
        shell.standardError = FileHandle.nullDevice
        let end = lifeline.fileHandleForWriting
        // Another process that is started meanwhile would keep it open.
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

    /// Becomes nginx, and leaves behind a shell that outlives the signals a terminal sends to all: it has to clean up
    /// after them. nginx removes its number when it has ended its worker.
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

    /// nginx writes its number down when its sockets listen; from then on connections wait for it, not it for them.
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
            // It tells nobody when it listens: a pause between two looks, before anything is measured.
            usleep(5_000)
        }
    }
}
#endif
