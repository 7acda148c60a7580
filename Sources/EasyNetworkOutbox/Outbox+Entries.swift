import EasyNetwork
import Foundation

/// The entries of the directory.
extension Outbox {
    /// Writes a request to disk, to be sent when its turn comes. It returns when the request is safe: written, synced
    /// and in its place. It writes on this thread, for some milliseconds; with large files that have to be copied use
    /// ``addInBackground(_:lane:priority:after:options:)``.
    ///
    /// Files of the request's body, also in a form, are linked into the outbox, or copied where the file system has no
    /// links, so that they may be removed. A file that is changed in place afterwards, instead of replaced, is changed
    /// here too.
    ///
    /// - Parameters:
    ///   - request: of a registered type. The outbox sets its `Idempotency-Key`.
    ///   - lane: entries of a lane are delivered in the order in which they were added. Any text of up to 80 letters
    ///     and digits, `-` and `_`; each other byte counts as three. Default nil: in no order.
    ///   - priority: of the entry's job, and of its lane while it is the first of that. Default normal.
    ///   - after: entries that must be delivered first. If one of them becomes a dead letter, so does this one, with
    ///     ``/EasyNetwork/NetworkError/Code/dependencyFailed``.
    ///   - options: when and how it is sent. A field that is nil is as its type was registered.
    /// - Returns: the id of the entry; with ``OutboxOptions/Unique/keep(_:)`` that of the one which stays.
    /// - Throws: ``/EasyNetwork/NetworkError/Code/invalidRequest`` for a type that is not registered, a name or lane
    ///   that is too long, options that cannot be meant, a request that cannot be encoded or whose files cannot be
    ///   read; ``/EasyNetwork/NetworkError/Code/refused`` when the outbox is full or `after` names a dead letter;
    ///   ``/EasyNetwork/NetworkError/Code/cannotWriteFile`` when it could not be written. Then there is no entry.
    @discardableResult
    public func add<Request: APIRequest & Codable>(
        _ request: Request,
        lane: String? = nil,
        priority: Operation.QueuePriority = .normal,
        after: [UUID] = [],
        options: OutboxOptions = OutboxOptions()
    ) throws(NetworkError) -> UUID {
        let registered = state.withLock { state in
            state.names[ObjectIdentifier(Request.self)].flatMap { name in state.types[name].map { (name, $0) } }
        }
        guard let (typeName, type) = registered else {
            throw NetworkError(
                code: .invalidRequest,
                message: "register \(Request.self) before it is added to an outbox"
            )
        }
        let options = options.over(type.options)
        try OutboxName.check(typeName, "name of the type")
        if let lane { try OutboxName.check(lane, "lane") }
        try options.check(lane: lane)
        let data = try RequestBody.encode(request, as: "an entry of an outbox") { try JSONEncoder().encode($0) }
        if let dead = try firstDeadLetter(in: after) {
            throw NetworkError(code: .refused, message: "the entry \(dead), which comes first, is a dead letter")
        }
        var (paths, attachments): (Set<String>, [String: URL]) = ([], [:])
        _ = try RequestBuilder.body(of: request.body)?.build { url throws(NetworkError) in
            if paths.insert(url.path).inserted {
                _ = try TransportBody.file(url).length()
                attachments[OutboxFolder.attachment(attachments.count)] = url.resolvingSymlinksInPath()
            }
            return url
        }
        let now = clock.date
        var (id, replaced) = (UUID.make(), [UUID]())
        func place(after: [UUID]) throws(NetworkError) -> OutboxName {
            // One that replaces others adds nothing, even where another process has gone beyond the limit.
            if maximumCount < .max, replaced.isEmpty, try count >= maximumCount {
                throw NetworkError(
                    code: .refused,
                    message: "the outbox has \(maximumCount) entries, which is its limit"
                )
            }
            let name = OutboxName(
                sequence: try nextSequence(),
                id: id,
                priority: JobPriority(priority),
                hasDependencies: !after.isEmpty,
                hasOptions: options != OutboxOptions(),
                type: typeName,
                lane: lane
            )
            let record = OutboxRecord(
                version: type.version,
                addedAt: now,
                after: after,
                fileCount: attachments.count,
                request: data,
                options: name.hasOptions ? options : nil,
                begin: options.notBefore ?? (options.period == nil ? nil : now)
            )
            try folder.add(name, record, attachments)
            return name
        }
        guard let unique = options.unique else {
            let name = try place(after: after)
            announce(name, after: after, options)
            return id
        }
        var (added, after): (OutboxName?, [UUID]) = (nil, after)
        do throws(NetworkError) {
            try folder.changeUnique(unique.name) { names throws(NetworkError) in
                switch unique {
                case .keep:
                    if let last = names.last {
                        id = last.id
                        return names
                    }
                case .replace: replaced = names.map(\.id)
                case .append: if let last = names.last, !after.contains(last.id) { after.append(last.id) }
                }
                let name = try place(after: after)
                added = name
                return replaced.isEmpty ? names + [name] : [name]
            }
            // A new one is there first, so that a kill loses neither.
            if let added { announce(added, after: after, options) }
            try remove(replaced)
        } catch {
            // Then there is no entry.
            if let added {
                try? folder.alone { () throws(NetworkError) in try folder.remove(added) }
                post(.removed(added.id), onCallersThread: true)
            }
            throw error
        }
        return id
    }

