/// What happens in one world: jobs, what users do, and what goes wrong. It follows from a seed, or from choices.
struct History: Sendable {
    /// Decides the order of all work, and the times of the network.
    let seed: UInt64
    private(set) var choices: Choices
    private(set) var settings: Settings
    private(set) var jobs: [Job] = []
    private(set) var mails: [Mail] = []
    private(set) var acts: [Act] = []
    private(set) var faults: [Fault] = []

    struct Settings: Sendable {
        let order: Loop.Order
        let isSlow: Bool
        let interruption: Double
        var limit: Int
        let hostLimit: Int
        var tagLimits: [Int]
        let rate: Int?
        let listens: Bool
        var circuit: Circuit
        let tokenLife: Double
        let rotatesTokens: Bool
        let savesTokens: Bool
        let startsSignedIn: Bool
        let hasCookies: Bool
        let hasReachability: Bool
        let mailLimit: Int
        var resources: [Resource]

        enum Circuit: String { case none, fails, waits }
    }

    /// What lies at an address, `/r/0`, `/f/1`, `/w/2` and so on: something to read, a file, a place to write to.
    struct Resource: Sendable {
        let isPrivate: Bool
        /// Seconds for which an answer is fresh; nil without a field.
        let maximumAge: Int?
        let hasStrongTag: Bool
        let servesRanges: Bool
        /// Pieces in which a body comes, and the seconds between two of them.
        var (pieceCount, pace): (Int, Double)
        /// Seconds that the server takes to answer.
        let delay: Double
        /// Where an answer leads to instead, and by which status.
        let redirect: (status: Int, host: Int)?
        /// A field that the server sends twice.
        let repeatsType: Bool
    }

    struct Job: Sendable {
        enum Kind: String { case get, post, download, upload, older, plain, foreign, batch, chain, stream, events }
        enum Caching: String { case none, http, cacheElseNetwork, cacheThenNetwork }

        let number: Int
        /// Whether it was left out. The others keep their numbers.
        var isRemoved = false
        var kind: Kind
        var resource: Int
        let host: Int
        /// When it is added.
        var at: Double
        var priority: Int
        var tags: [Int]
        var after: [Int]
        let allowsFailure: Bool
        let children: [Int]
        let endsAtFirstFailure: Bool
        var deadline: Double?
        /// For all messages of its request together.
        let timeout: Double?
        let retries: Int
        let hasKey: Bool
        let caching: Caching
        let joins: Bool
        let isAwaited: Bool
        /// Whether its callbacks have a queue of their own.
        let hasOwnQueue: Bool
        let hasAccessory: Bool
        var condition: Int?
        /// Of a plain job: the seconds that it takes.
        var duration: Double
    }

    struct Act: Sendable {
        enum Moment: Hashable, Sendable {
            case at(Double)
            /// In a callback of a job.
            case callback(Int)
            /// When a message reaches its server.
            case message(Int)
            /// While a credential is saved, refreshed, and put into a message.
            case saving, refreshing, authorizing
            /// Before so many pieces of work.
            case step(Int)
        }

        enum Deed: Sendable {
            case cancel(Int), cancelAll, cancelTag(Int), pause(Int), resume(Int)
            case signOut, signIn(Int), suspend, goOn
            case limit(Int), hostLimit(Int), tagLimit(Int, Int), priority(Int, Int), deadline(Int, Double)
            case change(Int), outage(Int, Double), revoke, clock(Double), network(Double)
            case mail(Int), removeMail(Int, Int), retryMail(Int, Int), kill(Int), restart(Int), damage(Int)
            case disk(Double), read(Int, Int), load(Load), cancelLoad(Int), hurryLoad(Int, Int), depend(Int, Int)
            case release(Int)
        }

        let moment: Moment
        let deed: Deed
    }

    /// A resource that a loader is asked for.
    struct Load: Sendable {
        let resource: Int
        let isVariant: Bool
        let ignoresCache: Bool
    }

    /// What becomes of a message, by its number from 0.
    struct Fault: Sendable {
        enum Kind: Sendable {
            /// No connection; or the server has not processed it, as by a GOAWAY.
            case refuse, reject
            /// Lost on its way there, or back.
            case loseRequest, loseAnswer
            /// The body ends after so many of ten parts.
            case cut(Int)
            /// Nothing comes any more.
            case stall, stallBody
            case slow(Double)
            /// The user cancels the job.
            case abandon
            case status(Int, retryAfter: Int?)
            /// A server that has nothing to say in its body, or cuts it: the head decides.
            case cutRefusal(Int)
        }

        let message: Int
        let kind: Kind
    }

