import EasyNetwork
import Foundation

/// What a ``TimelineReplay`` needs of a recording: for each row, when it comes, what it waits for and what it does.
/// Times are in seconds from the first event.
struct TimelinePlan: Sendable {
    /// A time without a slot, and a time with a slot that follows it.
    struct Part: Sendable {
        let wait: TimeInterval
        var run: TimeInterval
        /// The delays before retries within the two times.
        let waitDelay: TimeInterval
        var runDelay: TimeInterval
        /// The part as it was recorded: when it requested its slot, when it got it, and when it gave it up.
        let requested, start: TimeInterval
        var end: TimeInterval
    }

    /// The event that brings a row.
    enum Origin: Sendable {
        /// The time of the recording.
        case time
        /// The start of the group that contains the row.
        case start(of: Int)
        /// The end of another row: the step before in a chain.
        case end(of: Int)
    }

    struct Job: Sendable {
        let row: TimelineRecord.Row
        /// The name as the pages show it.
        let name: String
        let (added, ended): (TimeInterval, TimeInterval)
        /// The index of the queue in ``queues``; `nil` for a call, and for a job of a queue that was not recorded.
        let queue: Int?
        /// The index of the group that contains the row.
        let parent: Int?
        var origin = Origin.time
        /// The time between the origin and the row.
        var offset: TimeInterval = 0
        let dependencies: [Int]
        /// The time between the end of the last dependency and the request for a slot.
        var lead: TimeInterval = 0
        /// For a job that was never started, its end does not depend on others, unless a dependency failed.
        let neverStarts: Bool
        var parts: [Part] = []
        /// The time without a slot at the end. For a group, the time after the end of its last child.
        var tail: TimeInterval = 0
        var childCount = 0

        var hasSlot: Bool { queue != nil && row.admission.occupiesSlot }
    }

    let origin: Date
    let queues: [ObjectIdentifier]
    let rules: [[(time: TimeInterval, rules: QueueRules)]]
    private(set) var jobs: [Job]

    /// - Parameter now: the end of rows that have not ended.
    init(_ record: TimelineRecord, at now: Date) {
        let rows = record.rows
        let origin = rows.map(\.added).min() ?? now
        func seconds(_ date: Date) -> TimeInterval { Self.bounded(date.timeIntervalSince(origin)) }
        self.origin = origin
        let queues = Array(Set(rows.compactMap(\.queue)))
        self.queues = queues
        let numbers = Dictionary(uniqueKeysWithValues: zip(queues, queues.indices))
        rules = queues.map { queue in (record.rules[queue] ?? []).map { (seconds($0.date), $0.rules) } }
        func index(_ key: TimelineRecord.Key) -> Int? { record.numbers[key].map { $0 - record.firstNumber } }
        jobs = rows.map { row in
            let added = seconds(row.added)
            return Job(
                row: row,
                name: TimelineRecord.text(row.name),
                added: added,
                ended: max(added, seconds(row.ended ?? now)),
                queue: row.isToldByQueue ? row.queue.flatMap { numbers[$0] } : nil,
                parent: row.parent.flatMap(index),
                dependencies: Array(Set(row.dependencies.compactMap { index($0.key) })).sorted(),
                neverStarts: row.started == nil && row.outcome != .dependencyFailed
            )
        }
        findParts()
        findOrigins()
        findLeads()
    }

