import Foundation

/// Who is here, and what holds a job; and the end of all that have something in common.
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

    /// Where a job stands.
    enum Standing {
        case waiting(for: [Payload])
        case ready(JobAdmission.Obstacle)
        case running
        case parked
        case ending
    }

    /// - Returns: nil when the job is not here, or has finished.
    func standing(of job: JobID, at now: TimeInterval) -> Standing? {
        guard isLive(job) else { return nil }
        let place = places[Int(job.index)]
        switch place.phase {
        case .expected, .passed: return nil
        case .blocked: return .waiting(for: place.dependencies.compactMap { payload(of: $0) })
        case .ready, .returning: return .ready(admission.obstacle(of: job.index, at: now))
        case .running: return .running
        case .parked: return .parked
        case .ending: return .ending
        }
    }

    /// Ends the jobs that have not started and that have this key. Nil means all, hidden ones included; with a key those
    /// are left alone, since they go with the jobs that they are a part of.
    ///
    /// - Returns: all that have the key, started or not.
    mutating func end(withKey key: LimitKey?, _ actions: inout Actions) -> [Payload] {
        var payloads: [Payload] = []
        for index in places.indices where places[index].phase != .expected {
            let isMeant = key.map { !places[index].isHidden && admission.has(Int32(index), $0) } ?? true
            guard isMeant, let payload = places[index].payload else { continue }
            payloads.append(payload)
            end(id(index), &actions)
        }
        return payloads
    }
}
