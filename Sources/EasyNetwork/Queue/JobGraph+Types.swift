import Foundation

extension JobGraph {
    /// The work that a step leaves to the owner of the graph, in this order.
    struct Actions {
        /// The time of the step, in seconds on the clock of the queue.
        let now: TimeInterval
        /// Jobs that will not run (cancelled, or a dependency failed): they are started without a slot, only to end.
        var end: [Payload] = []
        /// Jobs that have been given a slot.
        var start: [Payload] = []
        /// Jobs that gave their slot back and have one again.
        var resume: [Payload] = []
        /// Expected jobs that have finished elsewhere, or that no job waits for any more.
        var forget: [Payload] = []
        /// When to call ``JobGraph/admit(_:)`` again, because a rate limit holds jobs back.
        var wake: TimeInterval?

        init(now: TimeInterval = 0) {
            self.now = now
        }
    }

    /// The properties of a job, beside its priority.
    struct Traits {
        var keys: [LimitKey] = []
        var isBarrier = false
        /// The job does not wait for a barrier, because a job before the barrier waits for this one.
        var passesBarriers = false
        /// A job that needs no slot is started when it is ready.
        var occupiesSlot = true
        /// The job is first started without a slot and counts in no limit: its keys are known only after that, see
        /// ``JobGraph/endPreparing(_:priority:keys:occupiesSlot:_:)``.
        var isPreparing = false
        /// The job appears in no count or list.
        var isHidden = false
    }

    enum Phase: UInt8 {
        /// Not submitted here, but other jobs wait for it.
        case expected
        /// Waits for dependencies.
        case blocked
        /// Waits for its turn.
        case ready
        /// Was started, and has its slot unless it needs none.
        case running
        /// Was started, and has given its slot back.
        case parked
        /// Waits for its turn to have its slot again.
        case returning
        /// Was handed over to be ended; has no slot.
        case ending
        /// A barrier that finished before the jobs it waited for: the jobs behind it go on waiting for those.
        case passed
    }

    /// A dependency as one of its jobs sees it: the job at the other end.
    struct Edge {
        private let index: Int32
        let policy: DependencyPolicy
        private let generation: UInt64

        init(_ job: JobID, _ policy: DependencyPolicy) {
            (index, generation, self.policy) = (job.index, job.generation, policy)
        }

        var job: JobID { JobID(index: index, generation: generation) }
    }

    struct Place {
        /// Tells the job from earlier and later ones in the same place.
        var generation: UInt64 = 0
        /// The number of the submission: the job's age.
        var submission: UInt64 = 0
        /// Nil when the place is free, and when the job has finished.
        var payload: Payload?
        var dependents: [Edge] = []
        /// Emptied when the job is ready.
        var dependencies: [Edge] = []
        var inherited = PriorityCounts()
        /// Dependencies that have not finished, and one for every ``JobGraph/hold(_:_:)``.
        var waitingFor: Int32 = 0
        /// Entries in `dependents` of jobs that have left.
        var departedCount: Int32 = 0
        var phase = Phase.expected
        var ownPriority = JobPriority.veryLow
        /// The highest of the job's own priority and those of its dependents.
        var priority = JobPriority.veryLow
        var isTaken = true
        var isBarrier = false
        var occupiesSlot = true
        var isHidden = false

        /// Whether the job has not been started.
        var isWaiting: Bool { phase == .expected || phase == .blocked || phase == .ready }
    }
}
