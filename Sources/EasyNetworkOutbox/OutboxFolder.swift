import EasyNetwork
import Foundation

/// The directory of an outbox.
///
/// ```
/// entries/   a file for each entry, or a directory with the record and the files of the body
/// dead/      the same for dead letters
/// errors/    by the id of a dead letter, why it failed; also shows dependents that it is a dead letter
/// tries/     by the id of an entry, how often it has failed, and when it is tried again
/// outputs/   by the id of a delivered entry, its output for the entries that depend on it
/// uploads/   by the id of an entry, the journal of its upload that resumes
/// unique/    by the name that entries share, the names of their files; locked during a change
/// undo/      a directory for each group of jobs, with the entries that undo it; locked while its process runs
/// tmp/       files being written or removed, in a directory for each outbox, which holds its lock
/// sequence   its length is the number of entries that have been added; holds the number before the first one
/// changes    its length is the number of changes by outboxes that did not deliver
/// ```
///
/// The outbox that delivers holds a lock on the directory itself.
///
/// Every change of an entry is one rename. Errors have the code ``/EasyNetwork/NetworkError/Code/cannotWriteFile``
/// unless a method's documentation says otherwise.
struct OutboxFolder: Sendable {
    enum Place: String { case entries, dead }

    typealias Entry = (name: OutboxName, record: OutboxRecord)

    let root: String
    let files: CacheFiles
    /// The directory in which this outbox writes new files before renaming them.
    private let scratch: Scratch

