import Foundation

// The end of a download, on its queue.
extension DownloadTransfer {
    /// All has come: checks it, and puts it where it is to be.
    ///
    /// - Parameter isWanted: asked while the file is read for its digest, and before it takes its place.
    /// - Returns: the file.
    func land(isWanted: () -> Bool) throws(NetworkError) -> URL {
        let (course, isKept, proposed, failure) = state.withLock {
            ($0.course, $0.isKept, $0.proposedName, $0.failure)
        }
        let name = part.place.name ?? proposed ?? "download"
        guard !isKept else { return URL(fileURLWithPath: part.place.path(named: name)) }
        if let failure { throw failure }
        guard course.isComplete else {
            throw NetworkError(code: .connectionLost, message: "\(course.count) bytes came, and the file has more")
        }
        // A longer state of the file may have lain there before.
        if let total = course.total, part.size != total { try part.truncate(to: total) }
        if let wanted = options.sha256 {
            // It may take long, and a kill meanwhile is not to cost a byte.
            save()
            guard let found = try part.digest(isWanted: isWanted) else { throw NetworkError(code: .cancelled) }
            guard found.hexadecimal == wanted.lowercased() else {
                state.withLock { $0.course.drop() }
                throw NetworkError(
                    code: .digestMismatch,
                    message: "the file's SHA-256 is \(found.hexadecimal), wanted is \(wanted.lowercased())"
                )
            }
        }
        // Cancelled when all had come already: what lies there stays.
        guard isWanted() else { throw NetworkError(code: .cancelled) }
        // Before the file takes its place, so that no kill leaves a journal beside it. If it cannot, `close` writes it again.
        part.place.removeJournal()
        let path = try FileLanding.land(part, named: name, options.existingFile)
        return URL(fileURLWithPath: path)
    }

    /// Notes in the journal what is there.
    func save() {
        let record = state.withLock { state in
            state.unsavedCount = 0
            return state.isClosed ? nil : state.course.record
        }
        if let record, part.isInPlace { part.place.write(record) }
    }

    /// Lets go of the part; what is written later is not.
    ///
    /// - Parameters:
    ///   - keepingPart: whether it stays, if another download can go on with it.
    ///   - done: called when nothing more is done to the files that a user sees.
    ///   - released: called when another download may have the part.
    func close(keepingPart: Bool, done: @escaping @Sendable () -> Void, released: @escaping @Sendable () -> Void) {
        queue.async {
            let record = self.state.withLock { state in
                state.isClosed = true
                return state.course.count > 0 && keepingPart ? state.course.record : nil
            }
            // One that has landed, or vanished, leaves the name to others.
            let isThere = self.part.isInPlace
            if isThere { if let record { self.part.place.write(record) } else { self.part.place.removeAll() } }
            done()
            // So that the machine may crash, too. It may take its time; nobody waits but who wants the part.
            if isThere, record != nil, self.part.makeSync()?() == true {
                let record = self.state.withLock { state in
                    state.course.synced(state.course.segments.map(\.count))
                    return state.course.record
                }
                if let record { self.part.place.write(record) }
            }
            self.part.close()
            released()
        }
    }
}
