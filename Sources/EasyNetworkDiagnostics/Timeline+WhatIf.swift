import EasyNetwork
import Foundation

extension Timeline {
    /// Predicts how the recorded jobs would have run under other rules.
    ///
    /// ```swift
    /// let prediction = await timeline.whatIf {
    ///     $0.maximumConcurrentOperationCount = 8
    ///     $0.multiplyDuration(of: "GetProfile", by: 0.5)
    ///     $0.removeDependency(of: "Avatar", on: "Settings")
    /// }
    /// print(prediction)   // 1.24 s instead of 1.87 s: 8 jobs at once; …
    /// ```
    ///
    /// The jobs are run again, in simulated time, by the code that admits the jobs of a ``/EasyNetwork/NetworkQueue``,
    /// with the recorded limits, rates, priorities and dependencies as far as they are not changed. Each job takes as
    /// long as recorded, and ends as recorded, with success or failure. Responses from a cache, responses that jobs
    /// share, waits for credentials and open circuits stay as recorded. A job is added at the recorded time; the
    /// children of a batch or a chain come with it. A job that has not ended counts as if it ended now.
    ///
    /// The load of a server is not modelled: if more requests at once make a real server slower, the prediction is too
    /// early. Neither is the load of the network.
    ///
    /// - Parameter change: changes the rules. Called once, in the background.
    public func whatIf(_ change: @escaping @Sendable (inout Changes) -> Void) async -> Prediction {
        let record = await settledRecord()
        let now = clock.date
        return await WorkQueue.task {
            var changes = Changes()
            change(&changes)
            return Prediction(record, now, changes)
        }.value
    }

    /// Tries the obvious changes, and returns those after which the last job ends earlier, the best one first: each
    /// limit one higher, each dependency removed, each delay before a retry removed.
    ///
    /// ```swift
    /// for suggestion in await timeline.suggestions() {
    ///     print(suggestion)   // 0.213 s earlier: 7 jobs at once
    /// }
    /// ```
    ///
    /// A dependency whose item becomes a part of the request, as with `then`, is not removed. The timeline doesn't know
    /// whether a job needs its dependency for another reason, and whether a server can handle the higher limit.
    ///
    /// Of many possible changes, those are tried that concern the critical path or the longest delays: at most 200, or
    /// fewer in a recording with more than 5,000 rows. If the task is cancelled, the result is incomplete.
    public func suggestions() async -> [Suggestion] {
        let record = await settledRecord()
        let now = clock.date
        return await WorkQueue.task { Self.suggestions(TimelinePlan(record, at: now), record, now) }.joined()
    }

    /// A change that would have let the last job end earlier: see ``Timeline/suggestions()``.
    ///
    /// ```swift
    /// let prediction = await timeline.whatIf { $0 = suggestion.changes }
    /// ```
    public struct Suggestion: Sendable, CustomStringConvertible {
        /// The change.
        public let changes: Changes
        /// The number of seconds by which the last job would have ended earlier.
        public let seconds: TimeInterval

        /// The seconds and the change, such as `0.213 s earlier: 7 jobs at once`.
        public var description: String { "\(String(format: "%.3g", seconds)) s earlier: \(changes)" }
    }

    /// What would have happened under other rules: see ``Timeline/whatIf(_:)``. Times are in seconds from the first
    /// event of the recording.
    ///
    /// ```swift
    /// let prediction = await timeline.whatIf { $0.maximumConcurrentOperationCount = 8 }
    /// print(prediction.text())
    /// try Data(prediction.html().utf8).write(to: URL(fileURLWithPath: "what-if.html"))
    /// ```
    public struct Prediction: Sendable, CustomStringConvertible {
        /// A job or a call of a prediction.
        ///
        /// ```swift
        /// for job in prediction.criticalPath { print(job.name, job.end ?? .infinity) }
        /// ```
        public struct Job: Sendable {
            /// The name, as in the pages of the timeline.
            public let name: String
            /// The predicted start; `nil` if the job does not start.
            public let start: TimeInterval?
            /// The predicted end; `nil` if the job waits forever.
            public let end: TimeInterval?
            /// The recorded start; `nil` if the job did not start.
            public let recordedStart: TimeInterval?
            /// The recorded end, or the time of the prediction for a job that has not ended.
            public let recordedEnd: TimeInterval
            /// Whether the job is on the predicted critical path.
            public let isCritical: Bool
        }

