import Foundation

/// A property by which a queue counts and limits jobs together.
package enum LimitKey: Hashable, Sendable {
    /// All jobs that need a slot.
    case queueLane
    case host(String)
    case tag(String)
    /// The jobs of one category, which run one at a time.
    case exclusion(String)
    /// The children of one batch.
    case group(ObjectIdentifier)

    /// Whether a job that needs no slot, because it only waits for others, counts by this key too. It must not if those
    /// others count by the key as well: the waiting job would occupy the room that they need.
    var countsWithoutSlot: Bool {
        switch self {
        case .exclusion, .group: true
        case .queueLane, .host, .tag: false
        }
    }
}

/// The traits by which a queue treats a job differently from others.
package struct JobTraits: Sendable {
    /// The traits of a job that is treated as most are.
    package static let usual = JobTraits()

    // The next traits depend on the kind of operation. See NetworkOperation.traits.

    /// Whether the job counts in the limits. A job that only waits for others takes no slot. It is started when its
    /// dependencies have ended and the queue is not suspended.
    package var occupiesSlot = true
    /// Whether the job's host and priority are known only after ``NetworkOperation/prepare()`` has run. Such a job is
    /// first started without a slot, and counts in no limit until ``JobGraph/endPreparing(_:_:_:_:occupiesSlot:_:)``.
    var needsPreparing = false
    /// Whether the job is internal, as a part of other jobs. An internal job appears in no count, list or event.
    var isHidden = false
    /// Whether the job undoes another one. Cancelling the jobs of the queue then spares it.
    var isUndo = false
    /// Whether `start()` runs code that can block, as a user's subclass can.
    var startRunsUserCode = true
    /// Whether the running job can give its slot to an urgent job and continue later. ``JobGraph/setMayYield(_:of:_:)``
    /// changes this while the job runs.
    package var mayYield = false

    // The next traits are set when a job is added.

    package var isBarrier = false
    /// Whether the job does not wait for a barrier, because a job before the barrier waits for this job.
    package var passesBarriers = false
}

/// The rules by which a queue admits its jobs, except for the limits of its batches.
package struct QueueRules: Equatable, Sendable {
    package var limits: [LimitKey: Int] = [:]
    /// The limit of each host that has no limit of its own.
    package var hostLimit: Int?
    package var rates: [LimitKey: RateLimit] = [:]
    package var yieldingPriority: JobPriority? = .low
    package var overtakingLimit: Int?
    package var isSuspended = false

    package init() {}
}

extension JobGraph {
    /// The work that a step leaves to the owner of the graph. A job is notified that it has lost its slot before another job
    /// starts.
    package struct Actions {
        /// The time of the step, in seconds on the queue's clock.
        var now: TimeInterval
        /// Whether the queue reports the step to listeners.
        var isReported = false
        /// Jobs that will not run, because they were cancelled or a dependency failed. They are started without a slot,
        /// only to end.
        package var end: [Payload] = []
        /// Jobs that have been given a slot.
        package var start: [Payload] = []
        /// Jobs that gave up their slot and have one again.
        package var resume: [Payload] = []
        /// Jobs whose slot was given to an urgent job.
        package var yield: [Payload] = []
        /// Jobs whose slot was given to an urgent job, and that have one again.
        var goOn: [Payload] = []
        /// The ``Job/slotActions`` of the jobs that have a slot again or have finished.
        var granted: [@Sendable () -> Void] = []
        /// Expected jobs that have finished elsewhere, or that no job waits for any longer.
        var forget: [Payload] = []
        /// When to call ``JobGraph/admit(_:)`` again, because a rate limit holds jobs back or a job
        /// cannot yield yet.
        package var wake: TimeInterval?

        package init(now: TimeInterval = 0) {
            self.now = now
        }
    }

    package enum Phase {
        /// The job has not been submitted to this queue, but other jobs wait for it.
        case expected
        /// The job waits for dependencies.
        case blocked
        /// The job waits for its turn.
        case ready
        /// The job was started, and has its slot unless it needs none.
        case running
        /// The job was started, and has given up its slot.
        case parked
        /// The job waits for its turn to get its slot again.
        case returning
        /// The job was handed over to be ended, and has no slot.
        case ending
        /// The job is a barrier that finished before the jobs it waited for. The jobs after it still wait for those.
        case passed
        /// The job has left the graph.
        case gone
    }

    /// A dependency as seen from one of its two jobs: the other job, and the policy.
    typealias Edge = (job: Job, policy: DependencyPolicy)

