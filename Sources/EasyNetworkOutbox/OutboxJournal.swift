import EasyNetwork
import Foundation

extension GroupOperation {
    /// The outbox that keeps the undo requests of this batch or chain on disk, so that they survive a kill. Set it
    /// before the batch or chain is added to a queue. Defaults to `nil`: they are kept in memory.
    ///
    /// ```swift
    /// trip.undoneBy = outbox
    /// queue.addOperation(trip)
    /// ```
    ///
    /// Before a step is sent, the request that its ``/EasyNetwork/RequestOperation/undo`` returns for `.unknown` is
    /// written to the outbox's directory. When the step has succeeded, the request for `.succeeded` replaces it. Before
    /// a batch or chain succeeds, a record on disk says so, and its undo requests are removed. If that fails, the batch
    /// or chain fails, and is undone.
    ///
    /// If the process ends without that record, the outbox undoes the steps, last first, when it is started in another
    /// process. No step is continued or repeated. An undo that fails in this process is left to the outbox as well.
    /// Each of them is an ``OutboxEntry`` with the same `Idempotency-Key` as before, which is sent until the server
    /// accepts it, or becomes a dead letter. After its first failure it no longer holds up the other undos.
    ///
    /// Undo requests must be `Codable`, their bodies must contain no files, and their types must be registered with the
    /// outbox before this property is set. The closures of the present steps are called with `.unknown` to check this.
    /// If a request cannot be stored, or a closure returns `nil`, the batch or chain ends with
    /// ``/EasyNetwork/NetworkError/Code/invalidRequest`` and sends nothing. A step that is added later ends so itself.
    /// If only the request for `.succeeded` cannot be stored, the one for `.unknown` undoes the step.
    ///
    /// In a group of groups, set it for the outermost one, whose record then counts for all of them.
    public final var undoneBy: Outbox? {
        get { undoStore as? Outbox }
        set { undoStore = newValue }
    }
}

extension Outbox: UndoStore {
    package func checkUndo(_ request: any APIRequest) throws(NetworkError) {
        _ = try undoType(of: request)
    }

    private func undoType(of request: any APIRequest) throws(NetworkError) -> (String, RequestType) {
        let type = Swift.type(of: request)
        let registered = state.withLock { state in
            state.names[ObjectIdentifier(type)].flatMap { name in state.types[name].map { (name, $0) } }
        }
        guard let registered, request is any Codable else {
            throw .invalidRequest("undo returns a \(type): register this type with the outbox before setting undoneBy")
        }
        try OutboxName.check(registered.0, "name of the type")
        _ = try RequestBuilder.body(of: request.body)?.build { url throws(NetworkError) in
            throw .invalidRequest("undoneBy cannot store the file \(url.path) in the body of an undo request")
        }
        return registered
    }

    package func makeUndoJournal() throws(NetworkError) -> any UndoJournal {
        try OutboxJournal(self)
    }

    /// Returns the entry that undoes a step.
    fileprivate func undoEntry(
        _ request: any APIRequest,
        id: UUID,
        number: Int,
        journal: String
    ) throws(NetworkError) -> OutboxFolder.Entry {
        let (typeName, type) = try undoType(of: request)
        guard let value = request as? any Encodable else { throw .invalidRequest("the undo request is not Codable") }
        let data = try Self.encoded(value)
        // Other undos overtake one that has failed.
        let own = OutboxOptions(yieldsAfter: 1)
        var options = own.over(type.options)
        (options.unique, options.notBefore, options.period, options.flex) = (nil, nil, nil, nil)
        let name = OutboxName(
            sequence: UInt64(number),
            id: id,
            priority: .normal,
            hasDependencies: false,
            hasOptions: true,
            type: typeName,
            lane: "undo-" + journal
        )
        let record = OutboxRecord(
            version: type.version,
            addedAt: clock.date,
            after: [],
            fileCount: 0,
            request: data,
            options: options
        )
        return (name, record)
    }