    /// The children of a group, and theirs.
    func members(of group: Int) -> [Int] {
        jobs[group].children.flatMap { [$0] + members(of: $0) }
    }
}

extension History {
    init(_ seed: UInt64) {
        self.init(seed, Choices(seed: seed))
    }

    init(_ seed: UInt64, _ given: Choices) {
        (self.seed, choices) = (seed, given)
        var choices = given
        settings = Settings(&choices)
        let count = choices.pick(weighted: [(6, 1...4), (8, 3...8), (3, 6...14), (1, 18...30)])
        for _ in 0..<choices.within(count) { addJob(&choices) { Job($0.jobs.count, &$1, $0.settings, $0.jobs) } }
        if choices.chance(0.08) { addTrain(&choices) }
        if choices.chance(0.03) { addCrowd(&choices) }
        if choices.chance(0.08) { addMails(&choices) }
        if choices.chance(0.05) { addOutage(&choices) }
        if choices.chance(0.1) { addLoads(&choices) }
        let (jobs, busy) = (jobs, choices.chance(0.3) ? 10 : 4)
        for _ in 0..<choices.below(busy) { add(choices.part { Act(&$0, jobs) }) }
        let harm = choices.pick([0, 0, 2, 4, 8])
        for _ in 0..<choices.below(harm + 1) { add(choices.part { Fault(&$0, below: 2 * jobs.count + 2) }) }
        self.choices = choices
    }

    private mutating func addJob(_ choices: inout Choices, _ make: (History, inout Choices) -> Job) {
        jobs.append(choices.part { make(self, &$0) } ?? Job(removed: jobs.count))
    }

    private mutating func add(_ act: Act?) { if let act { acts.append(act) } }
    private mutating func add(_ fault: Fault?) { if let fault { faults.append(fault) } }

    /// A row of urgent jobs, longer than a download may wait.
    private mutating func addTrain(_ choices: inout Choices) {
        let (gap, pace) = (choices.seconds(0...2), choices.seconds(1...3))
        for index in 0..<choices.within(6...24) {
            addJob(&choices) { history, choices in
                var job = Job(
                    plain: history.jobs.count,
                    at: 1 + Double(index) * (gap + pace),
                    priority: 1,
                    duration: pace
                )
                if choices.chance(0.3) { job.tags = [choices.below(3)] }
                return job
            }
        }
    }

    /// Downloads, urgent jobs that wait for each other's tag, and one behind them that needs a slot alone.
    private mutating func addCrowd(_ choices: inout Choices) {
        settings.limit = choices.within(2...3)
        settings.tagLimits[0] = 1
        (settings.resources[0].pieceCount, settings.resources[0].pace) = (40, 0.25)
        for _ in 0..<settings.limit {
            var job = Job(plain: jobs.count, at: 0, priority: -1, duration: 0)
            job.kind = .download
            jobs.append(job)
        }
        for _ in 0..<choices.within(10...24) {
            addJob(&choices) { history, _ in
                var job = Job(plain: history.jobs.count, at: 2, priority: 1, duration: 4)
                job.tags = [0]
                return job
            }
        }
        jobs.append(Job(plain: jobs.count, at: 2.5, priority: 1, duration: 0))
    }

    /// A server that is down, calls that wait for it, and users who give up during the trial.
    private mutating func addOutage(_ choices: inout Choices) {
        settings.circuit = choices.pick([.waits, .fails])
        acts.append(Act(moment: .at(0), deed: .outage(0, choices.seconds(1...4))))
        for _ in 0..<choices.within(3...6) {
            addJob(&choices) { history, choices in
                var job = Job(plain: history.jobs.count, at: choices.seconds(0...6), priority: 0, duration: 0)
                (job.kind, job.resource) = (.get, choices.below(2))
                return job
            }
        }
        for _ in 0..<4 { add(choices.part { Fault(message: $0.within(2...12), kind: .abandon) }) }
    }

    /// What users ask a loader for, and no longer want.
    private mutating func addLoads(_ choices: inout Choices) {
        let count = settings.resources.count
        for number in 0..<choices.within(1...8) {
            let act = choices.part { choices in
                let (resource, isVariant) = (choices.below(count), choices.chance(0.3))
                let load = Load(resource: resource, isVariant: isVariant, ignoresCache: choices.chance(0.2))
                return Act(moment: .at(choices.seconds(0...6)), deed: .load(load))
            }
            add(act)
            let deed = choices.pick(weighted: [
                (4, Act.Deed.goOn), (2, .cancelLoad(number)), (1, .hurryLoad(number, choices.within(-2...2))),
            ])
            add(choices.part { Act(moment: .at($0.seconds(0...7)), deed: deed) })
        }
    }

