/// The parts that downloads of this process have. A lock of the system's keeps other processes out, and says nothing of
/// one that is just being given back here.
final class PartRegistry: Sendable {
    static let shared = PartRegistry()

    private struct Entry {
        var owner: ObjectIdentifier
        var isClosing = false
        /// Who comes next.
        var next: (owner: ObjectIdentifier, granted: @Sendable () -> Void)?
    }

    private let entries = Locked<[String: Entry]>([:])

    /// Asks for a part.
    ///
    /// - Parameters:
    ///   - owner: who asks.
    ///   - isOver: whether the owner wants it no more, and is not there to give it back; asked under the lock, so that
    ///     nobody finds it taken by one that is over.
    ///   - granted: called once when the caller has it: before this returns, or when the one that is closing it has closed
    ///     it; not when the caller said by then that it gives it back.
    /// - Returns: false when somebody has it and does not give it up, or the owner is over.
    func take(
        _ part: String,
        for owner: AnyObject,
        unless isOver: () -> Bool,
        _ granted: @escaping @Sendable () -> Void
    ) -> Bool {
        let owner = ObjectIdentifier(owner)
        let (isFree, isPromised) = entries.withLock { entries in
            if isOver() { return (false, false) }
            guard let entry = entries[part] else {
                entries[part] = Entry(owner: owner)
                return (true, true)
            }
            let isPromised = entry.isClosing && entry.next == nil
            if isPromised { entries[part]?.next = (owner, granted) }
            return (false, isPromised)
        }
        if isFree { granted() }
        return isPromised
    }

    /// The part will be given back soon, or is not waited for any more. Does nothing when somebody else has it.
    func willGiveBack(_ part: String, by owner: AnyObject) {
        let owner = ObjectIdentifier(owner)
        let left = entries.withLock { entries -> (@Sendable () -> Void)? in
            if entries[part]?.owner == owner { entries[part]?.isClosing = true }
            guard entries[part]?.next?.owner == owner else { return nil }
            defer { entries[part]?.next = nil }
            return entries[part]?.next?.granted
        }
        withExtendedLifetime(left) {}
    }

    func giveBack(_ part: String) {
        let next = entries.withLock { entries in
            let next = entries[part]?.next
            entries[part] = next.map { Entry(owner: $0.owner) }
            return next
        }
        next?.granted()
    }
}
