import Foundation

/// A property by which jobs are counted and limited together.
enum LimitKey: Hashable, Sendable {
    /// All jobs that need a slot.
    case everything
    case host(String)
    case tag(String)
    /// Jobs of one category run one at a time.
    case exclusion(String)
    /// The children of one batch.
    case group(ObjectIdentifier)

    /// Whether a job that needs no slot, since it only waits for others, counts by this key too. Not where those others
    /// count as well: it would hold the room that they wait for.
    var countsWithoutSlot: Bool {
        switch self {
        case .exclusion, .group: true
        case .everything, .host, .tag: false
        }
    }
}

/// The traits by which a queue treats a job differently from others.
struct JobTraits {
    // Traits of a kind of operation, see NetworkOperation.traits.

    /// Whether it counts in the limits. A job that only waits for others takes no slot: it is started when its
    /// dependencies are over and the queue is not suspended.
    var occupiesSlot = true
    /// Whether it holds its ``NetworkOperation/mutualExclusionCategories`` itself.
    var takesCategories = true
    /// Whether its host and priority are known only when ``NetworkOperation/prepare()`` has run. It is first started
    /// without a slot and counts in no limit, until ``JobGraph/endPreparing(_:_:_:occupiesSlot:_:)``.
    var needsPreparing = false
    /// Whether it is an internal job, a part of others: it appears in no count, list or event.
    var isHidden = false
    /// Whether code that may block runs in `start()`: that of a subclass of the user's.
    var startRunsUserCode = true
    /// Whether it can give its slot to an urgent job while it runs, and go on later. It may change while it runs:
    /// ``JobGraph/setMayYield(_:of:_:)``.
    var mayYield = false

    // Traits that a job is given when it is added.

    var isBarrier = false
    /// Whether it does not wait for a barrier, because a job before the barrier waits for this one.
    var passesBarriers = false
}

extension JobGraph {
    /// The work that a step leaves to the owner of the graph, in this order.
    struct Actions {
        /// The time of the step, in seconds on the clock of the queue.
        var now: TimeInterval = 0
        /// Jobs that will not run (cancelled, or a dependency failed): they are started without a slot, only to end.
        var end: [Payload] = []
        /// Jobs that have been given a slot.
        var start: [Payload] = []
        /// Jobs that gave their slot back and have one again.
        var resume: [Payload] = []
        /// Jobs whose slot was given to urgent ones.
        var yield: [Payload] = []
        /// Jobs whose slot was given to urgent ones, and that have one again.
        var goOn: [Payload] = []
        /// The ``Job/slotActions`` of those.
        var granted: [@Sendable () -> Void] = []
        /// Expected jobs that have finished elsewhere, or that no job waits for any more.
        var forget: [Payload] = []
        /// When to call ``JobGraph/admit(_:)`` again, because a rate limit holds jobs back.
        var wake: TimeInterval?
    }

    enum Phase {
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
        /// Has left the graph.
        case gone
    }

    /// A dependency as one of its jobs sees it: the job at the other end.
    typealias Edge = (job: Job, policy: DependencyPolicy)

    /// A job, or an operation that jobs wait for.
    final class Job: @unchecked Sendable {
        // Sendable because only its graph uses it, behind the lock of the queue.

        /// Nil when the job has finished.
        var payload: Payload?
        var phase = Phase.expected
        var traits = JobTraits()
        /// The number of the submission: the job's age.
        var submission = 0
        var dependents: [Edge] = []
        /// Emptied when the job is ready.
        var dependencies: [Edge] = []
        /// Dependencies that have not finished, and one for every ``JobGraph/hold(_:)``.
        var waitingFor: Int32 = 0
        /// Entries in `dependents` of jobs that have left.
        var departedCount: Int32 = 0
        var inherited = PriorityCounts()
        var ownPriority = JobPriority.veryLow
        /// The highest of the job's own priority and those of its dependents.
        var priority = JobPriority.veryLow
        /// Called when the job has a slot again, or has finished.
        var slotActions: [@Sendable () -> Void] = []

        /// The lanes of the job's keys.
        var lanes: [Lane] = []
        /// The line in which it waits for its turn; nil when it does not.
        var line: Line?
        /// The number that the job drew when it became ready: lower ones go first.
        var turn = 0
        // The neighbours in the line are alive: the graph holds every job that is in a line.
        unowned(unsafe) var previous: Job?
        unowned(unsafe) var next: Job?
        /// It has started before: rates do not apply to it.
        var isReturning = false
        /// When its slot was given to an urgent job; nil when it has one again.
        var yieldedAt: TimeInterval?
        /// When it went on after that.
        var wentOnAt = -TimeInterval.infinity
        /// Whether the listeners of the queue are about to be told that it was started.
        var isStartUntold = false
        /// Why it waits or waited for its slot; nil unless ``JobGraph/notesWaits``.
        var wait: WaitNote?

        init(_ payload: Payload) {
            self.payload = payload
        }

        var hasYielded: Bool { yieldedAt != nil }

        /// What the job waits for: instead of a cancelled barrier, the jobs before it.
        var awaited: [Payload] {
            var (found, pending): ([Payload], [Job]) = ([], dependencies.reversed().map(\.job))
            while let job = pending.popLast() {
                if let payload = job.payload {
                    found.append(payload)
                } else if job.phase == .passed {
                    pending += job.dependencies.reversed().map(\.job)
                }
            }
            return found
        }