    /// Adds what users do with outboxes, and the kills.
    private mutating func addMails(_ choices: inout Choices) {
        for number in 0..<choices.within(1...6) {
            mails.append(Mail(number, &choices, settings.resources.count))
            add(choices.part { Act(moment: .at($0.seconds(0...6)), deed: .mail(number)) })
        }
        let count = mails.count
        for _ in 0..<choices.below(8) { add(choices.part { Act(outbox: &$0, count) }) }
        if choices.chance(0.3) {
            // At once, in two processes.
            let (mail, time) = (choices.below(count), choices.seconds(0...20))
            acts.append(Act(moment: .at(time), deed: .removeMail(mail, 0)))
            acts.append(Act(moment: .at(time), deed: .retryMail(mail, 1)))
        }
        for _ in 0..<choices.below(4) {
            let fault = choices.part { choices in
                let status = Fault.Kind.status(choices.pick([400, 403, 409, 500, 503]), retryAfter: nil)
                return Fault(message: choices.below(10), kind: choices.chance(0.3) ? .loseAnswer : status)
            }
            add(fault)
        }
    }
}

extension History.Settings {
    init(_ choices: inout Choices) {
        order = choices.pick(weighted: [(1, .oldest), (6, .any), (2, .newest)])
        isSlow = choices.chance(0.2)
        interruption = choices.pick(weighted: [(3, 0), (1, 0.1), (1, 0.5)])
        limit = choices.pick(weighted: [(1, -1), (3, 1), (3, 2), (2, 3), (2, 6)])
        hostLimit = choices.pick(weighted: [(4, -1), (1, 1), (1, 2)])
        tagLimits = (0..<3).map { _ in choices.pick(weighted: [(3, -1), (2, 1), (1, 2), (1, 0)]) }
        rate = choices.pick(weighted: [(36, nil), (1, 1), (1, 2), (1, 3), (1, 4)])
        listens = choices.chance(0.4)
        circuit = choices.pick(weighted: [(4, .none), (1, .fails), (1, .waits)])
        tokenLife = choices.pick(weighted: [(2, 1_000), (1, 5), (1, 1)])
        rotatesTokens = choices.chance(0.5)
        savesTokens = choices.chance(0.5)
        startsSignedIn = !choices.chance(0.1)
        hasCookies = choices.chance(0.3)
        hasReachability = choices.chance(0.2)
        mailLimit = choices.pick([.max, .max, 2, 3])
        resources = (0..<choices.within(2...4)).map { _ in History.Resource(&choices) }
    }
}

extension History.Resource {
    init(_ choices: inout Choices) {
        isPrivate = choices.chance(0.6)
        maximumAge = choices.pick(weighted: [(2, nil), (1, 0), (1, 5), (1, 60)])
        hasStrongTag = !choices.chance(0.25)
        servesRanges = !choices.chance(0.15)
        pieceCount = choices.pick(weighted: [(3, 1), (2, 4), (1, 12), (1, 40)])
        pace = choices.pick([0.01, 0.1, 0.25])
        delay = choices.pick(weighted: [(4, 0.02), (2, 0.3), (1, 4), (1, 20), (1, 40)])
        let target = (choices.pick([301, 302, 303, 307, 308]), choices.below(2))
        redirect = choices.chance(0.15) ? target : nil
        repeatsType = choices.chance(0.1)
    }
}

extension History.Job {
    fileprivate init(
        _ number: Int,
        _ choices: inout Choices,
        _ settings: History.Settings,
        _ others: [Self]
    ) {
        self.number = number
        let kind: Kind = choices.pick(weighted: [
            (8, .get), (5, .post), (5, .download), (2, .upload), (3, .older), (2, .plain), (1, .foreign), (1, .batch),
            (1, .chain), (1, .stream), (1, .events),
        ])
        self.kind = kind
        resource = choices.below(settings.resources.count)
        host = choices.chance(0.2) ? 1 : 0
        at = choices.pick(weighted: [(2, 0), (3, choices.seconds(0...8))])
        priority = choices.pick(weighted: [(6, 0), (2, 1), (1, 2), (2, -1), (1, -2)])
        tags = choices.pick(weighted: [(7, []), (1, [0]), (1, [1]), (1, [2])])
        let taken = Set(others.flatMap(\.children))
        var (after, children): ([Int], [Int]) = ([], [])
        for other in others where !other.isRemoved {
            if choices.chance((other.children.isEmpty ? 1.2 : 0.6) / Double(others.count + 2)) {
                after.append(other.number)
            } else if kind == .batch || kind == .chain, choices.chance(0.4), other.kind != .foreign,
                !taken.contains(other.number)
            {
                children.append(other.number)
            }
        }
        (self.after, self.children) = (after, children)
        allowsFailure = choices.chance(0.3)
        endsAtFirstFailure = choices.chance(0.6)
        deadline = choices.pick(weighted: [(30, nil), (3, 0.5), (3, 3), (3, 30), (1, 0), (1, -1)])
        timeout = choices.pick(weighted: [(12, nil), (1, 0.5), (1, 3), (1, 30)])
        retries = choices.pick(weighted: [(4, 2), (2, 0), (1, 5)])
        hasKey = choices.chance(0.3)
        caching = choices.pick(weighted: [(5, .none), (2, .http), (1, .cacheElseNetwork), (1, .cacheThenNetwork)])
        joins = choices.chance(0.15)
        isAwaited = choices.chance(0.2)
        hasOwnQueue = choices.chance(0.2)
        hasAccessory = choices.chance(0.15)
        condition = choices.pick(weighted: [(27, nil), (1, 0), (1, 1), (1, 2)])
        duration = choices.pick([0, 0.2, 2])
    }

