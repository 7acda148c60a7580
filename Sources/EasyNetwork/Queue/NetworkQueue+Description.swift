import Foundation

extension NetworkQueue: CustomStringConvertible {
    /// The name, counts and limits of the queue, which `print` and the debugger show. `graph()` of
    /// EasyNetworkDiagnostics draws the jobs.
    ///
    /// ```swift
    /// print(queue)   // NetworkQueue 'EasyNetwork.shared': 12 jobs, 6 of 6 slots taken, api.example.com 2 of 3
    /// ```
    public var description: String {
        let (count, taken, limit, rules, lanes, shutDownPlace) = state.withLock { state in
            let graph = state.graph
            let lanes = graph.limits.map { ($0.key, $0.value, graph.lanes[$0.key]?.first?.runningCount ?? 0) }
            return (graph.count, graph.queueLane.runningCount, graph.limit, graph.rules, lanes, state.shutDownPlace)
        }
        var parts = ["\(count) \(count == 1 ? "job" : "jobs")"]
        parts.append(limit.map { "\(taken) of \($0) slots taken" } ?? "\(taken) slots taken, no limit")
        if let hostLimit = rules.hostLimit { parts.append("at most \(hostLimit) per host") }
        parts += lanes.compactMap { key, limit, taken in key.text.map { "\($0) \(taken) of \(limit)" } }.sorted()
        if let rate = rules.rates[.queueLane] {
            parts.append("at most \(rate.count) per \(String(format: "%.3g", rate.seconds)) s")
        }
        if rules.isSuspended { parts.append("suspended") }
        if let shutDownPlace { parts.append("shut down at \(shutDownPlace)") }
        // Redact each part by itself, because a secret can extend to the end of its part.
        parts = parts.map(Redaction.standard.redacted)
        return "NetworkQueue '\(Redaction.standard.redacted(queue.name ?? ""))': " + parts.joined(separator: ", ")
    }
}

extension LimitKey {
    /// The text of the limit; `nil` if the limit is described elsewhere.
    fileprivate var text: String? {
        switch self {
        case .host(let host): host
        case .tag(let tag): "tag '\(tag)'"
        case .queueLane, .exclusion, .group: nil
        }
    }
}