        /// The predicted end of the last job; `nil` if a job waits forever.
        public let end: TimeInterval?
        /// The recorded end of the last job.
        public let recordedEnd: TimeInterval
        /// The jobs and calls, in the order of the recording.
        public let jobs: [Job]
        /// The names in the changes that no job of the recording has.
        public let unknownNames: [String]
        /// The changes.
        public let changes: Changes
        private let picture: TimelinePicture

        /// The jobs that decide the predicted end, in the order in which they end.
        public var criticalPath: [Job] {
            jobs.filter(\.isCritical).sorted { $0.end ?? .infinity < $1.end ?? .infinity }
        }

        /// The ends and the changes in one line.
        public var description: String { picture.summary }

        /// Returns both timelines as an HTML page like that of ``Timeline/html(title:)``, the recorded one above the
        /// predicted one.
        ///
        /// - Parameter title: the heading of the page. Defaults to `What if`.
        public func html(title: String = "What if") -> String { picture.html(title: title) }

        /// Returns both timelines as lines for a terminal with a fixed-width font.
        ///
        /// - Parameter width: the number of columns, at least 40. Defaults to 100.
        public func text(width: Int = 100) -> String { picture.lines(width: width).joined(separator: "\n") + "\n" }

        init(_ record: TimelineRecord, _ now: Date, _ changes: Changes) {
            let plan = TimelinePlan(record, at: now)
            var replay = TimelineReplay(plan, changes)
            replay.run()
            let recorded = TimelinePicture(record, at: now)
            let predicted = TimelinePicture(replay.record(record), at: plan.origin.addingTimeInterval(replay.lastTime))
            jobs = zip(plan.jobs, replay.progress).enumerated().map { index, pair in
                let (job, progress) = pair
                return Job(
                    name: job.name,
                    start: progress.started,
                    end: progress.ended,
                    recordedStart: job.parts.first?.start,
                    recordedEnd: job.ended,
                    isCritical: predicted.rows[index].isCritical
                )
            }
            (end, recordedEnd) = (replay.end, plan.end)
            self.changes = changes
            let known = Set(plan.jobs.lazy.flatMap { [$0.name, $0.row.name] })
            unknownNames = changes.names.subtracting(known).sorted()
            var summary = "\(end.map { TimelinePicture.time($0 * 1_000) } ?? "no end")"
            summary += " instead of \(TimelinePicture.time(recordedEnd * 1_000)): \(changes)"
            if !unknownNames.isEmpty {
                let names = unknownNames.prefix(5).map { TimelineRecord.text("'\($0)'") }.joined(separator: ", ")
                summary += "; no job has the name \(names)"
            }
            picture = TimelinePicture(recorded, above: predicted, summary: summary)
        }
    }

    static func suggestions(_ plan: TimelinePlan, _ record: TimelineRecord, _ now: Date) -> [Suggestion] {
        guard !plan.jobs.isEmpty, let end = end(of: plan, Changes()) else { return [] }
        let count = max(10, min(200, 1_000_000 / plan.jobs.count))
        let critical = TimelinePicture(record, at: now).rows.map(\.isCritical)
        var found: [Suggestion] = []
        for change in plan.obviousChanges(critical).prefix(count) {
            if Task.isCancelled { break }
            var changes = Changes()
            changes.list = [change]
            guard let other = Self.end(of: plan, changes), end - other > 1e-6 else { continue }
            found.append(Suggestion(changes: changes, seconds: end - other))
        }
        let order = found.indices.sorted { (-found[$0].seconds, $0) < (-found[$1].seconds, $1) }
        return order.map { found[$0] }
    }

