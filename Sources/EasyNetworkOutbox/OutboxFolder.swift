import EasyNetwork
import Foundation

/// The directory of an outbox.
///
/// ```
/// entries/   a file for each entry, or a directory with the record and the files of the body
/// dead/      the same for dead letters
/// errors/    why, by the id of the dead letter, which shows others that depend on it that it is one
/// tries/     by the id of an entry, how often it has failed, and when it is tried again
/// outputs/   by the id of an entry that was delivered, what it left for those that come after it
/// unique/    by the name that entries share, the names of their files; locked while it is changed
/// tmp/       what is being written or removed, in a directory for each outbox, which has it locked
/// sequence   its length is the number of entries that have been added; holds the number before the first one
/// changes    its length is the number of changes by outboxes that did not deliver
/// ```
///
/// The outbox that delivers has the directory itself locked.
///
/// Every change of an entry is one rename. Errors are ``/EasyNetwork/NetworkError/Code/cannotWriteFile``.
struct OutboxFolder: Sendable {
    enum Place: String { case entries, dead }

    let root: String
    let files: CacheFiles
    /// Where this outbox writes what becomes an entry.
    private let scratch: Scratch

    init(_ directory: URL, files: CacheFiles = CacheFiles()) throws(NetworkError) {
        let root = directory.standardizedFileURL.path
        (self.root, self.files) = (root, files)
        scratch = try Self.attempt(root) {
            // Each new directory is in one that is to be synced. Each entry is synced to the end.
            var made = [root]
            while let path = made.last, path != "/", !FileManager.default.fileExists(atPath: path) {
                made.append((path as NSString).deletingLastPathComponent)
            }
            for name in ["entries", "dead", "errors", "tries", "outputs", "unique", "tmp"] {
                try files.makeDirectory(root + "/" + name)
            }
            for path in made {
                // A directory above it may be closed to this user.
                do { try files.sync(path, isLast: false) } catch POSIXError.EACCES where path != root {}
            }
            #if canImport(Darwin)
            // An entry that comes back would send again what was delivered.
            var (url, values) = (directory, URLResourceValues())
            values.isExcludedFromBackup = true
            try url.setResourceValues(values)
            #endif
            // Other processes hear of changes to it. Without it they find them later.
            for _ in 0..<2 {
                do {
                    close(try RegularFile.open(root + "/changes", O_WRONLY | O_CREAT).descriptor)
                } catch let error where Self.isStranger(error) {
                    unlink(root + "/changes")
                    continue
                } catch {}
                break
            }
            return try Scratch(in: root + "/tmp", files)
        }
    }

    // MARK: - Entries

    /// In their order. An entry that is added during the look may be missing while a newer one is there.
    func list(_ place: Place) throws(NetworkError) -> [OutboxName] {
        try attempt { try files.list(path(place.rawValue)).compactMap { OutboxName($0) } }
            .sorted { $0.sequence < $1.sequence }
    }