    /// The simplest one.
    init(usual number: Int) {
        var none = Choices([])
        self.init(number, &none, History.Settings(&none), [])
    }

    fileprivate init(removed number: Int) {
        self.init(usual: number)
        isRemoved = true
    }

    fileprivate init(plain number: Int, at: Double, priority: Int, duration: Double) {
        self.init(usual: number)
        (kind, self.at, self.priority, self.duration) = (.plain, at, priority, duration)
    }
}

extension History.Act {
    fileprivate init(_ choices: inout Choices, _ jobs: [History.Job]) {
        let moment: Moment = choices.pick(weighted: [
            (4, .at(choices.seconds(0...12))), (3, .callback(choices.below(jobs.count))),
            (3, .message(choices.below(2 * jobs.count))), (3, .step(choices.below(40 * jobs.count + 40))), (1, .saving),
            (1, .refreshing), (1, .authorizing),
        ])
        self.moment = moment
        let isOfSession = [.saving, .refreshing, .authorizing].contains(moment)
        let (job, other) = (choices.below(jobs.count), choices.below(jobs.count))
        let (three, four) = (choices.below(3), choices.below(4))
        let seconds = choices.seconds(0...8)
        deed = choices.pick(weighted: [
            (8, .cancel(job)), (1, .cancelAll), (1, .cancelTag(three)), (3, .pause(job)), (3, .resume(job)),
            (isOfSession ? 60 : 4, .signOut), (3, .signIn(three)), (2, .suspend), (2, .goOn), (2, .limit(four)),
            (1, .hostLimit(1 + three)),
            (2, .tagLimit(three, four - 1)), (3, .priority(job, three - 2)), (3, .priority(job, three)),
            (2, .deadline(job, 2 * seconds)), (2, .change(four)), (2, .outage(four % 2, seconds)), (2, .revoke),
            (1, .clock([-86_400, -10, 10, 86_400][four])), (1, .network(seconds)), (4, .depend(job, other)),
            (2, .release(job)),
        ])
    }

    fileprivate init(outbox choices: inout Choices, _ mailCount: Int) {
        let (mail, place, four) = (choices.below(mailCount), choices.below(2), choices.below(4))
        let seconds = choices.seconds(0...5)
        moment = choices.pick(weighted: [
            (3, .at(choices.seconds(0...15))), (2, .message(choices.below(8))), (2, .step(choices.below(400))),
        ])
        deed = choices.pick(weighted: [
            (4, .removeMail(mail, place)), (4, .retryMail(mail, place)), (2, .kill(place)), (2, .restart(place)),
            (1, .damage(four)), (1, .damage(4 + place)), (6, .read(four % 2, place)),
            (1, .clock([-3e8, 3e8, -3_600, 3_600][four])), (2, .outage(1, seconds)),
            (1, .disk(seconds)),
        ])
    }
}

extension History.Fault {
    fileprivate init(_ choices: inout Choices, below count: Int) {
        message = choices.below(count)
        let (status, ten) = (choices.pick([500, 503, 429, 408, 404, 401, 403, 412, 416]), choices.below(10))
        kind = choices.pick(weighted: [
            (2, .refuse), (2, .reject), (2, .loseRequest), (3, .loseAnswer), (2, .cut(ten)), (1, .stall),
            (1, .stallBody), (2, .abandon),
            (2, .slow(choices.seconds(0...5))), (3, .status(status, retryAfter: choices.pick([nil, 1, 5]))),
            (2, .cutRefusal(choices.pick([404, 401, 302]))),
        ])
    }
}