    private static func end(of plan: TimelinePlan, _ changes: Changes) -> TimeInterval? {
        var replay = TimelineReplay(plan, changes)
        replay.run()
        return replay.end
    }
}

extension TimelinePlan {
    /// The end of the last row.
    var end: TimeInterval { jobs.reduce(0) { max($0, $1.ended) } }

    /// Returns the changes to try, the most promising ones first.
    ///
    /// - Parameter isCritical: whether each row is on the critical path.
    fileprivate func obviousChanges(_ isCritical: [Bool]) -> [Timeline.Changes.Change] {
        var limits: [Timeline.Changes.Change] = []
        func raise(_ scope: Timeline.Changes.Scope, _ current: [Int?]) {
            // Without one limit for all queues, a new one would change several things at once.
            let known = Set(current)
            if known.count == 1, let limit = known.first ?? nil, limit < .max {
                limits.append(.limit(scope, limit + 1))
            }
        }
        let rules = rules.compactMap { $0.last?.rules }
        raise(.queue, rules.map { $0.limits[.queueLane] })
        raise(.hosts, rules.map(\.hostLimit))
        for key in Set(rules.flatMap(\.limits.keys)) {
            let current = rules.map { $0.limits[key] }
            switch key {
            case .host(let host): raise(.host(host), current)
            case .tag(let tag): raise(.tag(tag), current)
            case .queueLane, .exclusion, .group: break
            }
        }
        var batches: [String: Set<Int>] = [:]
        var edges: [[String]: (change: Timeline.Changes.Change, isCritical: Bool)] = [:]
        var delays: [String: TimeInterval] = [:]
        for (index, job) in jobs.enumerated() {
            if let group = job.row.group, group.limit > 0, !group.isChain {
                batches[job.name, default: []].insert(group.limit)
            }
            let delay = job.parts.reduce(0) { $0 + $1.waitDelay + $1.runDelay }
            if delay > 0 { delays[job.name, default: 0] += delay }
            guard !job.row.isMadeFromItems, !job.neverStarts, job.row.outcome != .dependencyFailed else { continue }
            for other in job.dependencies where jobs[other].name != job.name {
                let isOnPath = isCritical[index] && isCritical[other]
                let known = edges[[job.name, jobs[other].name]]?.isCritical ?? false
                edges[[job.name, jobs[other].name]] = (.dependency(job.name, on: jobs[other].name), known || isOnPath)
            }
        }
        for (name, sizes) in batches { raise(.batch(name), Array(sizes)) }
        let onPath = edges.filter(\.value.isCritical), offPath = edges.filter { !$0.value.isCritical }
        func sorted(_ edges: [[String]: (change: Timeline.Changes.Change, isCritical: Bool)]) -> [Timeline.Changes
            .Change]
        {
            edges.sorted { $0.key.lexicographicallyPrecedes($1.key) }.map(\.value.change)
        }
        return limits.sorted { $0.description < $1.description } + sorted(onPath)
            + delays.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map { .retryDelays($0.key) } + sorted(offPath)
    }
}

extension TimelineReplay {
    /// The end of the last job; `nil` if a job waits forever.
    var end: TimeInterval? {
        progress.allSatisfy { $0.ended != nil } ? progress.reduce(0) { max($0, $1.ended ?? 0) } : nil
    }

    /// The time of the last event.
    var lastTime: TimeInterval { progress.reduce(0) { max($0, $1.ended ?? 0, $1.started ?? 0, $1.added ?? 0) } }