    init(_ directory: URL, files: CacheFiles = CacheFiles()) throws(NetworkError) {
        let root = directory.standardizedFileURL.path
        (self.root, self.files) = (root, files)
        scratch = try Self.attempt(root) {
            // The parent of each new directory must be synced, too. The last sync of each new entry is a full one.
            var made = [root]
            while let path = made.last, path != "/", !FileManager.default.fileExists(atPath: path) {
                made.append((path as NSString).deletingLastPathComponent)
            }
            for name in ["entries", "dead", "errors", "tries", "outputs", "uploads", "unique", "undo", "tmp"] {
                try files.makeDirectory(root + "/" + name)
            }
            for path in made {
                // A directory above the root may not be accessible to this user.
                do { try files.sync(path, isLast: false) } catch POSIXError.EACCES where path != root {}
            }
            #if canImport(Darwin)
            // If a backup restored a delivered entry, its request would be sent again.
            var (url, values) = (directory, URLResourceValues())
            values.isExcludedFromBackup = true
            try url.setResourceValues(values)
            #endif
            // Other processes watch this file. Without it they find changes later.
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

    /// Returns the names of entries in their order. If an entry is added while the directory is listed, the list can
    /// miss it and still contain a newer one.
    func list(_ place: Place) throws(NetworkError) -> [OutboxName] {
        try attempt { try files.list(path(place.rawValue)).compactMap { OutboxName($0) } }
            .sorted { $0.sequence < $1.sequence }
    }

    /// Returns the names of the entries in their order. The list contains every entry that was added before one of its
    /// entries.
    func wholeList() throws(NetworkError) -> [OutboxName] {
        try attempt {
            var known = Set(try files.list(path("entries")))
            var names = known.compactMap { OutboxName($0) }.sorted { $0.sequence < $1.sequence }
            // An entry that a listing missed while the directory changed is in the next listing.
            while true {
                let new = try files.list(path("entries")).filter { known.insert($0).inserted }
                let late = new.compactMap { OutboxName($0) }
                let newest = names.last?.sequence ?? 0
                if !late.contains(where: { $0.sequence < newest }) { return names }
                names = (names + late).sorted { $0.sequence < $1.sequence }
            }
        }
    }

    /// Writes an entry. When the method returns, the entry survives a crash of the machine.
    ///
    /// - Parameter attachments: the files of the body, by their names in the outbox.
    func add(_ name: OutboxName, _ record: OutboxRecord, _ attachments: [String: URL]) throws(NetworkError) {
        let (temporary, addedAt) = (newTemporary(), record.addedAt)
        do throws(NetworkError) {
            try attempt {
                let pieces = try Self.pieces(of: record)
                var record = temporary
                if !attachments.isEmpty {
                    try files.makeDirectory(temporary)
                    record += "/record"
                    for (name, file) in attachments {
                        try files.link(file.path, to: temporary + "/" + name)
                        try files.sync(temporary + "/" + name, isLast: false)
                    }
                }
                // The file's date is `addedAt`, so the date can be read without opening the record.
                try files.create(record, pieces, usedAt: addedAt)
                try files.sync(record, isLast: false)
                if !attachments.isEmpty { try files.sync(temporary, isLast: false) }
                try files.rename(temporary, to: path(.entries, name))
                try files.sync(path("entries"), isLast: true)
            }
        } catch {
            // The entry is at one of these two paths. If it can't be discarded now, the next outbox to start removes
            // it.
            discard(path(.entries, name))
            discard(temporary)
            throw error
        }
    }

    /// Returns the contents of an entry's file.
    static func pieces(of record: OutboxRecord) throws -> [Data] {
        let json = try JSONEncoder().encode(record)
        return [Data((digest(json) + "\n").utf8), json]
    }

    /// - Throws: ``/EasyNetwork/NetworkError/Code/cannotParseResponse`` if the file is damaged,
    ///   ``/EasyNetwork/NetworkError/Code/cancelled`` if the entry is no longer in this place.
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

    /// Returns whether a link, directory, pipe or the like was found where a regular file should be.
    private static func isStranger(_ error: any Error) -> Bool {
        (error as? POSIXError).map { [.ELOOP, .EISDIR, .ENXIO, .EMLINK].contains($0.code) } ?? false
    }

    /// Returns the files of a body in the outbox, by their paths in the body.
    ///
    /// Files are matched by their order, because a path can have changed since the request was added, as on iOS after
    /// an update.
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

    /// Returns the files of an entry, by their names in another entry.
    func attachments(of name: OutboxName, _ count: Int) -> [String: URL] {
        let names = (0..<count).map(Self.attachment)
        return Dictionary(names.map { ($0, URL(fileURLWithPath: path(.entries, name) + "/" + $0)) }) { first, _ in first
        }
    }

    /// Returns the name of a file of the body.
    static func attachment(_ index: Int) -> String { "file\(index)" }

    // MARK: - Moves

    /// Runs a closure while no other outbox of the directory moves entries between `entries` and `dead`. An entry that
    /// is found in one of the two directories stays there meanwhile, and an entry that is in neither has left. The
    /// method waits until other outboxes have finished their moves.
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

    /// Removes an entry or a dead letter. Call this method within ``alone(_:)``.
    func remove(_ name: OutboxName) throws(NetworkError) {
        if try !remove(name, from: .entries) { try remove(name, from: .dead) }
    }

    /// Removes an entry in one step.
    ///
    /// - Returns: false if the entry is no longer in this place.
    @discardableResult
    func remove(_ name: OutboxName, from place: Place) throws(NetworkError) -> Bool {
        let temporary = newTemporary()
        // If the rename fails, a dead letter keeps its reason. An entry's reason is a leftover that no other call would
        // remove.
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
        // The entry may have failed, and recorded a try, in the meantime.
        forgetTries(of: name.id)
        discard(upload(name.id))
        discard(temporary)
        return true
    }

    /// Takes back an entry whose addition has failed. Call this method within ``alone(_:)``.
    func takeBack(_ name: OutboxName) {
        // A full disk can refuse a rename, which may enlarge a directory, but no removal.
        do { try remove(name) } catch { discard(path(.entries, name)) }
    }

    /// Makes an entry a dead letter. Call this method within ``alone(_:)``.
    func makeDeadLetter(_ name: OutboxName, _ error: NetworkError) throws(NetworkError) {
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
                    // Another call was faster: the entry is already a dead letter, or was removed.
                    if !exists(path(.dead, name)) { discard(reason(name.id)) }
                }
            }
        } catch {
            discard(temporary)
            discard(reason(name.id))
            throw error
        }
    }

    /// Makes a dead letter an entry again. Once other processes can know about the entry, the caller forgets its
    /// reason. Call this method within ``alone(_:)``.
    ///
    /// - Returns: the entry's name, or `nil` if there is no such dead letter. If the dead letter's number was out of
    ///   range, the name has a new number.
    func revive(_ name: OutboxName) throws(NetworkError) -> OutboxName? {
        let newName = name.isInOrder ? name : name.numbered(try nextSequence(after: lastSequence()))
        return try attempt {
            do { try files.rename(path(.dead, name), to: path(.entries, newName)) } catch POSIXError.ENOENT {
                return nil
            }
            return newName
        }
    }

    /// Forgets why an entry was a dead letter, unless it is still one. Call this method within ``alone(_:)``.
    func forgetReason(of name: OutboxName) {
        if has(name) { discard(reason(name.id)) }
    }

    func has(_ name: OutboxName) -> Bool { exists(path(.entries, name)) }

    /// Returns the date on which an entry was added, or `nil` if the entry has left.
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

    /// Makes an entry due at a date.
    func retryNow(_ id: UUID, at date: Date) {
        guard var tries = tries(of: id) else { return }
        tries.next = date
        note(tries, of: id)
    }

    /// Stores the tries of an entry without syncing them. If they are lost, by a full disk or a loss of power, the
    /// entry is tried earlier, or once more than allowed.
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

    // MARK: - Uploads

    /// Returns the path of the journal of an entry's upload.
    func upload(_ id: UUID) -> String { path("uploads/" + id.uuidString) }

    /// Removes the journal of an upload, unless its entry is still there or is a dead letter.
    func discardUpload(of name: OutboxName) {
        if !has(name), !exists(path(.dead, name)) { discard(upload(name.id)) }
    }

    // MARK: - Outputs

    /// Stores the output of a delivered entry for at least a day, and as long as entries depend on it.
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

    /// Returns the outputs of entries, `nil` for an entry without output.
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

    /// Changes which entries share a name while no other process does. The method waits for other processes' changes,
    /// each of which takes as long as writing an entry.
    ///
    /// - Parameter change: receives the entries that have not left, and returns the new ones.
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

    /// Returns whether an entry is a dead letter, or was one and its reason has not been forgotten yet.
    func hasReason(_ id: UUID) -> Bool { exists(reason(id)) }

    /// Returns whether a file exists. Links are not followed, so a link without a target exists.
    private func exists(_ path: String) -> Bool {
        (try? FileManager.default.attributesOfItem(atPath: path)) != nil
    }

    /// Returns why an entry is a dead letter, or `nil` if the reason cannot be read.
    func failure(of id: UUID) -> NetworkError? {
        guard let data = try? files.read(reason(id), count: { size in size }).0 else { return nil }
        return (try? JSONDecoder().decode(OutboxFailure.self, from: data))?.error
    }

    // MARK: - Processes

    /// - Returns: the directory's lock, or `nil` while another process, or another outbox of this process, delivers.
    func lock() throws(NetworkError) -> Lock? {
        try attempt { try Lock.take(root) }
    }

    /// Tries to take the lock. The method keeps a descriptor that did not get the lock, because closing it would notify
    /// the processes that wait.
    ///
    /// - Parameter lock: the lock of the last attempt. It is replaced if it isn't a lock of this directory.
    /// - Returns: whether the lock is held.
    func take(_ lock: inout Lock?) -> Bool {
        if lock?.isAt(root) != true { lock = try? Lock.open(root) }
        return (try? lock?.take()) ?? false
    }

    /// Appends bytes to a file whose length is a counter, in one step and without a lock.
    ///
    /// - Returns: the new count.
    private func count(_ name: String, by number: Int = 1) throws -> UInt64 {
        let (descriptor, status) = try RegularFile.open(path(name), O_WRONLY | O_APPEND | O_CREAT)
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        // A damaged file can be too long to count further.
        guard status.st_size < OutboxSequence.countLimit else { return OutboxSequence.countLimit }
        try file.write(contentsOf: Data(count: number))
        return try file.offset()
    }

    /// Returns the greatest number of an entry or dead letter, leaving out numbers that are out of range. 0 if there is
    /// none.
    func lastSequence() throws(NetworkError) -> UInt64 {
        // A new entry with the number of a dead letter would count as the next period of that one.
        let names = try list(.entries) + list(.dead)
        return names.lazy.map(\.sequence).filter { $0 < OutboxSequence.baseLimit }.max() ?? 0
    }

    /// Returns the next number in the order of entries.
    ///
    /// - Parameter minimum: ``lastSequence()``. Defaults to `nil`: the file is known to count from above that number.
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

    /// Returns the number at which the file starts to count, or `nil` if it cannot be read. Creates the file if there
    /// is none.
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
        // Another outbox may have created the file first.
        guard link(temporary, path("sequence")) == 0 || errno == EEXIST else {
            throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO)
        }
    }

    /// Notifies the outbox that delivers of a change. A missing file is created.
    func signalChange() {
        _ = try? count("changes")
    }

    /// The number of calls of ``signalChange()`` so far, by all processes.
    var changes: Int { (try? files.look(path("changes")))??.size ?? 0 }

    /// Removes files that processes left behind when they were killed while writing.
    func sweep() {
        for name in (try? files.list(path("tmp"))) ?? [] where path("tmp/" + name) != scratch.path {
            Scratch.sweep(path("tmp/" + name))
        }
        // Remove leftovers that belong to no entry. Most often there are none.
        for folder in ["errors", "tries", "uploads"] {
            let places: [Place] = folder == "errors" ? [.dead] : [.entries, .dead]
            let names = (try? files.list(path(folder))) ?? []
            guard !names.isEmpty, let kept = try? places.flatMap({ try files.list(path($0.rawValue)) }) else {
                continue
            }
            let ids = Set(kept.map { $0.dropFirst(17).prefix(36) })
            for name in names where !ids.contains(name[...]) {
                // A recent file can belong to an entry that another process has just added, or is making a dead letter.
                let path = path(folder + "/" + name)
                if let status = try? files.look(path), status.usedAt < Date() - 60 { discard(path) }
            }
        }
        sweepOutputs()
    }

    // MARK: - Paths

    func path(_ name: String) -> String { root + "/" + name }

    func path(_ place: Place, _ name: OutboxName) -> String { path(place.rawValue + "/" + name.text) }

    private func reason(_ id: UUID) -> String { path("errors/" + id.uuidString) }

    /// Removes a file or directory if it exists.
    func discard(_ path: String) {
        try? FileManager.default.removeItem(atPath: path)
    }

    private static func digest(_ data: Data) -> String { SHA256.digest(of: data).base64EncodedString() }

    func newTemporary() -> String { scratch.path + "/" + UUID().uuidString }

    func attempt<Result>(_ work: () throws -> Result) throws(NetworkError) -> Result {
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
