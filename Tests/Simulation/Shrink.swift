import Foundation

/// Makes a history that breaks a law smaller, as long as it breaks the same law.
struct Shrinker {
    private let law: String
    private var triesLeft: Int
    private(set) var best: History

    init(_ history: History, law: String, tries: Int = 3_000) {
        (best, self.law, triesLeft) = (history, law, tries)
    }

    mutating func shrink() {
        var isSmaller = true
        while isSmaller, triesLeft > 0 {
            isSmaller = false
            for size in [8, 4, 2, 1] {
                isSmaller = removeParts(size) || isSmaller
            }
            for simpler in Self.simplifications { isSmaller = take(simpler) || isSmaller }
        }
    }

    /// Tries without some jobs, acts and faults in a row.
    private mutating func removeParts(_ size: Int) -> Bool {
        func ranges(_ count: Int) -> [Range<Int>] {
            stride(from: count - size, through: 0, by: -size).map { $0..<$0 + size }
        }
        var isSmaller = false
        for range in ranges(best.jobs.count) where best.jobs.count > size && range.upperBound <= best.jobs.count {
            isSmaller = take { $0.removeJobs(range) } || isSmaller
        }
        for range in ranges(best.acts.count) where range.upperBound <= best.acts.count {
            isSmaller = take { $0.acts.removeSubrange(range) } || isSmaller
        }
        for range in ranges(best.faults.count) where range.upperBound <= best.faults.count {
            isSmaller = take { $0.faults.removeSubrange(range) } || isSmaller
        }
        return isSmaller
    }

    private mutating func take(_ change: (inout History) -> Void) -> Bool {
        var smaller = best
        change(&smaller)
        guard triesLeft > 0, "\(smaller)" != "\(best)" else { return false }
        let seed = smaller.seed
        // Another order of the work may be needed now.
        for offset in 0..<4 {
            triesLeft -= 1
            smaller.seed = seed &+ UInt64(offset) &* 1_000_003
            if smaller.live().law == law {
                best = smaller
                return true
            }
        }
        return false
    }

    private typealias Change = @Sendable (inout History) -> Void

    private static func resources(_ change: @escaping @Sendable (inout History.Resource) -> Void) -> Change {
        { history in for index in history.settings.resources.indices { change(&history.settings.resources[index]) } }
    }

    private static func jobs(_ change: @escaping @Sendable (inout History.Job) -> Void) -> Change {
        { history in for index in history.jobs.indices { change(&history.jobs[index]) } }
    }

    private static let simplifications: [Change] = [
        { $0.settings.order = .oldest }, { $0.settings.isSlow = false }, { $0.settings.interruption = 0 },
        { $0.settings.listens = false }, { $0.settings.hostLimit = -1 }, { $0.settings.rate = nil },
        { $0.settings.tagLimits = [-1, -1, -1] }, { $0.settings.circuit = .none }, { $0.settings.limit = -1 },
        { $0.settings.hasReachability = false }, { $0.settings.savesTokens = false },
        { $0.settings.rotatesTokens = false }, { $0.settings.tokenLife = 1_000 }, resources { $0.redirect = nil },
        resources { $0.maximumAge = nil }, resources { $0.isPrivate = false }, resources { $0.pieceCount = 1 },
        resources { $0.delay = 0.02 }, jobs { $0.after = [] }, jobs { $0.tags = [] }, jobs { $0.priority = 0 },
        jobs { $0.at = 0 }, jobs { $0.deadline = nil }, jobs { $0.caching = .none }, jobs { $0.joins = false },
        jobs { ($0.isAwaited, $0.hasAccessory) = (false, false) }, jobs { $0.condition = nil }, jobs { $0.host = 0 },
    ]
}

extension History {
    /// Without some jobs, and what is about them.
    mutating func removeJobs(_ range: Range<Int>) {
        func place(_ number: Int) -> Int? {
            range.contains(number) ? nil : number < range.lowerBound ? number : number - range.count
        }
        jobs.removeSubrange(range)
        for index in jobs.indices {
            jobs[index].number = index
            jobs[index].after = jobs[index].after.compactMap(place)
            jobs[index].children = jobs[index].children.compactMap(place)
        }
        acts = acts.compactMap { act in
            var act = act
            if case .callback(let job) = act.moment {
                guard let job = place(job) else { return nil }
                act.moment = .callback(job)
            }
            switch act.deed {
            case .cancel(let job): act.deed = place(job).map { .cancel($0) } ?? .goOn
            case .pause(let job): act.deed = place(job).map { .pause($0) } ?? .goOn
            case .resume(let job): act.deed = place(job).map { .resume($0) } ?? .goOn
            case .priority(let job, let priority): act.deed = place(job).map { .priority($0, priority) } ?? .goOn
            case .deadline(let job, let seconds): act.deed = place(job).map { .deadline($0, seconds) } ?? .goOn
            default: break
            }
            return act
        }
    }

    /// The history in words: what is not as usual.
    var text: String {
        let usual = Job(number: 0)
        var lines = ["seed \(seed)", "settings" + Self.text(of: settings, but: Settings())]
        for resource in settings.resources { lines.append("resource" + Self.text(of: resource, but: Resource())) }
        for job in jobs { lines.append("job \(job.number): \(job.kind)" + Self.text(of: job, but: usual)) }
        for mail in mails { lines.append("mail \(mail.number)" + Self.text(of: mail, but: Mail(number: 0))) }
        for act in acts { lines.append("\(act.moment): \(act.deed)") }
        for fault in faults { lines.append("message \(fault.message): \(fault.kind)") }
        return lines.joined(separator: "\n")
    }

    private static func text<Value>(of value: Value, but usual: Value) -> String {
        zip(Mirror(reflecting: value).children, Mirror(reflecting: usual).children).map { field, usual in
            let (text, usually) = ("\(field.value)", "\(usual.value)")
            let isShown = text != usually && !["number", "kind", "resources"].contains(field.label)
            return isShown ? " \(field.label ?? "")=\(text)" : ""
        }.joined()
    }
}