    /// Returns the recording as it would have been, with the messages, responses from caches and other waits of each row
    /// moved with the parts in which they happened.
    func record(_ record: TimelineRecord) -> TimelineRecord {
        var record = record
        let indices = Dictionary(zip(record.rows.map(\.key), record.rows.indices)) { $1 }
        record.replaceRows { index, row in
            let (job, progress) = (plan.jobs[index], progress[index])
            func date(_ time: TimeInterval) -> Date { plan.origin.addingTimeInterval(time) }
            var map = TimeMap()
            let added = progress.added ?? lastTime
            map.add(job.added, added)
            for (number, part) in job.parts.enumerated() {
                guard let first = progress.slots.first(where: { $0.part == number }),
                    let last = progress.slots.last(where: { $0.part == number })
                else { break }
                map.add(part.requested, first.requested)
                map.add(part.start, first.start)
                map.add(part.end, last.end ?? lastTime)
            }
            map.add(job.ended, progress.ended ?? lastTime)
            func moved(_ date: Date) -> Date {
                plan.origin.addingTimeInterval(map.map(date.timeIntervalSince(plan.origin)))
            }
            func moved(_ span: TimelineRecord.Span) -> TimelineRecord.Span {
                TimelineRecord.Span(start: moved(span.start), end: span.end.map(moved))
            }
            var new = row
            new.added = date(added)
            new.started = progress.started.map(date)
            new.ended = progress.ended.map(date)
            if progress.ended == nil { new.outcome = .unfinished }
            new.priority = priority(of: index)
            new.dependencies.removeAll { other in indices[other.key].map { isRemoved(index, on: $0) } ?? false }
            new.slots = progress.slots.enumerated().map { number, slot in
                let isLast = number + 1 == progress.slots.count || progress.slots[number + 1].part != slot.part
                return TimelineRecord.Slot(
                    span: TimelineRecord.Span(start: date(slot.start), end: slot.end.map(date)),
                    requested: date(slot.requested),
                    isYielded: !isLast
                )
            }
            // The graph decides again about the waits for jobs and slots. The row keeps its other waits.
            new.waits.removeAll { wait in
                switch wait.kind {
                case .job: true
                case .queue(let reason): TimelinePicture.words(for: reason).kind == "slot"
                case .retry, .credential, .circuit: false
                }
            }
            for index in new.waits.indices {
                new.waits[index].span = moved(new.waits[index].span)
                new.waits[index].limit = new.waits[index].limit.map(moved)
            }
            func wait(_ kind: TimelineRecord.Wait.Kind, _ start: TimeInterval, _ end: TimeInterval) {
                guard end > start else { return }
                let span = TimelineRecord.Span(start: date(start), end: date(end))
                new.waits.append(TimelineRecord.Wait(number: 0, kind: kind, span: span))
            }
            if !new.dependencies.isEmpty { wait(.job, added, progress.released ?? progress.ended ?? lastTime) }
            for slot in progress.slots { wait(.queue(slot.reason), slot.requested, slot.start) }
            let factor = factor(of: index)
            for index in new.attempts.indices {
                new.attempts[index].span = moved(new.attempts[index].span)
                if factor != 1 { new.attempts[index].metrics?.scale(by: factor) }
            }
            new.cache = row.cache.map { (moved($0.date), $0.miss) }
            return new
        }
        return record
    }

    /// The predicted times of recorded times: in proportion between known pairs.
    private struct TimeMap {
        private var pairs: [(old: TimeInterval, new: TimeInterval)] = []

        mutating func add(_ old: TimeInterval, _ new: TimeInterval) {
            pairs.append((max(old, pairs.last?.old ?? old), max(new, pairs.last?.new ?? new)))
        }

        func map(_ time: TimeInterval) -> TimeInterval {
            guard let index = pairs.lastIndex(where: { $0.old <= time }) else { return pairs.first?.new ?? time }
            let (first, next) = (pairs[index], index + 1 < pairs.count ? pairs[index + 1] : nil)
            guard let next else { return first.new + time - first.old }
            return first.new + (time - first.old) / (next.old - first.old) * (next.new - first.new)
        }
    }
}

extension TransportMetrics {
    /// Makes each phase longer or shorter.
    fileprivate mutating func scale(by factor: Double) {
        total *= factor
        wait *= factor
        (nameLookup, connect) = (nameLookup.map { $0 * factor }, connect.map { $0 * factor })
        (tls, firstByte) = (tls.map { $0 * factor }, firstByte.map { $0 * factor })
    }
}