    /// The entries in their order: with each one, those that were added before it.
    func wholeList() throws(NetworkError) -> [OutboxName] {
        try attempt {
            var known = Set(try files.list(path("entries")))
            var names = known.compactMap { OutboxName($0) }.sorted { $0.sequence < $1.sequence }
            // An entry that a list missed while the directory changed is in the next one.
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
        let (temporary, addedAt) = (newTemporary(), record.addedAt)
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
                // Where its date is found without reading it.
                try files.create(record, pieces, usedAt: addedAt)
                try files.sync(record, isLast: false)
                if !attachments.isEmpty { try files.sync(temporary, isLast: false) }
                try files.rename(temporary, to: path(.entries, name))
                try files.sync(path("entries"), isLast: true)
            }
        } catch {
            // Either is there. A leftover is removed when an outbox starts.
            discard(path(.entries, name))
            discard(temporary)
            throw error
        }
    }

    /// - Throws: ``/EasyNetwork/NetworkError/Code/cannotParseResponse`` for a damaged file,
    ///   ``/EasyNetwork/NetworkError/Code/cancelled`` when the entry is not here any more.
    func read(_ name: OutboxName, in place: Place = .entries) throws(NetworkError) -> OutboxRecord {
        let entry = path(place, name)
        guard let attributes = try? FileManager.default.attributesOfItem(atPath: entry) else {
            throw NetworkError(code: .cancelled, message: "the entry was removed")
        }
        let isDirectory = attributes[.type] as? FileAttributeType == .typeDirectory
        let record = isDirectory ? entry + "/record" : entry
        let data = try attempt {
            do {
                return try files.read(record) { size in size }.0
            } catch let error where Self.isStranger(error) || (error as? POSIXError)?.code == .ENOENT {
                return Data()
            }
        }
        let parts = data.split(separator: UInt8(ascii: "\n"), maxSplits: 1)
        guard parts.count == 2, Self.digest(Data(parts[1])) == String(decoding: parts[0], as: UTF8.self),
            let value = try? JSONDecoder().decode(OutboxRecord.self, from: Data(parts[1])), value.fileCount >= 0,
            (try? value.options?.check(lane: name.lane)) != nil || value.options == nil
        else {
            guard exists(entry) else { throw NetworkError(code: .cancelled, message: "the entry was removed") }
            throw NetworkError(code: .cannotParseResponse, message: "the file \(record) is damaged")
        }
        return value
    }

    /// Whether something else is in the place of a file: a link, a directory, a pipe.
    private static func isStranger(_ error: any Error) -> Bool {
        (error as? POSIXError).map { [.ELOOP, .EISDIR, .ENXIO, .EMLINK].contains($0.code) } ?? false
    }

    /// The files of a body in the outbox, by the paths that they have in the body.
    ///
    /// They are known by their order: a path may have changed since the request was added, as on iOS after an update.
    func attachments(of body: RequestBody, _ name: OutboxName) throws(NetworkError) -> [String: URL] {
        var found: [String: URL] = [:]
        _ = try body.build { url throws(NetworkError) in
            let file =
                found[url.path] ?? URL(fileURLWithPath: path(.entries, name) + "/" + Self.attachment(found.count))
            found[url.path] = file
            return file
        }
        return found
    }

    /// The files of an entry, by the names that they get in another one.
    func attachments(of name: OutboxName, _ count: Int) -> [String: URL] {
        let names = (0..<count).map(Self.attachment)
        return Dictionary(names.map { ($0, URL(fileURLWithPath: path(.entries, name) + "/" + $0)) }) { first, _ in first
        }
    }

    /// The name of a file of the body.
    static func attachment(_ index: Int) -> String { "file\(index)" }

    // MARK: - Moves

    /// Has no other outbox of the directory move entries between the two places while it runs: an entry that is found
    /// in one of them is there, and one that is in neither is gone. It waits for those that do so now.
    func alone<Result>(_ work: () throws(NetworkError) -> Result) throws(NetworkError) -> Result {
        try locked("dead", work)
    }

    private func locked<Result>(
        _ name: String,
        _ work: () throws(NetworkError) -> Result
    ) throws(NetworkError) -> Result {
        let lock = try attempt {
            try WorkQueue.loop?.willUseFile(path(name), toWrite: false)
            let lock = try Lock.open(path(name))
            try lock.wait()
            return lock
        }
        defer { withExtendedLifetime(lock) {} }
        return try work()
    }

    /// Removes an entry or a dead letter. Call it within ``alone(_:)``.
    func remove(_ name: OutboxName) throws(NetworkError) {
        if try !remove(name, from: .entries) { try remove(name, from: .dead) }
    }

    /// Removes an entry in one step.
    ///
    /// - Returns: false when it is not here any more.
    @discardableResult
    func remove(_ name: OutboxName, from place: Place) throws(NetworkError) -> Bool {
        let temporary = newTemporary()
        // A dead letter's stays when the rename fails; an entry's is a leftover, which no other call would remove.
        if place == .entries {
            discard(reason(name.id))
            forgetTries(of: name.id)
        }
        let isHere = try attempt {
            do { try files.rename(path(place, name), to: temporary) } catch POSIXError.ENOENT { return false }
            return true
        }
        guard isHere else { return false }
        discard(reason(name.id))
        // Once more: it may have failed in between.
        forgetTries(of: name.id)
        discard(temporary)
        return true
    }

    /// Makes an entry a dead letter. Call it within ``alone(_:)``.
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

    /// Makes a dead letter an entry again. Its reason is to be forgotten when others know that it is one. Call it within
    /// ``alone(_:)``.
    ///
    /// - Returns: its name, which has another number if the one of the letter was none of an outbox; nil when there is
    ///   no such dead letter.
    func revive(_ name: OutboxName) throws(NetworkError) -> OutboxName? {
        let newName = name.isInOrder ? name : name.numbered(try nextSequence(after: lastSequence()))
        return try attempt {
            do { try files.rename(path(.dead, name), to: path(.entries, newName)) } catch POSIXError.ENOENT {
                return nil
            }
            return newName
        }
    }

    /// Forgets why an entry was a dead letter, unless it is one again. Call it within ``alone(_:)``.
    func forgetReason(of name: OutboxName) {
        if has(name) { discard(reason(name.id)) }
    }

    func has(_ name: OutboxName) -> Bool { exists(path(.entries, name)) }

    /// When an entry was added; nil when it has left.
    func date(of name: OutboxName, in place: Place) -> Date? {
        let path = path(place, name)
        // An entry with files is a directory.
        let status = (try? files.look(path)) ?? (try? files.look(path + "/record"))
        return status?.usedAt
    }

    // MARK: - Tries

    func tries(of id: UUID) -> OutboxTries? {
        guard let data = try? files.read(path("tries/" + id.uuidString), count: { size in size }).0 else { return nil }
        guard var tries = try? JSONDecoder().decode(OutboxTries.self, from: data) else { return nil }
        // A damaged file must not overflow.
        tries.count = min(max(0, tries.count), 1_000_000)
        return tries
    }

    /// The entries that have failed.
    var tried: Set<UUID> { Set(((try? files.list(path("tries"))) ?? []).compactMap { UUID(uuidString: $0) }) }

    /// Has an entry be tried at once.
    func hasten(_ id: UUID, at date: Date) {
        guard var tries = tries(of: id) else { return }
        tries.next = date
        note(tries, of: id)
    }

    /// A part that is lost, by a full disk or a loss of power, costs a try earlier or one more.
    func note(_ tries: OutboxTries, of id: UUID) {
        replace(path("tries/" + id.uuidString), try? JSONEncoder().encode(tries))
    }

    func forgetTries(of id: UUID) {
        discard(path("tries/" + id.uuidString))
    }

    private func replace(_ path: String, _ data: Data?) {
        let temporary = newTemporary()
        do {
            guard let data else { return }
            try files.create(temporary, [data], usedAt: Date())
            try files.rename(temporary, to: path)
        } catch {
            discard(temporary)
        }
    }

    // MARK: - Outputs

    /// Keeps what an entry leaves for those that come after it: as long as there are any, and for a day.
    func leave(_ output: Data, of id: UUID) throws(NetworkError) {
        let temporary = newTemporary()
        do throws(NetworkError) {
            try attempt {
                try files.create(temporary, [output], usedAt: Date())
                try files.sync(temporary, isLast: false)
                try files.rename(temporary, to: path("outputs/" + id.uuidString))
                try files.sync(path("outputs"), isLast: false)
            }
        } catch {
            discard(temporary)
            throw error
        }
    }

    /// The items that entries left, nil for an entry that left nothing.
    func outputs(of ids: [UUID]) throws(NetworkError) -> [Data?] {
        try attempt {
            try ids.map { id in
                do {
                    return try files.read(path("outputs/" + id.uuidString)) { size in size }.0
                } catch POSIXError.ENOENT {
                    return nil
                }
            }
        }
    }

    private func sweepOutputs() {
        let old = ((try? files.list(path("outputs"))) ?? []).filter { name in
            guard let status = try? files.look(path("outputs/" + name)) else { return false }
            return status.usedAt < Date() - 86_400
        }
        guard !old.isEmpty else { return }
        var wanted: Set<String> = []
        for place in [Place.entries, .dead] {
            guard let names = try? list(place) else { return }
            for name in names where name.hasDependencies {
                for id in (try? read(name, in: place))?.after ?? [] { wanted.insert(id.uuidString) }
            }
        }
        for name in old where !wanted.contains(name) { discard(path("outputs/" + name)) }
    }

    // MARK: - Unique entries

    /// Changes which entries of a name there are, while no other process does. It waits for those that do so now, which
    /// takes as long as writing an entry.
    ///
    /// - Parameter change: is given those that have not left, and returns those of afterwards.
    func changeUnique(
        _ name: String,
        _ change: ([OutboxName]) throws(NetworkError) -> [OutboxName]
    ) throws(NetworkError) {
        try locked("unique") { () throws(NetworkError) in try changeUniqueAlone(name, change) }
    }

    private func changeUniqueAlone(
        _ name: String,
        _ change: ([OutboxName]) throws(NetworkError) -> [OutboxName]
    ) throws(NetworkError) {
        let list = path("unique/" + OutboxName.fileName(name))
        let lines = try attempt {
            do {
                return try files.read(list) { size in size }.0
            } catch let error where Self.isStranger(error) || (error as? POSIXError)?.code == .ENOENT {
                return Data()
            }
        }
        let found = String(decoding: lines, as: UTF8.self).split(separator: "\n").compactMap { OutboxName(String($0)) }
        let names = try change(found.filter(has))
        guard names != found else { return }
        let temporary = newTemporary()
        try attempt {
            do {
                guard !names.isEmpty else { return discard(list) }
                let text = names.map(\.text).joined(separator: "\n")
                try files.create(temporary, [Data(text.utf8)], usedAt: Date())
                try files.sync(temporary, isLast: false)
                try files.rename(temporary, to: list)
                try files.sync(path("unique"), isLast: true)
            } catch {
                discard(temporary)
                throw error
            }
        }
    }

    /// Whether an entry is a dead letter; or was one, and its reason has not been forgotten yet.
    func hasReason(_ id: UUID) -> Bool { exists(reason(id)) }

    /// Links are not followed: one that leads nowhere is there, too.
    private func exists(_ path: String) -> Bool {
        (try? FileManager.default.attributesOfItem(atPath: path)) != nil
    }

    /// Why an entry is a dead letter; nil when that cannot be read.
    func failure(of id: UUID) -> NetworkError? {
        guard let data = try? files.read(reason(id), count: { size in size }).0 else { return nil }
        return (try? JSONDecoder().decode(OutboxFailure.self, from: data))?.error
    }

    // MARK: - Processes

    /// - Returns: nil while another process, or another outbox of this one, delivers.
    func lock() throws(NetworkError) -> Lock? {
        try attempt { try Lock.take(root) }
    }

    /// Tries to take the lock without an end of a descriptor, of which others that wait would be told.
    ///
    /// - Parameter lock: the one of the last try; becomes that of this one.
    /// - Returns: whether it is held now.
    func take(_ lock: inout Lock?) -> Bool {
        if lock?.isAt(root) != true { lock = try? Lock.open(root) }
        return (try? lock?.take()) ?? false
    }

    /// Counts up what is in a file by its length, in one step and without a lock.
    ///
    /// - Returns: the count, with this one.
    private func count(_ name: String, by number: Int = 1) throws -> UInt64 {
        let (descriptor, status) = try RegularFile.open(path(name), O_WRONLY | O_APPEND | O_CREAT)
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        // A damaged file may have no room.
        guard status.st_size < OutboxSequence.countLimit else { return OutboxSequence.countLimit }
        try file.write(contentsOf: Data(count: number))
        return try file.offset()
    }

    /// The greatest number of an entry after which others may come; 0 without entries.
    func lastSequence() throws(NetworkError) -> UInt64 {
        try list(.entries).last { $0.sequence < OutboxSequence.baseLimit }?.sequence ?? 0
    }

    /// The next number in the order of entries.
    ///
    /// - Parameter minimum: ``lastSequence()``. Default nil: it is known that the file's numbers are greater.
    func nextSequence(after minimum: UInt64? = nil) throws(NetworkError) -> UInt64 {
        try attempt {
            while true {
                let base = try sequenceBase(after: minimum)
                var count = base == nil ? 0 : try count("sequence")
                if case .extend(let number) = OutboxSequence.step(base: base, count: count, after: minimum ?? 0) {
                    count = try self.count("sequence", by: number)
                }
                if case .take(let number) = OutboxSequence.step(base: base, count: count, after: minimum ?? 0) {
                    return number
                }
                try makeSequence(after: minimum, isNew: false)
            }
        }
    }

    /// The number before those that the file counts; nil when it cannot be read. Makes the file if there is none.
    private func sequenceBase(after minimum: UInt64?) throws -> UInt64? {
        while true {
            do {
                let (text, _) = try files.read(path("sequence")) { _ in 16 }
                return text.count == 16 ? UInt64(String(decoding: text, as: UTF8.self), radix: 16) : nil
            } catch let error where Self.isStranger(error) {
                return nil
            } catch POSIXError.ENOENT {
                try makeSequence(after: minimum, isNew: true)
            }
        }
    }

    private func makeSequence(after minimum: UInt64?, isNew: Bool) throws {
        let minimum = try minimum ?? lastSequence()
        let temporary = newTemporary()
        defer { discard(temporary) }
        let digits = String(minimum, radix: 16)
        let text = String(repeating: "0", count: 16 - digits.count) + digits
        try files.create(temporary, [Data(text.utf8)], usedAt: Date())
        guard isNew else { return try files.rename(temporary, to: path("sequence")) }
        // Another outbox may be faster.
        guard link(temporary, path("sequence")) == 0 || errno == EEXIST else {
            throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO)
        }
    }

    /// Tells the outbox that delivers to look for changes. Without the file none has looked yet.
    func ring() {
        _ = try? count("changes")
    }

    /// The number of ``ring()``s so far.
    var changes: Int { (try? files.look(path("changes")))??.size ?? 0 }

    /// Removes what processes left that ended while they wrote.
    func sweep() {
        for name in (try? files.list(path("tmp"))) ?? [] where path("tmp/" + name) != scratch.path {
            Scratch.sweep(path("tmp/" + name))
        }
        // Leftovers that belong to no entry; most often there are none.
        for (folder, places) in [("errors", [Place.dead]), ("tries", [.entries, .dead])] {
            let names = (try? files.list(path(folder))) ?? []
            guard !names.isEmpty, let kept = try? places.flatMap({ try files.list(path($0.rawValue)) }) else {
                continue
            }
            let ids = Set(kept.map { $0.dropFirst(17).prefix(36) })
            for name in names where !ids.contains(name[...]) {
                // A newer one may be that of an entry which another process makes a dead letter now, or has just added.
                let path = path(folder + "/" + name)
                if let status = try? files.look(path), status.usedAt < Date() - 60 { discard(path) }
            }
        }
        sweepOutputs()
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

    private func newTemporary() -> String { scratch.path + "/" + UUID().uuidString }

    private func attempt<Result>(_ work: () throws -> Result) throws(NetworkError) -> Result {
        try Self.attempt(root, work)
    }

    private static func attempt<Result>(_ root: String, _ work: () throws -> Result) throws(NetworkError) -> Result {
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
