import EasyNetwork
import Foundation
import SampleSupport

/// Jobs with their dependencies, batches and limits, as data.
///
/// ```json
/// {"limit": 4, "jobs": [
///     {"id": "login", "api": "sign-in", "with": {"name": "ada"}},
///     {"id": "me", "api": "me", "after": ["login"], "priority": "high"}]}
/// ```
struct Plan: Decodable {
    struct Job: Decodable {
        let id: String
        let api: String
        var with: [String: Scalar]?
        /// The ids of the jobs and batches that must succeed first.
        var after: [String]?
        var priority: String?
        var tags: Set<String>?
        /// The deadline in seconds from the start of the plan, including all waits.
        var deadline: Double?
    }

    struct Batch: Decodable {
        let id: String
        let jobs: [String]
        /// The number of the batch's jobs at a time.
        var limit: Int?
        var policy: Policy?
    }

    enum Policy: String, Decodable {
        case failFast, collectAll
    }

    static let priorities: [String: Operation.QueuePriority] = [
        "veryLow": .veryLow, "low": .low, "normal": .normal, "high": .high, "veryHigh": .veryHigh,
    ]

    /// A string, a number or a Boolean of JSON, in the form that it has on the command line.
    struct Scalar: Decodable {
        let text: String

        init(_ text: String) {
            self.text = text
        }

        init(from decoder: any Decoder) throws {
            let value = try decoder.singleValueContainer()
            if let string = try? value.decode(String.self) {
                text = string
            } else if let bool = try? value.decode(Bool.self) {
                text = "\(bool)"
            } else if let int = try? value.decode(Int.self) {
                text = "\(int)"
            } else if let double = try? value.decode(Double.self) {
                text = "\(double)"
            } else {
                throw DecodingError.dataCorruptedError(
                    in: value,
                    debugDescription: "must be a string, a number or a Boolean"
                )
            }
        }
    }

    var jobs: [Job]
    var batches: [Batch]?
    /// The number of jobs at a time: in total, for each host, and for each of these tags.
    var limit: Int?
    var hostLimit: Int?
    var tagLimits: [String: Int]?

    /// Creates a plan with one job.
    init(api: String, values: [String: String]) {
        jobs = [Job(id: api, api: api, with: values.mapValues(Scalar.init))]
    }

    /// - Throws: A ``Misuse`` that names the place, such as `jobs[1].after[0]: there is no job or batch "x"`.
    init(json: Data) throws {
        let tree: Any
        do { tree = try JSONSerialization.jsonObject(with: json) } catch {
            let reason = (error as NSError).userInfo[NSDebugDescriptionErrorKey] ?? error.localizedDescription
            throw Misuse("the plan is not valid JSON: \(reason)")
        }
        do { self = try JSONDecoder().decode(Plan.self, from: json) } catch let error as DecodingError {
            throw Misuse(error.placeAndReason)
        }
        try checkKeys(tree as? [String: Any] ?? [:])
        try checkNumbers()
        try checkIDs()
    }

    // MARK: - Checks

    /// Rejects unknown keys, which a decoder ignores. A misspelled `after` would change the order.
    private func checkKeys(_ plan: [String: Any]) throws(Misuse) {
        func check(_ object: Any, _ known: String, at place: String = "") throws(Misuse) {
            let known = known.components(separatedBy: ", ")
            let given = (object as? [String: Any])?.keys.sorted() ?? []
            if let unknown = given.first(where: { !known.contains($0) }) {
                throw Misuse("\(place)\(unknown): is unknown; the keys are \(known.joined(separator: ", "))")
            }
        }
        try check(plan, "jobs, batches, limit, hostLimit, tagLimits")
        for (index, job) in (plan["jobs"] as? [Any] ?? []).enumerated() {
            try check(job, "id, api, with, after, priority, tags, deadline", at: "jobs[\(index)].")
        }
        for (index, batch) in (plan["batches"] as? [Any] ?? []).enumerated() {
            try check(batch, "id, jobs, limit, policy", at: "batches[\(index)].")
        }
    }

