/// Finds the circle that a new edge would close.
extension JobGraph {
    /// The way from `other` along what it waits for to `job`, with `job` before it: nil when there is none.
    ///
    /// From both ends at once, until one side has no more to look at. So a job that nobody waits for, or one that waits
    /// for nobody, costs one look, and joining two long chains costs the length of the shorter one.
    func path(from other: JobID, to job: JobID) -> [Payload]? {
        if other == job { return payload(of: job).map { [$0, $0] } }
        guard isLive(job), !places[Int(job.index)].dependents.isEmpty,
            !places[Int(other.index)].dependencies.isEmpty
        else { return nil }
        var forward = Search(from: other)
        var backward = Search(from: job)
        while true {
            guard let next = forward.step(dependency) else { return nil }
            if isLive(next), forward.take(next), backward.hasSeen(next) { break }
            guard let previous = backward.step(dependent) else { return nil }
            if isLive(previous), backward.take(previous), forward.hasSeen(previous) { break }
        }
        return wholePath(from: other, to: job)
    }

    private func wholePath(from other: JobID, to job: JobID) -> [Payload]? {
        var search = Search(from: other)
        var origin: [JobID: JobID] = [:]
        while let next = search.step(dependency) {
            guard isLive(next), search.take(next) else { continue }
            origin[next] = search.current
            guard next == job else { continue }
            var path = [job]
            while let last = path.last, last != other, let before = origin[last] { path.append(before) }
            return ([job] + path.reversed()).compactMap { payload(of: $0) }
        }
        return nil
    }

    private func dependency(of job: JobID, _ edge: Int) -> JobID? {
        let dependencies = places[Int(job.index)].dependencies
        return edge < dependencies.count ? dependencies[edge] : nil
    }

    private func dependent(of job: JobID, _ edge: Int) -> JobID? {
        let dependents = places[Int(job.index)].dependents
        return edge < dependents.count ? dependents[edge].job : nil
    }

    /// A walk over the graph that gives one edge at a time.
    private struct Search {
        private var pending: [JobID]
        private var seen: Set<JobID>
        /// The job whose edges are being followed.
        private(set) var current: JobID
        private var edge = 0

        init(from start: JobID) {
            pending = []
            seen = [start]
            current = start
        }

        /// The far end of the next edge; nil when there is none left.
        mutating func step(_ end: (JobID, _ edge: Int) -> JobID?) -> JobID? {
            while true {
                if let next = end(current, edge) {
                    edge += 1
                    return next
                }
                guard let next = pending.popLast() else { return nil }
                current = next
                edge = 0
            }
        }

        /// - Returns: false when it has been there.
        mutating func take(_ job: JobID) -> Bool {
            guard seen.insert(job).inserted else { return false }
            pending.append(job)
            return true
        }

        func hasSeen(_ job: JobID) -> Bool { seen.contains(job) }
    }
}
