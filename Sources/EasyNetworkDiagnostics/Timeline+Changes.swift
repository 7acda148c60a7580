import EasyNetwork
import Foundation

extension Timeline {
    /// Changes of what was recorded, for ``Timeline/whatIf(_:)``. Without changes, everything is as recorded.
    ///
    /// ```swift
    /// let prediction = await timeline.whatIf {
    ///     $0.maximumConcurrentOperationCount = 8
    ///     $0.multiplyDuration(of: "GetProfile", by: 0.5)
    ///     $0.removeDependency(of: "Avatar", on: "Settings")
    /// }
    /// ```
    ///
    /// A name stands for all jobs with this name in the timeline. A limit or a rate applies to all recorded queues,
    /// from the beginning to the end. As in ``/EasyNetwork/NetworkQueue``, a negative limit means no limit, and with 0,
    /// no job starts. Of two changes of the same thing, the later one counts.
    public struct Changes: Sendable, CustomStringConvertible {
        /// What a limit or a rate applies to.
        enum Scope: Hashable, Sendable {
            case queue
            /// Each host without a limit of its own.
            case hosts
            case host(String)
            case tag(String)
            /// The batches with this name.
            case batch(String)
        }

        enum Change: Hashable, Sendable {
            case limit(Scope, Int)
            case rate(Scope, RateLimit?)
            case priority(String, JobPriority)
            case duration(String, Double)
            case dependency(String, on: String)
            case retryDelays(String)
        }

        var list: [Change] = []

        /// Creates changes that change nothing.
        public init() {}

        /// The number of jobs of a queue that run at once. Defaults to `nil`: as recorded.
        public var maximumConcurrentOperationCount: Int? {
            get { limit(of: .queue) }
            set { setLimit(newValue, of: .queue) }
        }

        /// The number of jobs that run at once for each host that has no limit of its own. Defaults to `nil`: as
        /// recorded.
        public var maximumConcurrentOperationCountPerHost: Int? {
            get { limit(of: .hosts) }
            set { setLimit(newValue, of: .hosts) }
        }

        /// Changes the number of jobs of this host that run at once.
        public mutating func setMaximumConcurrentOperationCount(_ count: Int, forHost host: String) {
            setLimit(count, of: .host(host.lowercased()))
        }

        /// Changes the number of jobs with this tag that run at once.
        public mutating func setMaximumConcurrentOperationCount(_ count: Int, forTag tag: String) {
            setLimit(count, of: .tag(tag))
        }

        /// Changes the number of children that run at once of the batches with this name. A number below 1 means as
        /// many as the queue allows.
        public mutating func setMaximumConcurrentOperationCount(_ count: Int, ofBatch name: String) {
            setLimit(count < 1 ? -1 : count, of: .batch(name))
        }

        /// Changes the rate at which jobs start, for all hosts together. `nil` means no limit.
        public mutating func setRateLimit(_ rate: RateLimit?) { list.append(.rate(.queue, rate)) }

        /// Changes the rate at which jobs of this host start. `nil` means no limit.
        public mutating func setRateLimit(_ rate: RateLimit?, forHost host: String) {
            list.append(.rate(.host(host.lowercased()), rate))
        }

        /// Changes the rate at which jobs with this tag start. `nil` means no limit.
        public mutating func setRateLimit(_ rate: RateLimit?, forTag tag: String) {
            list.append(.rate(.tag(tag), rate))
        }

        /// Changes the priority of jobs.
        public mutating func setPriority(_ priority: Operation.QueuePriority, of name: String) {
            list.append(.priority(name, JobPriority(priority)))
        }

        /// Changes the time for which jobs run. The times between attempts stay as recorded, such as the delay before a
        /// retry. A batch or a chain has no duration of its own, so name its children. Several factors for one name are
        /// multiplied.
        ///
        /// - Parameters:
        ///   - name: the name of the jobs.
        ///   - factor: the factor, from 0 to 1,000. A value outside is replaced by the nearest; NaN counts as 1.
        public mutating func multiplyDuration(of name: String, by factor: Double) {
            list.append(.duration(name, factor.isNaN ? 1 : min(max(0, factor), 1_000)))
        }

