/// Which jobs of a queue are equal, as a value: what a repeat does to the older jobs, and they to it.
///
/// The cost of a job doesn't depend on the number of other jobs, except those that it cancels.
struct RepeatRegistry<Job: AnyObject> {
    /// The decision for a job that enters.
    enum Decision {
        /// The job continues. These older ones, in the order in which they entered, must be cancelled.
        case proceed(cancel: [Job])
        /// The job must not run, because of this older one.
        case refuse(because: Job)
    }

    private var lastNumber = 0
    /// The jobs that count. Such a job was not refused or replaced by a newer one, and has not left.
    private(set) var jobs: [RepeatKey: [ObjectIdentifier: (job: Job, number: Int)]] = [:]

    /// Enters a job, once.
    ///
    /// - Parameter isOver: returns whether a job no longer counts.
    mutating func enter(
        _ job: Job,
        key: RepeatKey,
        policy: RepeatPolicy,
        isOver: (Job) -> Bool = { _ in false }
    ) -> Decision {
        var cancelled: [Job] = []
        switch policy {
        case .allow, .join: break
        case .ignoreNewer:
            if let older = jobs[key]?.values.first(where: { !isOver($0.job) })?.job { return .refuse(because: older) }
        case .cancelOlder:
            let older = jobs.removeValue(forKey: key) ?? [:]
            cancelled = older.values.sorted { $0.number < $1.number }.map(\.job)
        }
        lastNumber += 1
        jobs[key, default: [:]][ObjectIdentifier(job)] = (job, lastNumber)
        return .proceed(cancel: cancelled)
    }

    /// Removes a job that has ended.
    ///
    /// - Returns: the removed job, to be released outside the lock.
    @discardableResult
    mutating func leave(_ id: ObjectIdentifier, key: RepeatKey) -> Job? {
        let job = jobs[key]?.removeValue(forKey: id)?.job
        if jobs[key]?.isEmpty == true { jobs[key] = nil }
        return job
    }
}