    /// Writes a request to disk as ``add(_:lane:priority:after:options:)`` does, with the same parameters and errors,
    /// but on a background thread: large files may have to be copied. A task that is cancelled before adds nothing.
    ///
    /// - Returns: the id of the entry.
    /// - Throws: ``/EasyNetwork/NetworkError/Code/cancelled``, too.
    @discardableResult
    public func addInBackground<Request: APIRequest & Codable>(
        _ request: Request,
        lane: String? = nil,
        priority: Operation.QueuePriority = .normal,
        after: [UUID] = [],
        options: OutboxOptions = OutboxOptions()
    ) async throws(NetworkError) -> UUID {
        if Task.isCancelled { throw NetworkError(code: .cancelled) }
        let result = await withCheckedContinuation { continuation in
            WorkQueue.shared.add {
                let result = Result { () throws(NetworkError) in
                    try self.add(request, lane: lane, priority: priority, after: after, options: options)
                }
                continuation.resume(returning: result)
            }
        }
        return try result.get()
    }

    /// Tells of an entry that is in the directory now.
    func announce(_ name: OutboxName, after: [UUID], _ options: OutboxOptions) {
        tell(.added(name.id), options)
        post(.added(name, after: after, changes: folder.changes), onCallersThread: true)
    }

    private func firstDeadLetter(in ids: [UUID]) throws(NetworkError) -> UUID? {
        guard let found = ids.first(where: folder.hasReason) else { return nil }
        // A letter that is an entry again may have its reason for a moment, or since a program was killed.
        return try folder.list(.entries).contains { $0.id == found } ? nil : found
    }

    /// Greater than that of every entry whose ``add(_:lane:priority:after:options:)`` has returned, in any process.
    private func nextSequence() throws(NetworkError) -> UInt64 {
        if state.withLock({ $0.hasSequence }) { return try folder.nextSequence() }
        let number = try folder.nextSequence(after: folder.lastSequence())
        state.withLock { $0.hasSequence = true }
        return number
    }

    private var count: Int {
        get throws(NetworkError) {
            if let count = state.withLock({ $0.logic.count }) { return count }
            return try folder.list(.entries).count
        }
    }

    // MARK: - Lists