        /// Whether the job has not been started.
        var isWaiting: Bool { phase == .expected || phase == .blocked || phase == .ready }

        /// Whether its slot may be given to an urgent job. A job that excludes others keeps it, for its categories.
        var mayYield: Bool {
            traits.mayYield && needsSlot && !lanes.contains { if case .exclusion = $0.key { true } else { false } }
        }

        var needsSlot: Bool { traits.occupiesSlot && !traits.needsPreparing }

        func counts(in lane: Lane) -> Bool {
            needsSlot || (!traits.needsPreparing && lane.key.countsWithoutSlot)
        }
    }

    /// The jobs that have a key: how many of them run and may run, and those that wait until more may.
    final class Lane {
        let key: LimitKey
        var limit: Int?
        var gate: RateGate?
        var runningCount = 0
        /// Jobs that have the key and have not finished.
        var userCount = 0
        /// The number of lines in the lane.
        var lineCount = 0
        /// Whether the lane is one of ``JobGraph/openLanes``.
        var isOpen = false
        /// A row for each priority of the jobs that need a slot, and for each of those that need none.
        var rows = [Row](repeating: Row(), count: 2 * JobPriority.count)
        /// The lines of the jobs that this key alone may hold back. They are kept when they are empty.
        private var ownLines: [Line?] = []

        init(_ key: LimitKey, limit: Int? = nil) {
            self.key = key
            self.limit = limit
        }

        var isBelowLimit: Bool { limit.map { runningCount < $0 } ?? true }

        /// Whether the key can hold jobs back.
        var isBounded: Bool { limit != nil || gate != nil }

        func hasRoom(for job: Job, at now: TimeInterval) -> Bool {
            isBelowLimit && rateOpens(for: job) <= now
        }

        /// When the rate lets the job start; a time long ago if nothing holds it back.
        func rateOpens(for job: Job) -> TimeInterval {
            job.isReturning ? -.infinity : gate?.opens ?? -.infinity
        }

        /// The first job of a row that the rate of this lane lets start.
        func first(_ row: Int, at now: TimeInterval) -> Job? {
            let returning = rows[row].returning.first?.first
            guard let fresh = rows[row].fresh.first?.first, rateOpens(for: fresh) <= now else { return returning }
            return returning.map { $0.turn < fresh.turn } ?? false ? returning : fresh
        }

        func ownLine(_ row: Int, isReturning: Bool) -> Line {
            if ownLines.isEmpty { ownLines = Array(repeating: nil, count: 2 * rows.count) }
            let index = 2 * row + (isReturning ? 1 : 0)
            if let line = ownLines[index] { return line }
            let line = Line(row, isReturning: isReturning)
            ownLines[index] = line
            return line
        }
    }

    /// Waiting jobs that the same keys can hold back, of one priority, by their turns: when the first cannot start, none
    /// of them can. So they move from lane to lane together, at the cost of one.
    final class Line {
        /// The place among ``Lane/rows``.
        let row: Int
        /// Whether its jobs have started before, so that no rate holds them back.
        let isReturning: Bool
        /// The place in ``JobGraph/lines``; nil for a line that a lane keeps.
        let key: LineKey?
        // The jobs are alive for the same reason; a lane is kept while a job has its key.
        unowned(unsafe) var first: Job?
        unowned(unsafe) var last: Job?
        unowned(unsafe) var lane: Lane?
        /// The place in the heap of the lane.
        fileprivate(set) var place = 0
        /// Why it is in its lane; nil unless ``JobGraph/notesWaits``.
        var reason: WaitReason?

        init(_ row: Int, isReturning: Bool, key: LineKey? = nil) {
            self.row = row
            self.isReturning = isReturning
            self.key = key
        }

        /// By the turn of their first jobs.
        func isBefore(_ other: Line) -> Bool { (first?.turn ?? .max) < (other.first?.turn ?? .max) }
    }

    /// The keys that can hold the jobs of a line back, where there are several.
    struct LineKey: Hashable {
        var lanes: Set<ObjectIdentifier> = []
        let row: Int
        let isReturning: Bool
    }

    /// The lines of one lane and priority.
    struct Row {
        var fresh = LineHeap()
        /// Those of jobs that have started before.
        var returning = LineHeap()
        /// The number of jobs of higher priority that have started since one of this row has.
        var overtakenCount = 0

        var isEmpty: Bool { fresh.first == nil && returning.first == nil }

        subscript(isReturning: Bool) -> LineHeap {
            get { isReturning ? returning : fresh }
            _modify { if isReturning { yield &returning } else { yield &fresh } }
        }

        static func index(_ priority: JobPriority, needsSlot: Bool) -> Int {
            Int(priority.rawValue) + (needsSlot ? JobPriority.count : 0)
        }
    }

    /// A binary heap of lines.
    struct LineHeap {
        private(set) var lines: [Line] = []

        var first: Line? { lines.first }

        mutating func insert(_ line: Line) {
            line.place = lines.count
            lines.append(line)
            reorder(line)
        }

        mutating func remove(_ line: Line) {
            let last = lines.removeLast()
            guard last !== line else { return }
            put(last, at: line.place)
            reorder(last)
        }

        /// Moves a line to its place after its first job has changed.
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
            let place = one.place
            put(one, at: other.place)
            put(other, at: place)
        }

        private mutating func put(_ line: Line, at place: Int) {
            lines[place] = line
            line.place = place
        }
    }
}