    /// Finds the parts between which a job gave up its slot by itself. The time in which an urgent job had the slot
    /// belongs to no part.
    private mutating func findParts() {
        for index in jobs.indices {
            let job = jobs[index]
            let row = job.row
            func time(_ date: Date) -> TimeInterval {
                min(max(Self.bounded(date.timeIntervalSince(origin)), job.added), job.ended)
            }
            let delays = row.waits.filter { if case .retry = $0.kind { true } else { false } }.map { wait in
                (time(wait.span.start), min(time(wait.span.end ?? .distantFuture), time(wait.limit ?? .distantFuture)))
            }
            func delay(_ start: TimeInterval, _ end: TimeInterval) -> TimeInterval {
                min(delays.reduce(0) { $0 + max(0, min($1.1, end) - max($1.0, start)) }, max(0, end - start))
            }
            var parts: [Part] = []
            var isYielded = false
            for slot in row.slots {
                let start = time(slot.span.start)
                let end = max(start, time(slot.span.end ?? .distantFuture))
                let requested = min(start, time(slot.requested))
                if isYielded, let last = parts.indices.last {
                    parts[last].run += end - start
                    parts[last].runDelay += delay(start, end)
                    parts[last].end = end
                } else {
                    let before = parts.last?.end ?? requested
                    parts.append(
                        Part(
                            wait: max(0, requested - before),
                            run: end - start,
                            waitDelay: delay(before, requested),
                            runDelay: delay(start, end),
                            requested: requested,
                            start: start,
                            end: end
                        )
                    )
                }
                isYielded = slot.isYielded
            }
            jobs[index].parts = parts
            jobs[index].tail = parts.last.map { max(0, job.ended - $0.end) } ?? 0
        }
    }

    private mutating func findOrigins() {
        var steps: [Int: Int] = [:]
        var lastEnds: [Int: TimeInterval] = [:]
        for index in jobs.indices {
            // A child that came before its group's start was added by the user.
            guard let parent = jobs[index].parent, jobs.indices.contains(parent), parent != index,
                let started = jobs[parent].parts.first?.start, jobs[index].added >= started
            else { continue }
            let added = jobs[index].added
            if jobs[parent].row.group?.isChain == true, let before = steps[parent], jobs[before].ended <= added {
                jobs[index].origin = .end(of: before)
                jobs[index].offset = added - jobs[before].ended
            } else {
                jobs[index].origin = .start(of: parent)
                jobs[index].offset = added - started
            }
            steps[parent] = index
            jobs[parent].childCount += 1
            lastEnds[parent] = max(lastEnds[parent] ?? 0, jobs[index].ended)
        }
        for (parent, end) in lastEnds { jobs[parent].tail = max(0, jobs[parent].ended - end) }
    }

    private mutating func findLeads() {
        var lastEnds = [TimeInterval](repeating: 0, count: queues.count)
        var barrierEnds = lastEnds
        for index in jobs.indices {
            let job = jobs[index]
            guard let queue = job.queue else { continue }
            var base = job.dependencies.reduce(job.added) { max($0, jobs[$1].ended) }
            if job.row.admission.isBarrier {
                base = max(base, lastEnds[queue])
                barrierEnds[queue] = max(barrierEnds[queue], job.ended)
            } else if job.parent == nil {
                base = max(base, barrierEnds[queue])
            }
            lastEnds[queue] = max(lastEnds[queue], job.ended)
            let lead = max(0, (job.parts.first?.requested ?? base) - base)
            // The graph releases a dependent together with the end of its dependency, and only the two dates differ. The
            // first of several dependents must not be last because its start was posted later.
            jobs[index].lead = lead < 1e-3 && base > job.added ? 0 : lead
        }
        joinBursts()
    }

    /// Gives jobs that were added together, and therefore requested their slots together, one time at which they do so.
    /// Only then does the one with the highest priority start first, as it did.
    private mutating func joinBursts() {
        var bursts: [[Int?]: Int] = [:]
        for index in jobs.indices where jobs[index].queue != nil && jobs[index].dependencies.isEmpty {
            let job = jobs[index]
            guard !job.neverStarts, !job.row.admission.isBarrier else { continue }
            let key = [job.queue, job.parent]
            guard let burst = bursts[key], case let first = jobs[burst],
                job.added < first.added + first.lead, abs(job.added + job.lead - first.added - first.lead) < 1e-3
            else {
                bursts[key] = index
                continue
            }
            jobs[index].lead = first.added + first.lead - job.added
        }
    }

    /// Returns the time within some thirty years, so that sums of times stay exact enough to order events.
    private static func bounded(_ time: TimeInterval) -> TimeInterval {
        time.isNaN ? 0 : min(max(time, -1e9), 1e9)
    }
}