        /// Makes jobs start without waiting for others.
        ///
        /// - Parameters:
        ///   - name: the name of the jobs that waited.
        ///   - other: the name of the jobs that they waited for.
        public mutating func removeDependency(of name: String, on other: String) {
            list.append(.dependency(name, on: other))
        }

        /// Makes jobs send their next attempt at once.
        public mutating func removeRetryDelays(of name: String) { list.append(.retryDelays(name)) }

        private func limit(of scope: Scope) -> Int? {
            list.lazy.reversed().compactMap { change in
                if case .limit(scope, let count) = change { count } else { nil }
            }.first
        }

        private mutating func setLimit(_ count: Int?, of scope: Scope) {
            list.removeAll { if case .limit(scope, _) = $0 { true } else { false } }
            if let count { list.append(.limit(scope, count)) }
        }

        /// The names of jobs that the changes contain.
        var names: Set<String> {
            list.reduce(into: []) { names, change in
                switch change {
                case .limit(.batch(let name), _), .priority(let name, _), .duration(let name, _),
                    .retryDelays(let name):
                    names.insert(name)
                case .dependency(let name, let other): names.formUnion([name, other])
                case .limit, .rate: break
                }
            }
        }

        /// The changes as a list, such as `8 jobs at once; 'Avatar' does not wait for 'Settings'`.
        public var description: String {
            let text = list.prefix(20).map(\.description).joined(separator: "; ")
            guard !text.isEmpty else { return "no change" }
            return TimelineRecord.text(list.count > 20 ? text + "; …" : text, limit: 2_000)
        }
    }
}

extension Timeline.Changes.Scope {
    /// What follows "jobs at once".
    fileprivate var suffix: String {
        switch self {
        case .queue: ""
        case .hosts: " for each host"
        case .host(let host): " for \(host)"
        case .tag(let tag): " with the tag '\(tag)'"
        case .batch(let name): " of '\(name)'"
        }
    }

    /// The key of the limit in a queue; `nil` for a limit that has no key there.
    var key: LimitKey? {
        switch self {
        case .queue: .queueLane
        case .host(let host): .host(host)
        case .tag(let tag): .tag(tag)
        case .hosts, .batch: nil
        }
    }
}

extension Timeline.Changes.Change: CustomStringConvertible {
    var description: String {
        switch self {
        case .limit(let scope, ..<0): "any number of jobs at once\(scope.suffix)"
        case .limit(let scope, let count): "\(count) \(count == 1 ? "job" : "jobs") at once\(scope.suffix)"
        case .rate(let scope, let rate?):
            "\(rate.count) starts in \(String(format: "%.3g", rate.seconds)) s\(scope.suffix)"
        case .rate(let scope, nil): "no rate limit\(scope.suffix)"
        case .priority(let name, let priority): "'\(name)' with \(priority.word ?? "normal") priority"
        case .duration(let name, let factor): "'\(name)' takes \(String(format: "%.3g", factor)) times as long"
        case .dependency(let name, let other): "'\(name)' does not wait for '\(other)'"
        case .retryDelays(let name): "'\(name)' retries without a delay"
        }
    }
}

extension QueueRules {
    /// Returns the rules with the changed limits and rates.
    func with(_ changes: Timeline.Changes) -> QueueRules {
        var rules = self
        for change in changes.list {
            switch change {
            case .limit(.hosts, let count): rules.hostLimit = count < 0 ? nil : count
            case .limit(let scope, let count): if let key = scope.key { rules.limits[key] = count < 0 ? nil : count }
            case .rate(let scope, let rate): if let key = scope.key { rules.rates[key] = rate }
            case .priority, .duration, .dependency, .retryDelays: break
            }
        }
        return rules
    }
}
