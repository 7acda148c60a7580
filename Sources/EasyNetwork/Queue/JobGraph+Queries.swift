import Foundation

/// Reading the graph, and ending all jobs with a common key.
extension JobGraph {
    /// The jobs that have not finished, in the order in which they were submitted.
    var jobs: [JobID] {
        places.indices
            .filter { places[$0].payload != nil && places[$0].phase != .expected && !places[$0].isHidden }
            .sorted { places[$0].submission < places[$1].submission }
            .map(id)
    }

    func payload(of job: JobID) -> Payload? {
        isLive(job) ? places[Int(job.index)].payload : nil
    }

    /// The state of a job, as ``NetworkQueue/explain(_:)`` tells it.
    enum Status {
        case waiting(for: [Payload])
        case ready(JobAdmission.Obstacle)
        case running
        case parked
        case ending
    }

    /// - Returns: nil when the job is not here, or has finished.
    func status(of job: JobID, at now: TimeInterval) -> Status? {
        guard isLive(job) else { return nil }
        let place = places[Int(job.index)]
        switch place.phase {
        case .expected, .passed: return nil
        case .blocked: return .waiting(for: place.dependencies.compactMap { payload(of: $0.job) })
        case .ready, .returning: return .ready(admission.obstacle(of: job.index, at: now))
        case .running: return .running
        case .parked: return .parked
        case .ending: return .ending
        }
    }

    /// Ends the jobs that have not started and that have this key. Nil means all, hidden jobs included; with a key those
    /// are left alone, since they end with the jobs that they are a part of.
    ///
    /// - Returns: all jobs that have the key, started or not.
    mutating func end(withKey key: LimitKey?, _ actions: inout Actions) -> [Payload] {
        var payloads: [Payload] = []
        for index in places.indices where places[index].phase != .expected {
            let matches = key.map { !places[index].isHidden && admission.has(Int32(index), $0) } ?? true
            guard matches, let payload = places[index].payload else { continue }
            payloads.append(payload)
            end(id(index), &actions)
        }
        return payloads
    }

    // MARK: - Edges, for the search for cycles

    enum Direction { case dependencies, dependents }

    /// The edges of a job that has not started. A copy in constant time.
    func edges(of job: JobID, _ direction: Direction) -> [Edge] {
        guard isLive(job) else { return [] }
        let place = places[Int(job.index)]
        switch direction {
        case .dependencies: return place.phase == .blocked || place.phase == .passed ? place.dependencies : []
        case .dependents: return place.dependents
        }
    }

    /// The job at the other end of an edge; in place of a passed barrier, the jobs beyond it.
    func payloads(at job: JobID, _ direction: Direction) -> [Payload] {
        var payloads: [Payload] = []
        var seen: Set<JobID> = [job]
        var pending = [job]
        while let job = pending.popLast() {
            if let payload = payload(of: job) {
                payloads.append(payload)
            } else {
                pending += edges(of: job, direction).map(\.job).filter { seen.insert($0).inserted }
            }
        }
        return payloads
    }

    /// Whether the job waits for others.
    func hasDependencies(_ job: JobID) -> Bool {
        !edges(of: job, .dependencies).isEmpty
    }

    /// Whether other jobs wait for the job.
    func hasDependents(_ job: JobID) -> Bool {
        isLive(job) && !places[Int(job.index)].dependents.isEmpty
    }
}
