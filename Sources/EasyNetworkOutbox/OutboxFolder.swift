import EasyNetwork
import Foundation

/// The name of an entry's file: what the outbox has to know before it reads the file.
struct OutboxName: Hashable, Sendable {
    /// The order of entries, also across processes and restarts: nanoseconds since 1970, or more.
    let sequence: UInt64
    let id: UUID
    let priority: JobPriority
    let hasDependencies: Bool
    let type: String
    let lane: String

    var text: String {
        let digits = String(sequence, radix: 16)
        let padded = String(repeating: "0", count: 16 - digits.count) + digits
        let flags = "\(priority.rawValue)" + (hasDependencies ? "d" : "")
        return [padded, id.uuidString, flags, Self.encoded(type), Self.encoded(lane)].joined(separator: ".")
    }

    init(sequence: UInt64, id: UUID, priority: JobPriority, hasDependencies: Bool, type: String, lane: String) {
        (self.sequence, self.id, self.priority) = (sequence, id, priority)
        (self.hasDependencies, self.type, self.lane) = (hasDependencies, type, lane)
    }

    /// - Returns: nil for a name that is not one of an entry.
    init?(_ text: String) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 5, parts[0].utf8.count == 16, let sequence = UInt64(parts[0], radix: 16),
            let id = UUID(uuidString: String(parts[1])),
            let flag = parts[2].first?.wholeNumberValue, let priority = JobPriority(rawValue: UInt8(clamping: flag)),
            let type = Self.decoded(parts[3]), let lane = Self.decoded(parts[4])
        else { return nil }
        self.init(
            sequence: sequence,
            id: id,
            priority: priority,
            hasDependencies: parts[2].dropFirst() == "d",
            type: type,
            lane: lane
        )
    }

    /// - Throws: ``/EasyNetwork/NetworkError/Code/invalidRequest`` for a text that does not fit into the name of a
    ///   file.
    static func check(_ text: String, _ role: String) throws(NetworkError) {
        guard encoded(text).utf8.count > 80 else { return }
        let message = "the \(role) \"\(text.prefix(40))…\" is too long; 80 letters and digits fit"
        throw NetworkError(code: .invalidRequest, message: message)
    }

    private static let letters = CharacterSet(
        charactersIn: "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
    )

    private static func decoded(_ text: Substring) -> String? {
        // Foundation takes its time.
        text.utf8.contains(UInt8(ascii: "%")) ? text.removingPercentEncoding : String(text)
    }

    private static func encoded(_ text: String) -> String {
        text.addingPercentEncoding(withAllowedCharacters: letters) ?? ""
    }
}

/// The contents of an entry's file.
struct OutboxRecord: Codable, Sendable {
    /// The version of the request's type.
    var version: Int
    var addedAt: Date
    /// The entries that come first.
    var after: [UUID]
    /// The number of the body's files, which are beside the record.
    var fileCount: Int
    /// The request as JSON.
    var request: Data
}

/// Why an entry is a dead letter, as it is kept in a file.
struct OutboxFailure: Codable, Sendable {
    var code: Int
    var message: String?
    var statusCode: Int?
    /// The beginning of the answer's body, which may tell why.
    var responseBody: Data?

    init(_ error: NetworkError) {
        (code, message) = (error.code.rawValue, error.message)
        (statusCode, responseBody) = (error.statusCode, error.responseBody)
    }

    var error: NetworkError {
        var error = NetworkError(code: NetworkError.Code(rawValue: code), message: message)
        error.statusCode = statusCode
        error.responseBody = responseBody
        return error
    }
}

/// The directory of an outbox.
///
/// ```
/// entries/   a file for each entry, or a directory with the record and the files of the body
/// dead/      the same for dead letters
/// errors/    why, by the id of the dead letter, which shows others that depend on it that it is one
/// tmp/       what is being written or removed, by process
/// lock       held by the process that delivers; touched by one that changes entries and does not deliver
/// ```
///
/// Every change of an entry is one rename. Errors are ``/EasyNetwork/NetworkError/Code/cannotWriteFile``.
struct OutboxFolder: Sendable {
    enum Place: String { case entries, dead }

    let root: String
    let files: CacheFiles

    /// Tells the temporary files of this process from those of an earlier one with the same number.
    private static let process = "\(machine)-\(getpid())-\(UUID().uuidString.prefix(8))-"

