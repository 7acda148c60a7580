import EasyNetwork
import Foundation

/// The entries of the directory.
extension Outbox {
    /// Writes a request to disk, to be sent when its turn comes. When the method returns, the request is written,
    /// synced and in its final place. It writes on the calling thread, which takes some milliseconds. If large files
    /// must be copied, use ``addInBackground(_:lane:priority:after:options:)``.
    ///
    /// Files of the request's body, including files in a form, are linked into the outbox, or copied if the file system
    /// has no links. You can delete the originals. If you change an original in place instead of replacing it, the
    /// outbox's file changes too.
    ///
    /// - Parameters:
    ///   - request: a request of a registered type. The outbox sets its `Idempotency-Key`.
    ///   - lane: entries of a lane are delivered in the order in which they were added. A lane's name has up to 80
    ///     letters, digits, `-` and `_`; each byte of other characters counts as three. Defaults to `nil`: no order.
    ///   - priority: the priority of the entry's job, and of its lane while the entry is the lane's first. Defaults to
    ///     `.normal`.
    ///   - after: entries that must be delivered first. If one of them becomes a dead letter, so does this one, with
    ///     ``/EasyNetwork/NetworkError/Code/dependencyFailed``.
    ///   - options: when and how the request is sent. For a field that is `nil`, the options of its type apply.
    /// - Returns: the id of the entry. With ``OutboxOptions/Unique/keep(_:)``, the id of the existing entry if there is
    ///   one.
    /// - Throws: ``/EasyNetwork/NetworkError/Code/invalidRequest`` if the type is not registered, a name or lane is too
    ///   long, the options are invalid, the request cannot be encoded, or its files cannot be read;
    ///   ``/EasyNetwork/NetworkError/Code/refused`` if the outbox is full or `after` contains a dead letter;
    ///   ``/EasyNetwork/NetworkError/Code/cannotWriteFile`` if the entry cannot be written. If the method throws, no
    ///   entry is added.
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
                message: "register \(Request.self) before adding a request of this type to an outbox"
            )
        }
        let options = options.over(type.options)
        try OutboxName.check(typeName, "name of the type")
        if let lane { try OutboxName.check(lane, "lane") }
        try options.check(lane: lane)
        let data = try RequestBody.encode(request, as: "an entry of an outbox") { try JSONEncoder().encode($0) }
        if let dead = try firstDeadLetter(in: after) {
            let message = "the entry \(dead) in after is a dead letter; retry it before adding dependent entries"
            throw NetworkError(code: .refused, message: message)
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
        var (id, replaced) = (UUID.make(), [OutboxName]())
        func place(after: [UUID]) throws(NetworkError) -> OutboxName {
            // An entry that replaces others adds nothing, even if another process has exceeded the limit.
            if maximumCount < .max, replaced.isEmpty, try count >= maximumCount {
                throw NetworkError(
                    code: .refused,
                    message: "the outbox is full: it already has \(maximumCount) entries, its maximumCount"
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
                case .replace: replaced = names
                case .append: if let last = names.last, !after.contains(last.id) { after.append(last.id) }
                }
                let name = try place(after: after)
                added = name
                return replaced.isEmpty ? names + [name] : [name]
            }
            // The new entry is added before the replaced ones are removed, so that a kill loses neither.
            if let added { announce(added, after: after, options) }
            try remove(replaced.map(\.id))
        } catch {
            // A failed add must leave no entry.
            if let added {
                try? folder.alone { folder.takeBack(added) }
                // The replaced entries that are still there have their name again.
                if !replaced.isEmpty { try? folder.changeUnique(unique.name) { replaced + $0 } }
                post(.removed(added.id), onCallersThread: true)
            }
            throw error
        }
        return id
    }

    /// Writes a request to disk as ``add(_:lane:priority:after:options:)`` does, with the same parameters and errors,
    /// but on a background thread, because copying large files can take long. If the task is cancelled before the call,
    /// nothing is added.
    ///
    /// - Returns: the id of the entry.
    /// - Throws: the errors of ``add(_:lane:priority:after:options:)``, and
    ///   ``/EasyNetwork/NetworkError/Code/cancelled``.
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

    /// Posts the event of an entry that is now in the directory.
    func announce(_ name: OutboxName, after: [UUID], _ options: OutboxOptions) {
        tell(.added(name.id), options)
        post(.added(name, after: after, changes: folder.changes), onCallersThread: true)
    }

    private func firstDeadLetter(in ids: [UUID]) throws(NetworkError) -> UUID? {
        guard let found = ids.first(where: folder.hasReason) else { return nil }
        // A revived dead letter can keep its reason for a moment, or for longer if the process was killed.
        return try folder.list(.entries).contains { $0.id == found } ? nil : found
    }

    /// Returns a number greater than the number of every entry whose ``add(_:lane:priority:after:options:)`` has
    /// returned, in any process.
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

    /// The entries that wait or are being sent, in their order, including entries of other processes. Each access reads
    /// the directory.
    ///
    /// - Throws: ``/EasyNetwork/NetworkError/Code/cannotWriteFile`` if the directory cannot be read.
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
                // The error in memory has more details than the error on disk.
                if let error = known.error { entry.error = error }
                return entry
            }
        }
    }

    /// Returns the ``entries`` with a tag, without dead letters. See ``OutboxOptions/tags``.
    public func entries(tag: String) throws(NetworkError) -> [OutboxEntry] {
        try entries.filter { $0.options.tags.contains(tag) }
    }

    /// The entries that failed for good, in their order, each with its error. Each access reads the directory.
    ///
    /// - Throws: ``/EasyNetwork/NetworkError/Code/cannotWriteFile`` if the directory cannot be read.
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
            // The entry has left since its date was read. Otherwise its file is damaged.
            if error.code == .cancelled { entry.addedAt = nil }
            return entry
        }
        guard let options = record.options else { return entry }
        entry.options = options
        if let due = record.due(at: now), due > now { entry.nextTry = due }
        return entry
    }

    /// Returns the request of an entry, to show or examine it. It is decoded as it was added, or as its type's
    /// `migrate` makes it.
    ///
    /// - Throws: ``/EasyNetwork/NetworkError/Code/cannotParseResponse`` if the file is damaged,
    ///   ``/EasyNetwork/NetworkError/Code/invalidRequest`` if the type is not registered or decoding fails,
    ///   ``/EasyNetwork/NetworkError/Code/cancelled`` if the entry has left the outbox.
    public func request(of entry: OutboxEntry) throws(NetworkError) -> any APIRequest {
        let place: OutboxFolder.Place = folder.has(entry.name) ? .entries : .dead
        return try request(in: try folder.read(entry.name, in: place), of: entry.type)
    }

    // MARK: - Changes

    /// Removes an entry or a dead letter. If there is none with this id, the method does nothing. An entry that is
    /// being sent is cancelled, but its request may have been sent. Entries that depend on the entry become dead
    /// letters.
    ///
    /// - Throws: ``/EasyNetwork/NetworkError/Code/cannotWriteFile``. The entry is then still in the outbox.
    public func remove(_ id: UUID) throws(NetworkError) {
        try remove([id])
    }

    /// Removes entries and dead letters as ``remove(_:)-(UUID)`` does, but reads the directory only once for all of
    /// them.
    ///
    /// - Throws: ``/EasyNetwork/NetworkError/Code/cannotWriteFile``. Some of the entries are then still in the outbox.
    public func remove(_ ids: some Collection<UUID>) throws(NetworkError) {
        let ids = Set(ids)
        guard !ids.isEmpty else { return }
        try remove { name, _ in ids.contains(name.id) }
    }

    /// Removes all entries and dead letters with a tag. See ``remove(_:)-(UUID)`` and ``OutboxOptions/tags``.
    ///
    /// ```swift
    /// func signOut(_ outbox: Outbox) throws { try outbox.remove(tag: "user 7") }
    /// ```
    ///
    /// - Throws: ``/EasyNetwork/NetworkError/Code/cannotWriteFile``. Some of the entries are then still in the outbox.
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

    /// An entry that has left the directory or become a dead letter, with its options, and with the reason if it has
    /// become a dead letter.
    private typealias Left = (id: UUID, options: OutboxOptions?, reason: NetworkError?)

    /// - Parameter isMeant: returns whether to remove an entry; `nil` if the entry has left.
    private func remove(where isMeant: (OutboxName, OutboxFolder.Place) -> Bool?) throws(NetworkError) {
        var left: [Left] = []
        // Events are posted after the lock is released, because posting runs other code.
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
            // An entry that was delivered before it was read may have added its next period, which has the same number.
            let known = Set(entries)
            late = try folder.list(.entries).filter { $0.sequence <= last && !known.contains($0) }
        }
        let dead = try folder.list(.dead).filter { isMeant($0, .dead) ?? false }
        guard !found.isEmpty || !dead.isEmpty else { return }
        // The next period of an entry is removed together with the entry.
        let series = Set(found.filter(\.hasOptions).map(\.sequence))
        let isNext = { (name: OutboxName) in name.hasOptions && series.contains(name.sequence) }
        let ids = Set((found + dead + entries.filter(isNext)).map(\.id))
        // Make the dependents dead letters first. Once the entry has left the directory, they would be sent.
        let error = NetworkError(code: .cancelled, message: "the entry was removed")
        for name in entries where name.hasDependencies && !ids.contains(name.id) {
            guard let record = try? folder.read(name), let first = record.after.first(where: ids.contains) else {
                continue
            }
            let reason = Self.dependencyFailed(first, error)
            try folder.makeDeadLetter(name, reason)
            left.append((name.id, record.options, reason))
        }
        for name in found { try remove(name, from: .entries, &left) }
        for name in dead { try remove(name, from: .dead, &left) }
        // The next period may have been added in the meantime.
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
            // The lock prevents the next period from being added during the removal.
            try folder.changeUnique(unique.name) { names throws(NetworkError) in
                try folder.remove(name, from: place)
                return names.filter { $0 != name }
            }
        } else {
            try folder.remove(name, from: place)
        }
        left.append((name.id, options, nil))
    }

    /// Makes a dead letter an entry again, at its old position in its lane, together with the dead letters that failed
    /// because they depend on it. Their failures are counted from zero again. An entry that waits after a failure is
    /// tried at once if this process delivers.
    ///
    /// - Throws: ``/EasyNetwork/NetworkError/Code/cannotWriteFile``. The entry, or some that depend on it, are then
    ///   still dead letters.
    public func retry(_ id: UUID) throws(NetworkError) {
        try retry([id])
    }

    /// Retries entries and dead letters as ``retry(_:)-(UUID)`` does, but reads the directory only once for all of
    /// them.
    ///
    /// - Throws: ``/EasyNetwork/NetworkError/Code/cannotWriteFile``. Some of the entries are then still dead letters.
    public func retry(_ ids: some Collection<UUID>) throws(NetworkError) {
        let ids = Set(ids)
        guard !ids.isEmpty else { return }
        var (rest, revived): (Set<UUID>, [Revived]) = (ids, [])
        // Events are posted after the lock is released, because posting runs other code. The reasons are forgotten
        // last: a dependent would be sent if its dependency had no reason and were not known as an entry yet.
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
            folder.retryNow(id, at: clock.date)
            post(.retryRequested(id), onCallersThread: true)
        }
    }

    /// Forgets the tries and options of an entry. If it is being delivered, its phase stays.
    private func forget(_ id: UUID) {
        let old = state.withLock { state in
            let old = state.entries.removeValue(forKey: id)
            if state.logic.isUnderWay(id) { state.entries[id] = old.map { Entry(phase: $0.phase) } }
            return old
        }
        withExtendedLifetime(old) {}
    }

    /// A dead letter that has become an entry again, with its record if it has dependencies or options.
    private typealias Revived = (name: OutboxName, record: OutboxRecord?)

    /// Makes dead letters entries again, together with the dead letters that failed because they depend on these.
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
        // The row keeps the order of the entries. `known` skips an entry that is reached through two dependencies.
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
        // The tries are forgotten before the move, after which another process can send the entry.
        folder.forgetTries(of: name.id)
        var entry: OutboxName?
        if let options = record?.options, let unique = options.unique {
            try folder.changeUnique(unique.name) { names throws(NetworkError) in
                entry = try folder.revive(name)
                // Another series of periods has begun in the meantime, so this entry is sent once and not repeated.
                guard let entry, options.period == nil || names.isEmpty else { return names }
                return names + [entry]
            }
        } else {
            entry = try folder.revive(name)
        }
        return entry.map { ($0, record) }
    }
}