    /// The entries that wait or are being sent, in their order, those of other processes included. Read from the
    /// directory.
    ///
    /// - Throws: ``/EasyNetwork/NetworkError/Code/cannotWriteFile`` when it cannot be read.
    public var entries: [OutboxEntry] {
        get throws(NetworkError) {
            let names = try folder.list(.entries)
            let tried = folder.tried
            let known = state.withLock { state in
                names.map { name in
                    let entry = state.entries[name.id]
                    let waits = entry?.job.map { !$0.isExecuting && !$0.isFinished } ?? false
                    return (isSending: state.logic.isUnderWay(name.id) && !waits, error: entry?.error)
                }
            }
            let now = clock.date
            return zip(names, known).map { name, known in
                var entry = entry(name, .entries, now: now)
                entry.isSending = known.isSending
                if tried.contains(name.id), let tries = folder.tries(of: name.id) {
                    (entry.attemptCount, entry.error) = (tries.count, tries.failure.error)
                    let next = now + tries.wait(at: now)
                    entry.nextTry = max(next, entry.nextTry ?? next)
                }
                // With what was not kept on disk.
                if let error = known.error { entry.error = error }
                return entry
            }
        }
    }

    /// The entries with a tag, see ``entries`` and ``OutboxOptions/tags``; without dead letters.
    public func entries(tag: String) throws(NetworkError) -> [OutboxEntry] {
        try entries.filter { $0.options.tags.contains(tag) }
    }

    /// The entries that failed for good, in their order, each with its error. Read from the directory.
    ///
    /// - Throws: ``/EasyNetwork/NetworkError/Code/cannotWriteFile`` when it cannot be read.
    public var deadLetters: [OutboxEntry] {
        get throws(NetworkError) {
            let (tried, now) = (folder.tried, clock.date)
            return try folder.list(.dead).map { name in
                var entry = entry(name, .dead, now: now)
                entry.nextTry = nil
                entry.error = folder.failure(of: name.id)
                if tried.contains(name.id) { entry.attemptCount = folder.tries(of: name.id)?.count ?? 0 }
                return entry
            }
        }
    }

    private func entry(_ name: OutboxName, _ place: OutboxFolder.Place, now: Date) -> OutboxEntry {
        var entry = OutboxEntry(name, addedAt: folder.date(of: name, in: place))
        guard name.hasOptions else { return entry }
        let record: OutboxRecord
        do throws(NetworkError) {
            record = try folder.read(name, in: place)
        } catch {
            // It has left since its date was read. Otherwise the file is damaged.
            if error.code == .cancelled { entry.addedAt = nil }
            return entry
        }
        guard let options = record.options else { return entry }
        entry.options = options
        if let due = record.due(at: now), due > now { entry.nextTry = due }
        return entry
    }

    /// The request of an entry, as it was added or as its type's `migrate` makes it: to show or to examine it.
    ///
    /// - Throws: ``/EasyNetwork/NetworkError/Code/cannotParseResponse`` for a damaged file,
    ///   ``/EasyNetwork/NetworkError/Code/invalidRequest`` for a type that is not registered,
    ///   ``/EasyNetwork/NetworkError/Code/cancelled`` when the entry has left.
    public func request(of entry: OutboxEntry) throws(NetworkError) -> any APIRequest {
        let place: OutboxFolder.Place = folder.has(entry.name) ? .entries : .dead
        return try request(in: try folder.read(entry.name, in: place), of: entry.type)
    }

    // MARK: - Changes

    /// Removes an entry or a dead letter; does nothing when there is none. An entry that is being sent is cancelled,
    /// but may have been sent. Entries that depend on it become dead letters.
    ///
    /// - Throws: ``/EasyNetwork/NetworkError/Code/cannotWriteFile``. Then it is still there.
    public func remove(_ id: UUID) throws(NetworkError) {
        try remove([id])
    }

    /// Removes entries and dead letters, see ``remove(_:)-(UUID)``: many at the cost of one look at the directory.
    ///
    /// - Throws: ``/EasyNetwork/NetworkError/Code/cannotWriteFile``. Then some of them are still there.
    public func remove(_ ids: some Collection<UUID>) throws(NetworkError) {
        let ids = Set(ids)
        guard !ids.isEmpty else { return }
        try remove { name, _ in ids.contains(name.id) }
    }