    private static func encoded<Value: Encodable>(_ value: Value) throws(NetworkError) -> Data {
        try RequestBody.encode(value, as: "an undo request of an outbox") { try JSONEncoder().encode($0) }
    }

    /// Makes entries of the undo requests of groups whose process has ended before they were whole.
    func adoptJournals() {
        let names = folder.adoptJournals { path in OutboxJournal.all.withLock { $0.contains(path) } }
        for name in names { tell(.added(name.id), OutboxOptions()) }
    }
}

/// The undo requests of one group, in a directory of its own within the outbox's. The process that has the group holds
/// the lock of that directory.
///
/// Each request is stored as the entry that it will be if the outbox must send it, so that a rename makes it one. The
/// commit of the group is the rename that takes the directory away.
private final class OutboxJournal: UndoJournal {
    private struct State {
        var entries: [UUID: OutboxFolder.Entry] = [:]
        var forgotten: Set<UUID> = []
        var lastNumber = 0
        var isCommitted = false
        var lock: OutboxFolder.Lock?
    }

    /// The paths of the journals of this process. Where an outbox must not hold locks, they show which journals have an
    /// owner.
    static let all = Locked<Set<String>>([])

    private let outbox: Outbox
    private let name = UUID.make().uuidString
    private let state = Locked(State())

    private var path: String { outbox.folder.journal(name) }

    init(_ outbox: Outbox) throws(NetworkError) {
        self.outbox = outbox
        let path = path
        _ = Self.all.withLock { $0.insert(path) }
        // If this throws, `deinit` forgets the path.
        let lock = try outbox.folder.makeJournal(name, [])
        state.withLock { $0.lock = lock }
    }

    deinit {
        let (isDone, lock) = state.withLock { ($0.isCommitted || $0.entries.isEmpty, $0.lock.take()) }
        WorkQueue.shared.add { [folder = outbox.folder, name, path] in
            if isDone { folder.removeJournal(name) }
            withExtendedLifetime(lock) {}
            _ = Self.all.withLock { $0.remove(path) }
        }
    }

    func keep(_ request: any APIRequest, id: UUID) throws(NetworkError) {
        let number = state.withLock { state in
            if let known = state.entries[id] { return Int(known.name.sequence) }
            state.lastNumber += 1
            return state.lastNumber
        }
        let entry = try outbox.undoEntry(request, id: id, number: number, journal: name)
        let result = state.withLock { state in
            Result { () throws(NetworkError) in
                guard !state.isCommitted, !state.forgotten.contains(id) else { throw NetworkError(code: .cancelled) }
                try outbox.folder.keep(entry, instead: state.entries[id]?.name, in: name)
                state.entries[id] = entry
            }
        }
        try result.get()
    }

    func forget(_ id: UUID) {
        state.withLock { state in
            state.forgotten.insert(id)
            if let entry = state.entries.removeValue(forKey: id) { outbox.folder.forget(entry.name, in: name) }
        }
    }

    func handOver(_ id: UUID) throws(NetworkError) {
        let result = state.withLock { state in
            Result { () throws(NetworkError) -> OutboxFolder.Entry? in
                guard let entry = state.entries[id] else { return nil }
                let last = try outbox.folder.lastSequence()
                let name = try outbox.folder.handOver(entry.name, in: name, after: last)
                state.entries[id] = nil
                return (name, entry.record)
            }
        }
        guard let entry = try result.get() else { return }
        outbox.announce(entry.name, after: [], entry.record.options ?? OutboxOptions())
    }

    func commit() throws(NetworkError) {
        let result = state.withLock { state in
            Result { () throws(NetworkError) in
                try outbox.folder.commitJournal(name)
                state.isCommitted = true
                return state.lock.take()
            }
        }
        withExtendedLifetime(try result.get()) {}
    }

    func reopen() throws(NetworkError) {
        let result = state.withLock { state in
            Result { () throws(NetworkError) in
                let entries = state.entries.values.sorted { $0.name.sequence < $1.name.sequence }
                state.lock = try outbox.folder.makeJournal(name, entries)
                state.isCommitted = false
            }
        }
        try result.get()
    }
}
