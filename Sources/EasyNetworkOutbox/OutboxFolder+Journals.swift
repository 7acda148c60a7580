import EasyNetwork
import Foundation

/// The directories with the undo requests of groups of jobs.
extension OutboxFolder {
    func journal(_ name: String) -> String { path("undo/" + name) }

    /// Creates a journal with entries, in one step.
    ///
    /// - Returns: its lock, which shows other processes that the journal has an owner. `nil` on systems that kill a
    ///   suspended app that holds a lock.
    func makeJournal(_ name: String, _ entries: [Entry]) throws(NetworkError) -> Lock? {
        let temporary = newTemporary()
        do throws(NetworkError) {
            return try attempt {
                try files.makeDirectory(temporary)
                let lock = Scratch.isLocked ? try Lock.take(temporary) : nil
                for entry in entries {
                    let path = temporary + "/" + entry.name.text
                    try files.create(path, try Self.pieces(of: entry.record), usedAt: entry.record.addedAt)
                    try files.sync(path, isLast: false)
                }
                if !entries.isEmpty { try files.sync(temporary, isLast: false) }
                try files.rename(temporary, to: journal(name))
                try files.sync(path("undo"), isLast: true)
                return lock
            }
        } catch {
            discard(temporary)
            discard(journal(name))
            throw error
        }
    }

    /// Writes an entry of a journal. When the method returns, the entry survives a crash of the machine.
    ///
    /// - Parameter old: the entry that it replaces; `nil` for none.
    func keep(_ entry: Entry, instead old: OutboxName?, in name: String) throws(NetworkError) {
        let temporary = newTemporary()
        do throws(NetworkError) {
            try attempt {
                try files.create(temporary, try Self.pieces(of: entry.record), usedAt: entry.record.addedAt)
                try files.sync(temporary, isLast: false)
                try files.rename(temporary, to: journal(name) + "/" + entry.name.text)
                try files.sync(journal(name), isLast: true)
            }
        } catch {
            discard(temporary)
            throw error
        }
        if let old, old != entry.name { forget(old, in: name) }
    }

    func forget(_ entry: OutboxName, in name: String) {
        discard(journal(name) + "/" + entry.text)
    }

    /// Makes a request of a journal an entry of the outbox, in one step.
    ///
    /// - Parameter minimum: ``lastSequence()``, or `nil` after the first of several entries.
    /// - Returns: the name of the entry.
    func handOver(_ entry: OutboxName, in name: String, after minimum: UInt64?) throws(NetworkError) -> OutboxName {
        let newName = entry.numbered(try nextSequence(after: minimum))
        try attempt {
            try files.rename(journal(name) + "/" + entry.text, to: path(.entries, newName))
            try files.sync(path("entries"), isLast: true)
        }
        return newName
    }

    /// Takes a journal away, in one step. When the method returns, this survives a crash of the machine. If it throws,
    /// the journal is still there.
    func commitJournal(_ name: String) throws(NetworkError) {
        let temporary = newTemporary()
        try attempt {
            try files.rename(journal(name), to: temporary)
            do { try files.sync(path("undo"), isLast: true) } catch {
                try? files.rename(temporary, to: journal(name))
                throw error
            }
        }
        discard(temporary)
    }

    func removeJournal(_ name: String) { discard(journal(name)) }

    /// Makes entries of all requests in the journals that have no owner, in the reverse order in which they were
    /// stored.
    ///
    /// - Parameter isOwn: returns whether the journal at a path belongs to this process.
    /// - Returns: the names of the new entries.
    func adoptJournals(except isOwn: (String) -> Bool) -> [OutboxName] {
        var adopted: [OutboxName] = []
        for name in (try? files.list(path("undo"))) ?? [] where UUID(uuidString: name) != nil && !isOwn(journal(name)) {
            let lock = Scratch.isLocked ? try? Lock.take(journal(name)) : nil
            // The owner can have taken the journal away, and made another one at the same path.
            guard !Scratch.isLocked || lock?.isAt(journal(name)) == true,
                let found = try? files.list(journal(name))
            else { continue }
            var ids: Set<UUID> = []
            for entry in found.compactMap({ OutboxName($0) }).sorted(by: { $0.sequence > $1.sequence }) {
                // A kill while one request replaced another can leave both, each of which undoes the step.
                guard ids.insert(entry.id).inserted else {
                    forget(entry, in: name)
                    continue
                }
                do throws(NetworkError) {
                    adopted.append(try handOver(entry, in: name, after: adopted.isEmpty ? lastSequence() : nil))
                } catch {
                    break
                }
            }
            // A journal that still has files is read again.
            if (try? files.list(journal(name)))?.isEmpty == true { discard(journal(name)) }
            withExtendedLifetime(lock) {}
        }
        return adopted
    }
}