    /// Tells the numbers of this machine's or container's processes from those of others.
    static let machine: String = {
        var name = [CChar](repeating: 0, count: 256)
        guard gethostname(&name, name.count - 1) == 0 else { return "" }
        let bytes = Data(name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) })
        return SHA256.digest(of: bytes).prefix(4).map { String($0, radix: 16) }.joined()
    }()

    init(_ directory: URL, files: CacheFiles = CacheFiles()) throws(NetworkError) {
        root = directory.path
        self.files = files
        try attempt {
            for name in ["entries", "dead", "errors", "tmp"] { try files.makeDirectory(path(name)) }
            // Each entry is synced to the end.
            try files.sync(root, isLast: false)
            try files.sync((root as NSString).deletingLastPathComponent, isLast: false)
        }
    }

    // MARK: - Entries

    /// In their order. What was added meanwhile may be missing while something newer is there.
    func list(_ place: Place) throws(NetworkError) -> [OutboxName] {
        try attempt { try files.list(path(place.rawValue)).compactMap { OutboxName($0) } }
            .sorted { $0.sequence < $1.sequence }
    }

    /// The entries in their order: with each one, those that were added before it.
    func wholeList() throws(NetworkError) -> [OutboxName] {
        try attempt {
            var known = Set(try files.list(path("entries")))
            var names = known.compactMap { OutboxName($0) }.sorted { $0.sequence < $1.sequence }
            // What a list missed while the directory changed is in the next one.
            while true {
                let new = try files.list(path("entries")).filter { known.insert($0).inserted }
                let late = new.compactMap { OutboxName($0) }
                let newest = names.last?.sequence ?? 0
                if !late.contains(where: { $0.sequence < newest }) { return names }
                names = (names + late).sorted { $0.sequence < $1.sequence }
            }
        }
    }

    /// Writes an entry: when it returns, the entry survives a crash of the machine.
    ///
    /// - Parameter attachments: the files of the body, by the names that they get.
    func add(_ name: OutboxName, _ record: OutboxRecord, _ attachments: [String: URL]) throws(NetworkError) {
        let temporary = newTemporary()
        do throws(NetworkError) {
            try attempt {
                let json = try JSONEncoder().encode(record)
                let pieces = [Data((Self.digest(json) + "\n").utf8), json]
                var record = temporary
                if !attachments.isEmpty {
                    try files.makeDirectory(temporary)
                    record += "/record"
                    for (name, file) in attachments {
                        try files.link(file.path, to: temporary + "/" + name)
                        try files.sync(temporary + "/" + name, isLast: false)
                    }
                }
                try files.create(record, pieces, usedAt: Date())
                try files.sync(record, isLast: false)
                if !attachments.isEmpty { try files.sync(temporary, isLast: false) }
                try files.rename(temporary, to: path(.entries, name))
                try files.sync(path("entries"), isLast: true)
            }
        } catch {
            // One of them is there. A leftover is removed when an outbox starts.
            discard(path(.entries, name))
            discard(temporary)
            throw error
        }
    }

    /// - Throws: ``/EasyNetwork/NetworkError/Code/cannotParseResponse`` for a damaged file,
    ///   ``/EasyNetwork/NetworkError/Code/cancelled`` when the entry is not here any more.
    func read(_ name: OutboxName, in place: Place = .entries) throws(NetworkError) -> OutboxRecord {
        let entry = path(place, name)
        var isDirectory: ObjCBool = false
        guard FileManager.default.fileExists(atPath: entry, isDirectory: &isDirectory) else {
            throw NetworkError(code: .cancelled, message: "the entry was removed")
        }
        let record = isDirectory.boolValue ? entry + "/record" : entry
        let data = try attempt {
            do { return try files.read(record) { size in size }.0 } catch POSIXError.ENOENT { return Data() }
        }
        let parts = data.split(separator: UInt8(ascii: "\n"), maxSplits: 1)
        guard parts.count == 2, Self.digest(Data(parts[1])) == String(decoding: parts[0], as: UTF8.self),
            let value = try? JSONDecoder().decode(OutboxRecord.self, from: Data(parts[1]))
        else { throw NetworkError(code: .cannotParseResponse, message: "the file \(record) is damaged") }
        return value
    }

    /// The files of a body in the outbox, by the paths that they have in the body.
    ///
    /// They are known by their order: a path may have changed since the request was added, as on iOS after an update.
    func attachments(of body: RequestBody?, _ name: OutboxName) throws(NetworkError) -> [String: URL] {
        var found: [String: URL] = [:]
        _ = try body?.build { url throws(NetworkError) in
            let file =
                found[url.path] ?? URL(fileURLWithPath: path(.entries, name) + "/" + Self.attachment(found.count))
            found[url.path] = file
            return file
        }
        return found
    }

    /// The name of a file of the body.
    static func attachment(_ index: Int) -> String { "file\(index)" }

    /// Removes an entry in one step. Does nothing when it is not here any more.
    func remove(_ name: OutboxName, from place: Place) throws(NetworkError) {
        let temporary = newTemporary()
        // Of a dead letter it stays when the rename fails; of an entry it is a leftover, which no other call would remove.
        if place == .entries { discard(reason(name.id)) }
        try attempt {
            do { try files.rename(path(place, name), to: temporary) } catch POSIXError.ENOENT {}
        }
        discard(reason(name.id))
        discard(temporary)
    }

    /// Makes an entry a dead letter.
    func bury(_ name: OutboxName, _ error: NetworkError) throws(NetworkError) {
        let temporary = newTemporary()
        do throws(NetworkError) {
            try attempt {
                try files.create(temporary, [try JSONEncoder().encode(OutboxFailure(error))], usedAt: Date())
                try files.sync(temporary, isLast: false)
                try files.rename(temporary, to: reason(name.id))
                // Entries that depend on it find the reason.
                try files.sync(path("errors"), isLast: false)
                do {
                    try files.rename(path(.entries, name), to: path(.dead, name))
                } catch POSIXError.ENOENT {
                    // Another call was faster: it is a dead letter already, or removed.
                    if !exists(path(.dead, name)) { discard(reason(name.id)) }
                }
            }
        } catch {
            discard(temporary)
            discard(reason(name.id))
            throw error
        }
    }

    /// Makes a dead letter an entry again.
    ///
    /// - Returns: false when it is not a dead letter any more.
    func revive(_ name: OutboxName) throws(NetworkError) -> Bool {
        let isHere = try attempt {
            do { try files.rename(path(.dead, name), to: path(.entries, name)) } catch POSIXError.ENOENT {
                return false
            }
            return true
        }
        if isHere { discard(reason(name.id)) }
        return isHere
    }

    func has(_ name: OutboxName) -> Bool { exists(path(.entries, name)) }

    func isDead(_ id: UUID) -> Bool { exists(reason(id)) }

    private func exists(_ path: String) -> Bool { FileManager.default.fileExists(atPath: path) }

    /// Why an entry is a dead letter; nil when that cannot be read.
    func failure(of id: UUID) -> NetworkError? {
        guard let data = try? files.read(reason(id), count: { size in size }).0 else { return nil }
        return (try? JSONDecoder().decode(OutboxFailure.self, from: data))?.error
    }

    // MARK: - Processes

    /// The right to deliver, given back when it is released or the process ends.
    final class Lock: Sendable {
        private let descriptor: Int32

        fileprivate init(_ descriptor: Int32) {
            self.descriptor = descriptor
        }

        deinit {
            close(descriptor)
        }
    }

    /// - Returns: nil while another process, or another outbox of this one, delivers.
    func lock() throws(NetworkError) -> Lock? {
        try attempt {
            let descriptor = open(path("lock"), O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
            guard descriptor >= 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
            if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return Lock(descriptor) }
            let problem = errno
            close(descriptor)
            guard problem == EWOULDBLOCK || problem == EINTR else {
                throw POSIXError(POSIXErrorCode(rawValue: problem) ?? .EIO)
            }
            return nil
        }
    }

    /// Tells the process that delivers to look for changes.
    func ring() {
        // Without the file, no process delivers yet.
        try? files.touch(path("lock"), usedAt: Date())
    }

    /// Another value after ``ring()``.
    var changeMarker: Date? { (try? files.look(path("lock")))?.usedAt }

    /// When an entry was last added or removed, by anyone, to the precision of the file system.
    var entriesChange: Date? {
        (try? FileManager.default.attributesOfItem(atPath: path("entries")))?[.modificationDate] as? Date
    }

    /// Removes what processes left that ended while they wrote.
    func sweep() {
        for name in (try? files.list(path("tmp"))) ?? [] where !name.hasPrefix(Self.process) {
            let parts = name.split(separator: "-", omittingEmptySubsequences: false)
            guard parts.count > 2, let number = Int32(parts[1]), number > 0 else { continue }
            // Of this machine, a process of another user is one, too, as far as kill(2) says: in a sandbox every one may
            // be. A machine's name may change, and a number comes to another process. No file is written for a day.
            let isOver = number == getpid() || kill(number, 0) != 0 && errno == ESRCH
            if parts[0] != Self.machine || !isOver {
                let attributes = try? FileManager.default.attributesOfItem(atPath: path("tmp/" + name))
                guard let date = attributes?[.modificationDate] as? Date, date < Date() - 86_400 else { continue }
            }
            discard(path("tmp/" + name))
        }
        let dead = Set(((try? list(.dead)) ?? []).map(\.id.uuidString))
        for name in (try? files.list(path("errors"))) ?? [] where !dead.contains(name) {
            // A newer one may be that of an entry which another process makes a dead letter now.
            let reason = path("errors/" + name)
            if let status = try? files.look(reason), status.usedAt < Date() - 60 { discard(reason) }
        }
    }

    // MARK: - Paths

    private func path(_ name: String) -> String { root + "/" + name }

    private func path(_ place: Place, _ name: OutboxName) -> String { path(place.rawValue + "/" + name.text) }

    private func reason(_ id: UUID) -> String { path("errors/" + id.uuidString) }

    /// Removes what may be there.
    private func discard(_ path: String) {
        try? FileManager.default.removeItem(atPath: path)
    }

    private static func digest(_ data: Data) -> String { SHA256.digest(of: data).base64EncodedString() }

    private func newTemporary() -> String { path("tmp/" + Self.process + UUID().uuidString) }

    private func attempt<Result>(_ work: () throws -> Result) throws(NetworkError) -> Result {
        do {
            return try work()
        } catch let error as NetworkError {
            throw error
        } catch {
            throw NetworkError(
                code: .cannotWriteFile,
                message: "the outbox in \(root): \(error.localizedDescription)",
                underlying: error
            )
        }
    }
}
