import Dispatch
import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import EasyNetworkDiagnostics
@testable import TestSupport

/// The files of logs and recordings.
@Suite("Rotation of files", .timeLimit(.minutes(10)))
struct FileRotationTests {
    private let folder = TestFolder()

    private func text(_ name: String) -> String? { folder.data(name).map { String(decoding: $0, as: UTF8.self) } }

    private func mode(_ name: String) throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: folder.file(name).path)[.posixPermissions] as? Int
    }

    /// The entries and the dropped ones of a recording.
    private func recording(_ name: String) throws -> (entries: [Int], dropped: Int) {
        let json = try JSONSerialization.jsonObject(with: try #require(folder.data(name))) as? [String: Any]
        let log = try #require(json?["log"] as? [String: Any])
        return (log["entries"] as? [Int] ?? [], log["_dropped"] as? Int ?? 0)
    }

    // MARK: - Logs

    @Test("DIA-2: a log goes on in a new file when the current one is full; the oldest is removed")
    func logBySize() throws {
        folder.write("before\n", to: "net.log")
        folder.write("too many", to: "net.3.log")
        let rotation = FileRotation(maximumBytes: 10, maximumCount: 3)
        let file = try LogFile(folder.file("net.log"), rotation, ManualClock())
        expect(folder.names == ["net.1.log", "net.log"] && text("net.1.log") == "before\n")
        for line in ["1234", "5678", "9", "longer than a file", "end"] { expect(file.write(line)) }
        expect(folder.names, equals: ["net.1.log", "net.2.log", "net.log"])
        expect(text("net.log"), equals: "end\n")
        expect(text("net.1.log"), equals: "longer than a file\n")
        expect(text("net.2.log"), equals: "9\n")
        for name in folder.names where name != "net.3.log" { try expect(mode(name), equals: 0o600) }
        // An empty file is none that is kept.
        let single = try LogFile(folder.file("one"), FileRotation(maximumBytes: 3, maximumCount: 0), ManualClock())
        for line in ["a", "b", "c"] { expect(single.write(line)) }
        expect(text("one"), equals: "c\n")
        expect(!folder.names.contains("one.1"))
    }

    @Test("DIA-2: a log and a recording go on in new files when the current ones are old")
    func byAge() async throws {
        let (clock, rotation) = (ManualClock(), FileRotation(maximumAge: 60))
        let log = try LogFile(folder.file("a.log"), rotation, clock)
        let har = try HARFile(folder.file("a.har"), rotation, clock)
        for (number, wait) in [(1, 59.0), (2, 1), (3, 0), (4, 1_000), (5, 0)] {
            expect(log.write("\(number)"))
            har.append(1) { $0 += "\(number)".utf8 }
            try await har.settled()
            clock.advance(by: wait)
        }
        expect(["a.2.log", "a.1.log", "a.log"].map(text), equals: ["1\n2\n", "3\n4\n", "5\n"])
        let entries = try ["a.2.har", "a.1.har", "a.har"].map { try recording($0).entries }
        expect(entries, equals: [[1, 2], [3, 4], [5]])
    }

    @Test("DIA-2: names of older files have a number before the extension")
    func names() throws {
        let names = ["/a/b.har", "/a/b", "/a.b/c", "/a/.log", "/a/b.c.log"].map { path in
            try? RotatedFiles(URL(fileURLWithPath: path), nil).name(2)
        }
        expect(names, equals: ["/a/b.2.har", "/a/b.2", "/a.b/c.2", "/a/.log.2", "/a/b.c.2.log"])
    }

    @Test("DIA-2: what finds no place on the disk is dropped and counted; afterwards the log goes on")
    func lostLines() async throws {
        let place = folder.file("sub")
        try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
        let file = try LogFile(
            place.appendingPathComponent("a.log"),
            FileRotation(maximumBytes: 8, maximumCount: 2),
            ManualClock()
        )
        let writer = LogWriter { file.write($0.text) }
        func settle() async {
            await withCheckedContinuation { continuation in writer.settle { continuation.resume() } }
        }
        writer.add(.info) { "1234567" }
        await settle()
        try FileManager.default.removeItem(at: place)
        for number in 1...3 {
            writer.add(.info) { "\(number)" }
            await settle()
        }
        try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
        writer.add(.info) { "there" }
        await settle()
        expect(text("sub/a.1.log"), equals: "3 lines of the log were dropped\n")
        expect(text("sub/a.log"), equals: "there\n")
    }

    @Test("DIA-2: a log in a file has heads of real calls, and its time and level before each line")
    func logger() async throws {
        let host = ScriptedTransport { _, _ in .answer(200, ["A": "b"]) }.host()
        let logger = try NetworkLogger(level: .heads, file: folder.file("a.log"))
        logger.log(host)
        _ = try await EasyNetworkService(host).send(Get(api: "a"))
        await logger.settled()
        let lines = try #require(text("a.log")).split(separator: "\n").filter { !$0.hasPrefix("  ") }
        expect(lines.count == 4 && lines.allSatisfy { $0.contains("Z debug ") || $0.contains("Z info ") })
        expect(text("a.log")?.contains("\n  < A: b\n"), equals: true)
        folder.write("x", to: "target")
        try FileManager.default.createSymbolicLink(at: folder.file("link"), withDestinationURL: folder.file("target"))
        for url in [
            folder.file("link"), folder.file("none/a.log"), folder.url, try #require(URL(string: "http://a.b")),
        ] {
            let error = #expect(throws: NetworkError.self) { try NetworkLogger(file: url) }
            expect(error?.code, equals: .cannotWriteFile)
        }
        expect(text("target"), equals: "x")
    }

    #if os(Linux)
    @Test("DIA-2: a full device stops no job, and a pipe that nobody reads does not hold up the program")
    func fullDevice() async throws {
        let device = URL(fileURLWithPath: "/dev/full")
        let host = ScriptedTransport { _, _ in .answer(200, body: "text") }.host()
        let logger = try NetworkLogger(level: .bodies, file: device, rotation: FileRotation(maximumBytes: 1))
        logger.log(host)
        for _ in 0..<20 { _ = try await EasyNetworkService(host).send(Get(api: "a")) }
        await logger.settled()
        expect(!FileManager.default.fileExists(atPath: "/dev/full.1"))
        expect(mkfifo(folder.file("pipe").path, 0o600), equals: 0)
        #expect(throws: NetworkError.self) { try NetworkLogger(file: folder.file("pipe")) }
    }

    @Test("DIA-2: a reader that stops reading delays no job; what found no room is counted for it")
    func slowReader() async throws {
        let pipe = folder.file("pipe")
        expect(mkfifo(pipe.path, 0o600), equals: 0)
        // Without waiting for the writer.
        let reader = open(pipe.path, O_RDONLY | O_NONBLOCK)
        expect(reader >= 0)
        let host = ScriptedTransport { _, _ in .answer(200, body: String(repeating: "x", count: 1_000_000)) }.host()
        let logger = try NetworkLogger(level: .bodies, file: pipe, maximumBodyCount: 100_000)
        logger.log(host)
        // Far more than a pipe holds, and more than may wait.
        for _ in 0..<40 { _ = try await EasyNetworkService(host).send(Get(api: "a")) }
        await host.broadcast.settled()
        let isSettled = Locked(false)
        let task = Task {
            await logger.settled()
            isSettled.exchange(true)
        }
        var text = Data()
        var buffer = [UInt8](repeating: 0, count: 65_536)
        _ = await eventually {
            let count = read(reader, &buffer, buffer.count)
            if count > 0 { text += buffer.prefix(count) }
            return isSettled.withLock { $0 } && count <= 0
        }
        await task.value
        close(reader)
        expect(String(decoding: text, as: UTF8.self).contains(" lines of the log were dropped\n"))
    }
    #endif

    @Test("DIA-2: many jobs at once write whole lines, each once, in all files together")
    func concurrency() async throws {
        let host = ScriptedTransport { _, _ in .answer(200) }.host()
        let rotation = FileRotation(maximumBytes: 2_000, maximumCount: 1_000)
        let logger = try NetworkLogger(file: folder.file("a.log"), rotation: rotation)
        logger.log(host)
        let recorder = try TrafficRecorder(file: folder.file("a.har"), rotation: rotation)
        recorder.record(host)
        let service = EasyNetworkService(host)
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<200 { group.addTask { _ = try? await service.send(Get(api: "n/\(number)/")) } }
        }
        await logger.settled()
        try await recorder.finish()
        var (lines, urls): ([String], [String]) = ([], [])
        for name in folder.names {
            let data = try #require(folder.data(name))
            if name.hasSuffix("log") {
                expect(data.count <= 2_000)
                lines += String(decoding: data, as: UTF8.self).split(separator: "\n").map(String.init)
            } else {
                let json = try JSONSerialization.jsonObject(with: data) as? [String: Any]
                let entries = (json?["log"] as? [String: Any])?["entries"] as? [[String: Any]]
                urls += try #require(entries).compactMap { ($0["request"] as? [String: Any])?["url"] as? String }
                expect(data.count <= 2_000 || entries?.count == 1)
            }
        }
        expect(lines.count == 400 && folder.names.count > 20)
        expect(Set(urls).count == 200 && urls.count == 200)
    }

    // MARK: - Recordings

    @Test("DIA-2: a recording goes on in a new file when the current one is full; each is a whole document")
    func recordingBySize() async throws {
        folder.write(#"{"log":{"entries":[0]}}"#, to: "a.har")
        let file = try HARFile(folder.file("a.har"), FileRotation(maximumBytes: 200, maximumCount: 3), ManualClock())
        try expect(recording("a.1.har").entries, equals: [0])
        let gate = DispatchSemaphore(value: 0)
        // The others are one batch, and are put into several files nevertheless.
        file.append(1) { text in
            gate.wait()
            text += "1".utf8
        }
        for number in 2...9 { file.append(1) { $0 += "\(number)\(String(repeating: " ", count: 20))".utf8 } }
        gate.signal()
        try await file.settled()
        expect(folder.names, equals: ["a.1.har", "a.2.har", "a.har"])
        var all: [Int] = []
        for name in ["a.2.har", "a.1.har", "a.har"] {
            all += try recording(name).entries
            try expect(#require(folder.data(name)).count <= 200)
            try expect(mode(name), equals: 0o600)
        }
        expect(all == Array((10 - all.count)...9) && all.count > 3)
    }

    @Test(
        "DIA-2: entries for which there is no place are dropped and counted in the file, and the error is told at the end"
    )
    func lostEntries() async throws {
        let place = folder.file("sub")
        try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
        let file = try HARFile(
            place.appendingPathComponent("a.har"),
            FileRotation(maximumBytes: 1, maximumCount: 3),
            ManualClock()
        )
        file.append(1) { $0 += "1".utf8 }
        try await file.settled()
        try FileManager.default.removeItem(at: place)
        for number in 2...4 {
            file.append(1) { $0 += "\(number)".utf8 }
            try? await file.settled()
        }
        try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
        for number in 5...6 { file.append(1) { $0 += "\(number)".utf8 } }
        await #expect(throws: NetworkError.self) { try await file.settled() }
        try expect(recording("sub/a.1.har") == (entries: [5], dropped: 3))
        try expect(recording("sub/a.har") == (entries: [6], dropped: 3))
    }
}
