/// What ties an operation to its owner. It is untied when the operation finishes or lets go of this.
struct OwnerTie {
    private(set) weak var owner: OperationOwner?
    let isCancelled: Bool
    private let knot: Knot

    init(_ operation: NetworkOperation, _ owner: OperationOwner, isCancelled: Bool) {
        self.owner = owner
        self.isCancelled = isCancelled
        knot = Knot(owner.ties)
        owner.ties.add(ObjectIdentifier(knot), OwnerTies.Member(operation: operation, isCancelled: isCancelled))
    }

    private final class Knot {
        private let ties: OwnerTies

        init(_ ties: OwnerTies) {
            self.ties = ties
        }

        deinit {
            ties.remove(ObjectIdentifier(self))
        }
    }
}

/// The operations of one owner. What holds this does not hold the owner.
final class OwnerTies: Sendable {
    struct Member {
        weak var operation: NetworkOperation?
        let isCancelled: Bool
    }

    /// Nil when the owner has gone.
    private let members = Locked<[ObjectIdentifier: Member]?>([:])

    /// How many operations are tied that have neither finished nor been let go of.
    var count: Int { members.withLock { $0?.count ?? 0 } }

    func add(_ knot: ObjectIdentifier, _ member: Member) {
        let isGone = members.withLock { members in
            members?[knot] = member
            return members == nil
        }
        if isGone { Self.release(member) }
    }

    func remove(_ knot: ObjectIdentifier) {
        members.withLock { _ = $0?.removeValue(forKey: knot) }
    }

    func ownerIsGone() {
        for member in (members.exchange(nil) ?? [:]).values { Self.release(member) }
    }

    private static func release(_ member: Member) {
        guard let operation = member.operation else { return }
        if member.isCancelled { operation.cancel() } else { operation.detach() }
    }
}