    /// A job, or an operation that jobs wait for.
    package final class Job: @unchecked Sendable {
        // Sendable because only its graph uses it, under the queue's lock.

        /// The operation; `nil` when the job has finished.
        var payload: Payload?
        package var phase = Phase.expected
        var traits = JobTraits()
        /// The number of the submission, which tells the job's age.
        var submission = 0
        var dependents: [Edge] = []
        /// The jobs that this job waits for. Emptied when the job is ready.
        var dependencies: [Edge] = []
        /// The number of unfinished dependencies, plus one for every ``JobGraph/hold(_:)``.
        var waitingFor: Int32 = 0
        /// The number of entries in `dependents` of jobs that have left.
        var departedCount: Int32 = 0
        /// The number of dependents of each priority; empty if no dependent had one above the lowest.
        private var inherited: [Int32] = []
        var ownPriority = JobPriority.veryLow
        /// The highest of the job's own priority and its dependents' priorities.
        var priority = JobPriority.veryLow
        /// Called when the job has a slot again, or has finished.
        var slotActions: [@Sendable () -> Void] = []

        var lanes: [Lane] = []
        /// The line in which the job waits for its turn; `nil` if it isn't waiting for it.
        var line: Line?
        /// The number that the job drew when it became ready. Lower numbers are first.
        var turn = 0
        // The neighbours in the line are alive: the graph holds every job that is in a line.
        unowned(unsafe) var previous: Job?
        unowned(unsafe) var next: Job?
        /// Whether the job has had a slot and given it up, so that rates do not apply to it again.
        var hasGivenUpSlot = false
        /// The time at which its slot was given to an urgent job; `nil` when the job has a slot again.
        var yieldedAt: TimeInterval?
        /// The time from which the job must run for ``JobGraph/yieldingInterval`` before it yields, such as its last
        /// resume.
        var resumedAt = -TimeInterval.infinity
        /// Whether the queue is about to post the job's start to its listeners.
        var isStartUnreported = false
        /// The reason why the job waits or waited for its slot; `nil` unless ``JobGraph/notesWaits``.
        package var wait: WaitNote? {
            get { waitNote?.value }
            set { waitNote = newValue.map(Shared.init) }
        }
        /// A pointer, because most jobs have no note.
        private var waitNote: Shared<WaitNote>?

        package init(_ payload: Payload) {
            self.payload = payload
        }

        var hasYielded: Bool { yieldedAt != nil }

        /// The index of the job's row in its lanes. See ``Lane/rows``.
        var row: Int { Int(priority.rawValue) + (needsSlot ? JobPriority.count : 0) }

        /// The highest priority of a dependent; the lowest priority if there are none.
        var inheritedPriority: JobPriority {
            let rank = inherited.lastIndex { $0 > 0 } ?? 0
            return JobPriority(rawValue: UInt8(rank)) ?? .veryLow
        }

        /// Changes the number of dependents of a priority.
        func inherit(_ change: Int32, _ priority: JobPriority) {
            guard priority != .veryLow else { return }
            if inherited.isEmpty { inherited = Array(repeating: 0, count: JobPriority.count) }
            inherited[Int(priority.rawValue)] += change
        }

        /// Whether the job has not been started.
        var isWaiting: Bool { phase == .expected || phase == .blocked || phase == .ready }

        /// Whether the job is a barrier that is being ended, and passes if jobs before it have not finished.
        var isEndingBarrier: Bool { phase == .ending && traits.isBarrier }

        /// Whether an urgent job can take the slot. A job that excludes others keeps its slot, because of its
        /// categories.
        var mayYield: Bool {
            traits.mayYield && needsSlot && !lanes.contains { if case .exclusion = $0.key { true } else { false } }
        }

        var needsSlot: Bool { traits.occupiesSlot && !traits.needsPreparing }

        func counts(in lane: Lane) -> Bool {
            needsSlot || (!traits.needsPreparing && lane.key.countsWithoutSlot)
        }
    }

    /// The jobs that have a key: the running ones with their limit, and the lines that wait until more can run.
    final class Lane {
        let key: LimitKey
        var limit: Int?
        var gate: RateGate?
        var runningCount = 0
        /// The number of jobs that have the key and have not finished.
        var userCount = 0
        /// The number of lines in the lane.
        var lineCount = 0
        /// Whether the lane is one of ``JobGraph/openLanes``.
        var isOpen = false
        /// The rows: one for each priority of the jobs that need no slot, and one for each priority of the other jobs.
        var rows = [Row](repeating: Row(), count: 2 * JobPriority.count)
        /// The lines of each row. In the same order, the lines of jobs that have given up a slot follow.
        var heaps = [LineHeap](repeating: LineHeap(), count: 4 * JobPriority.count)
        /// The lines of the jobs that only this key can hold back, in the order of `heaps`. Empty lines are kept.
        private var ownLines: [Line?] = []