    /// Removes all entries and dead letters with a tag, see ``remove(_:)-(UUID)`` and ``OutboxOptions/tags``.
    ///
    /// ```swift
    /// func signOut(_ outbox: Outbox) throws { try outbox.remove(tag: "user 7") }
    /// ```
    ///
    /// - Throws: ``/EasyNetwork/NetworkError/Code/cannotWriteFile``. Then some of them are still there.
    public func remove(tag: String) throws(NetworkError) {
        try remove { name, place in
            guard name.hasOptions else { return false }
            do throws(NetworkError) {
                return try folder.read(name, in: place).options?.tags.contains(tag) ?? false
            } catch {
                return error.code == .cancelled ? nil : false
            }
        }
    }

    /// An entry that has left, with its options, and the reason if it has become a dead letter.
    private typealias Left = (id: UUID, options: OutboxOptions?, reason: NetworkError?)

    /// - Parameter isMeant: returns nil for an entry that has left.
    private func remove(where isMeant: (OutboxName, OutboxFolder.Place) -> Bool?) throws(NetworkError) {
        var left: [Left] = []
        // Outside the lock, as others are called.
        defer {
            for (id, options, reason) in left {
                tell(reason.map { .died(id, $0) } ?? .removed(id), options)
                if reason == nil { forget(id) }
                post(.removed(id), onCallersThread: true)
            }
        }
        try folder.alone { () throws(NetworkError) in try remove(where: isMeant, &left) }
    }

    private func remove(
        where isMeant: (OutboxName, OutboxFolder.Place) -> Bool?,
        _ left: inout [Left]
    ) throws(NetworkError) {
        var (entries, found) = ([OutboxName](), [OutboxName]())
        var late = try folder.list(.entries)
        let last = late.last?.sequence ?? 0
        while !late.isEmpty {
            entries += late
            var mayHaveNext = false
            for name in late {
                guard let verdict = isMeant(name, .entries) else {
                    mayHaveNext = true
                    continue
                }
                if verdict { found.append(name) }
            }
            guard mayHaveNext else { break }
            // One that was delivered before it was read may have left its next period, which has its number.
            let known = Set(entries)
            late = try folder.list(.entries).filter { $0.sequence <= last && !known.contains($0) }
        }
        let dead = try folder.list(.dead).filter { isMeant($0, .dead) ?? false }
        guard !found.isEmpty || !dead.isEmpty else { return }
        // The next period of an entry goes with it.
        let series = Set(found.filter(\.hasOptions).map(\.sequence))
        let isNext = { (name: OutboxName) in name.hasOptions && series.contains(name.sequence) }
        let ids = Set((found + dead + entries.filter(isNext)).map(\.id))
        // Before: once it has left, they would be sent.
        let error = NetworkError(code: .cancelled, message: "it was removed")
        for name in entries where name.hasDependencies && !ids.contains(name.id) {
            guard let record = try? folder.read(name), let first = record.after.first(where: ids.contains) else {
                continue
            }
            let reason = Self.dependencyFailed(first, error)
            try folder.bury(name, reason)
            left.append((name.id, record.options, reason))
        }
        for name in found { try remove(name, from: .entries, &left) }
        for name in dead { try remove(name, from: .dead, &left) }
        // A period may have begun by now.
        while !series.isEmpty, case let rest = try folder.list(.entries).filter(isNext), !rest.isEmpty {
            for name in rest { try remove(name, from: .entries, &left) }
        }
    }

    private func remove(
        _ name: OutboxName,
        from place: OutboxFolder.Place,
        _ left: inout [Left]
    ) throws(NetworkError) {
        let options = name.hasOptions ? (try? folder.read(name, in: place))?.options : nil
        if let unique = options?.unique, place == .entries {
            // Its next period must not be added in between.
            try folder.changeUnique(unique.name) { names throws(NetworkError) in
                try folder.remove(name, from: place)
                return names.filter { $0 != name }
            }
        } else {
            try folder.remove(name, from: place)
        }
        left.append((name.id, options, nil))
    }