    /// Rejects unknown priorities, deadlines that are not positive, and limits that would let no job start.
    private func checkNumbers() throws(Misuse) {
        for (index, job) in jobs.enumerated() {
            if let deadline = job.deadline, deadline <= 0 {
                throw Misuse("jobs[\(index)].deadline: \(deadline) must be a number above 0")
            }
            guard let priority = job.priority, Self.priorities[priority] == nil else { continue }
            throw Misuse("jobs[\(index)].priority: there is no priority \"\(priority)\"")
        }
        var limits = [("limit", limit), ("hostLimit", hostLimit)]
        limits += (tagLimits ?? [:]).map { ("tagLimits.\($0)", $1) }
        limits += (batches ?? []).enumerated().map { ("batches[\($0)].limit", $1.limit) }
        for case (let place, let limit?) in limits where limit < 1 {
            throw Misuse("\(place): \(limit) must be at least 1")
        }
    }

    private func checkIDs() throws(Misuse) {
        let jobIDs = Set(jobs.map(\.id))
        var places: [String: String] = [:]
        let all = jobs.enumerated().map { ($1.id, "jobs[\($0)]") }
        for (id, place) in all + (batches ?? []).enumerated().map({ ($1.id, "batches[\($0)]") }) {
            if let other = places.updateValue(place, forKey: id) {
                throw Misuse("\(place).id: \"\(id)\" is the id of \(other), too")
            }
        }
        var batched: Set<String> = []
        for (index, batch) in (batches ?? []).enumerated() {
            for (position, id) in batch.jobs.enumerated() {
                let place = "batches[\(index)].jobs[\(position)]"
                guard jobIDs.contains(id) else { throw Misuse("\(place): there is no job \"\(id)\"") }
                guard batched.insert(id).inserted else { throw Misuse("\(place): \"\(id)\" is already in a batch") }
            }
        }
        for (index, job) in jobs.enumerated() {
            for (position, id) in (job.after ?? []).enumerated() where places[id] == nil {
                throw Misuse("jobs[\(index)].after[\(position)]: there is no job or batch \"\(id)\"")
            }
        }
        if let circle, let place = places[circle[0]] {
            throw Misuse("\(place): waits for itself: \(circle.joined(separator: " → "))")
        }
    }

    /// The ids of a dependency cycle, with the first one repeated at the end; `nil` if there is none.
    private var circle: [String]? {
        // The jobs and batches that each job or batch waits for. Those that will end are removed.
        var causes = Dictionary(uniqueKeysWithValues: jobs.map { ($0.id, Set($0.after ?? [])) })
        for batch in batches ?? [] { causes[batch.id] = Set(batch.jobs) }
        var dependents: [String: [String]] = [:]
        for (id, others) in causes { for other in others { dependents[other, default: []].append(id) } }
        var ended = causes.filter(\.value.isEmpty).map(\.key)
        while let id = ended.popLast() {
            causes[id] = nil
            for dependent in dependents[id] ?? [] {
                causes[dependent]?.remove(id)
                if causes[dependent]?.isEmpty == true { ended.append(dependent) }
            }
        }
        var path: [String] = []
        var next = causes.keys.min()
        while let id = next {
            if let start = path.firstIndex(of: id) { return path[start...] + [id] }
            path.append(id)
            next = causes[id]?.min()
        }
        return nil
    }
}

extension DecodingError {
    /// `jobs[1].api: is missing`.
    fileprivate var placeAndReason: String {
        func line(_ path: [any CodingKey], _ reason: String) -> String {
            let place = path.reduce("") { place, key in
                if let index = key.intValue { return "\(place)[\(index)]" }
                return place.isEmpty ? key.stringValue : "\(place).\(key.stringValue)"
            }
            return place.isEmpty ? reason : "\(place): \(reason)"
        }
        switch self {
        case .keyNotFound(let key, let context): return line(context.codingPath + [key], "is missing")
        case .typeMismatch(_, let context), .valueNotFound(_, let context), .dataCorrupted(let context):
            return line(context.codingPath, context.debugDescription)
        @unknown default: return localizedDescription
        }
    }
}
