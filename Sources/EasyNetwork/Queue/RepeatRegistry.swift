/// Which jobs of a queue are alike, as a value: what a repeat does to the older ones, and they to it.
///
/// A job costs the same whatever the number of others, but for those that it cancels.
struct RepeatRegistry<Job> {
    /// The decision for a job that enters.
    enum Decision {
        /// It goes on, and these older ones, in the order in which they entered, are to be cancelled.
        case proceed(cancel: [Job])
        /// It is not to run, because of this older one.
        case refuse(because: Job)
        /// It is not to run: a newer one has taken its place.
        case superseded
    }

    private enum Standing {
        case counts(RepeatKey)
        case refused(because: Job)
        case superseded
    }

    private struct Member {
        let job: Job
        let number: UInt64
    }

    private var lastNumber: UInt64 = 0
    private var standings: [ObjectIdentifier: Standing] = [:]
    private var rows: [RepeatKey: [ObjectIdentifier: Member]] = [:]

    /// How many have entered and not left.
    var count: Int { standings.count }

    func contains(_ id: ObjectIdentifier) -> Bool {
        standings[id] != nil
    }

    /// A job comes. Asked again, it is told the same, but that it has nothing more to cancel.
    mutating func enter(_ id: ObjectIdentifier, _ job: Job, key: RepeatKey, policy: RepeatPolicy) -> Decision {
        switch standings[id] {
        case .counts: return .proceed(cancel: [])
        case .refused(let older): return .refuse(because: older)
        case .superseded: return .superseded
        case nil: break
        }
        var row = rows[key] ?? [:]
        // So that the row is not copied below.
        rows[key] = nil
        defer { rows[key] = row }
        var cancelled: [Job] = []
        switch policy {
        case .allow, .join: break
        case .ignoreNewer:
            if let older = row.first?.value.job {
                standings[id] = .refused(because: older)
                return .refuse(because: older)
            }
        case .cancelOlder:
            for other in row.keys { standings[other] = .superseded }
            cancelled = row.values.sorted { $0.number < $1.number }.map(\.job)
            row = [:]
        }
        lastNumber += 1
        standings[id] = .counts(key)
        row[id] = Member(job: job, number: lastNumber)
        return .proceed(cancel: cancelled)
    }

    /// A job is over, or counts no more.
    ///
    /// - Returns: the values kept for it, to be released outside the lock.
    @discardableResult
    mutating func leave(_ id: ObjectIdentifier) -> Job? {
        switch standings.removeValue(forKey: id) {
        case .counts(let key):
            let member = rows[key]?.removeValue(forKey: id)
            if rows[key]?.isEmpty == true { rows[key] = nil }
            return member?.job
        case .refused(let older): return older
        case .superseded, nil: return nil
        }
    }
}