    /// Makes a dead letter an entry again, at its old place in its lane, and with it the ones that failed since they
    /// depend on it. Its tries are counted from the beginning. An entry that waits after a failure is tried at once, if
    /// this process delivers.
    ///
    /// - Throws: ``/EasyNetwork/NetworkError/Code/cannotWriteFile``. Then it is still a dead letter, or some that
    ///   depend on it are.
    public func retry(_ id: UUID) throws(NetworkError) {
        try retry([id])
    }

    /// Retries entries and dead letters, see ``retry(_:)-(UUID)``: many at the cost of one look at the directory.
    ///
    /// - Throws: ``/EasyNetwork/NetworkError/Code/cannotWriteFile``. Then some of them are still dead letters.
    public func retry(_ ids: some Collection<UUID>) throws(NetworkError) {
        let ids = Set(ids)
        guard !ids.isEmpty else { return }
        var (rest, revived): (Set<UUID>, [Revived]) = (ids, [])
        // Outside the lock, as others are called. The reasons last: those that depend on it find that it is an entry.
        defer {
            for (name, record) in revived {
                forget(name.id)
                tell(.retried(name.id), record?.options)
                post(.added(name, after: record?.after ?? [], changes: folder.changes), onCallersThread: true)
            }
            if !revived.isEmpty { try? folder.alone { for (name, _) in revived { folder.forgetReason(of: name) } } }
        }
        try folder.alone { () throws(NetworkError) in
            let dead = try folder.list(.dead)
            let found = dead.filter { ids.contains($0.id) }
            rest.subtract(found.map(\.id))
            if !found.isEmpty { try revive(found, of: dead, &revived) }
        }
        for id in rest {
            folder.hasten(id, at: clock.date)
            post(.hastened(id), onCallersThread: true)
        }
    }

    /// Forgets the tries and the options of an entry, which may be under way.
    private func forget(_ id: UUID) {
        let old = state.withLock { state in
            let old = state.entries.removeValue(forKey: id)
            if state.logic.isUnderWay(id) { state.entries[id] = old.map { Entry(phase: $0.phase) } }
            return old
        }
        withExtendedLifetime(old) {}
    }

    /// A dead letter that is an entry again, with its record if that says more than its name.
    private typealias Revived = (name: OutboxName, record: OutboxRecord?)

    /// Makes dead letters entries again, and those that failed since they depend on them.
    private func revive(
        _ found: [OutboxName],
        of dead: [OutboxName],
        _ revived: inout [Revived]
    ) throws(NetworkError) {
        var dependents: [UUID: [OutboxName]] = [:]
        for name in dead where name.hasDependencies && folder.failure(of: name.id)?.code == .dependencyFailed {
            guard let record = try? folder.read(name, in: .dead) else { continue }
            for id in record.after { dependents[id, default: []].append(name) }
        }
        // In their order, and one that depends on two of them once.
        var (row, known) = (found[...], Set<UUID>())
        while let name = row.popFirst() {
            guard known.insert(name.id).inserted else { continue }
            if let entry = try revive(name) { revived.append(entry) }
            row += dependents.removeValue(forKey: name.id) ?? []
        }
    }

    private func revive(_ name: OutboxName) throws(NetworkError) -> Revived? {
        let needsRecord = name.hasDependencies || name.hasOptions
        let record = needsRecord ? try? folder.read(name, in: .dead) : nil
        // Before others may send it. Its tries are counted from the beginning.
        folder.forgetTries(of: name.id)
        var entry: OutboxName?
        if let options = record?.options, let unique = options.unique {
            try folder.changeUnique(unique.name) { names throws(NetworkError) in
                entry = try folder.revive(name)
                // Another row of periods has begun: this one is sent, and ends.
                guard let entry, options.period == nil || names.isEmpty else { return names }
                return names + [entry]
            }
        } else {
            entry = try folder.revive(name)
        }
        return entry.map { ($0, record) }
    }
}