        init(_ key: LimitKey, limit: Int? = nil) {
            self.key = key
            self.limit = limit
        }

        var isBelowLimit: Bool { runningCount < limit ?? .max }

        /// Whether the key can hold jobs back.
        var isBounded: Bool { limit != nil || gate != nil }

        func hasRoom(for job: Job, at now: TimeInterval) -> Bool {
            isBelowLimit && (gate == nil || rateOpens(for: job) <= now)
        }

        /// Returns the time at which the rate lets the job start; a time long ago if no rate holds the job back.
        func rateOpens(for job: Job) -> TimeInterval {
            job.hasGivenUpSlot ? -.infinity : gate?.opens ?? -.infinity
        }

        /// Returns the first job of a row that this lane's rate lets start.
        func first(_ row: Int, at now: TimeInterval) -> Job? {
            let returning = heaps[row + rows.count].lines.first?.first
            guard let fresh = heaps[row].lines.first?.first, gate == nil || rateOpens(for: fresh) <= now else {
                return returning
            }
            guard let returning, returning.turn < fresh.turn else { return fresh }
            return returning
        }

        func ownLine(_ row: Int, isFreeOfRates: Bool) -> Line {
            if ownLines.isEmpty { ownLines = Array(repeating: nil, count: heaps.count) }
            let index = row + (isFreeOfRates ? rows.count : 0)
            if let line = ownLines[index] { return line }
            let line = Line(row, heap: index)
            ownLines[index] = line
            return line
        }
    }

    /// Waiting jobs of one priority that the same keys can hold back, ordered by their turns. If the first cannot
    /// start, none of them can. They therefore move from lane to lane together, at the cost of one.
    final class Line {
        /// The index of the line's row in ``Lane/rows``.
        let row: Int
        /// The index of the line's heap in ``Lane/heaps``.
        let heap: Int
        /// The key in ``JobGraph/lines``; `nil` for a line that a lane keeps.
        let key: LineKey?
        // The jobs are alive because the graph holds every job in a line. A lane is kept while a job has its key.
        unowned(unsafe) var first: Job?
        unowned(unsafe) var last: Job?
        unowned(unsafe) var lane: Lane?
        /// The index in the heap of the lane.
        fileprivate(set) var place = 0
        /// The reason why the line is in its lane; `nil` unless ``JobGraph/notesWaits``.
        var reason: WaitReason?

        init(_ row: Int, heap: Int, key: LineKey? = nil) {
            self.row = row
            self.heap = heap
            self.key = key
        }

        /// Returns whether the line's first job has an earlier turn than the other line's.
        func isBefore(_ other: Line) -> Bool { (first?.turn ?? .max) < (other.first?.turn ?? .max) }
    }

    /// The keys that can hold the jobs of a line back, if there are several.
    struct LineKey: Hashable {
        let lanes: Set<ObjectIdentifier>
        /// The index of the line's heap in ``Lane/heaps``.
        let heap: Int
    }

    /// The waiting jobs of one lane and priority.
    struct Row {
        /// The number of lines in both heaps.
        var lineCount = 0
        /// The number of jobs of higher priority that have started since the last start from this row.
        var overtakenCount = 0
    }

    /// A binary heap of lines.
    struct LineHeap {
        private(set) var lines: [Line] = []

        mutating func insert(_ line: Line) {
            line.place = lines.count
            lines.append(line)
            reorder(line)
        }

        mutating func remove(_ line: Line) {
            let last = lines[lines.count - 1]
            swap(line, last)
            lines.removeLast()
            if last !== line { reorder(last) }
        }

        /// Moves a line to its index after its first job has changed.
        mutating func reorder(_ line: Line) {
            while line.place > 0, case let parent = lines[(line.place - 1) / 2], line.isBefore(parent) {
                swap(line, parent)
            }
            while case let child = 2 * line.place + 1, child < lines.count {
                let hasRight = child + 1 < lines.count && lines[child + 1].isBefore(lines[child])
                let next = lines[hasRight ? child + 1 : child]
                guard next.isBefore(line) else { return }
                swap(line, next)
            }
        }

        private mutating func swap(_ one: Line, _ other: Line) {
            lines.swapAt(one.place, other.place)
            (one.place, other.place) = (other.place, one.place)
        }
    }
}
