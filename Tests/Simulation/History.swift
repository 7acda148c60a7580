/// What happens in one world: jobs, what users do, and what goes wrong. A value, which can be made smaller.
struct History: Sendable {
    /// Decides the order of all work, and the times of the network.
    var seed: UInt64
    var settings = Settings()
    var jobs: [Job] = []
    var mails: [Mail] = []
    var acts: [Act] = []
    var faults: [Fault] = []

    struct Settings: Sendable {
        var order = Loop.Order.any
        var isSlow = false
        var interruption = 0.0
        var limit = 3
        var hostLimit = -1
        var tagLimits: [Int] = [-1, -1, -1]
        var rate: Int?
        var listens = false
        var circuit = Circuit.none
        var tokenLife = 1_000.0
        var rotatesTokens = false
        var savesTokens = false
        var startsSignedIn = true
        var hasReachability = false
        var mailLimit = Int.max
        var resources: [Resource] = []

        enum Circuit: String { case none, fails, waits }
    }

    /// What lies at an address, `/r/0`, `/f/1`, `/w/2` and so on: something to read, a file, a place to write to.
    struct Resource: Sendable {
        var isPrivate = false
        /// Seconds for which an answer is fresh; nil without a field.
        var maximumAge: Int?
        var hasStrongTag = true
        var servesRanges = true
        /// Pieces in which a body comes, and the seconds between two of them.
        var pieceCount = 1
        var pace = 0.05
        /// Seconds that the server takes to answer.
        var delay = 0.02
        /// Where an answer leads to instead, and by which status.
        var redirect: (status: Int, host: Int)?
        /// A field that the server sends twice.
        var repeatsType = false
    }

    struct Job: Sendable {
        enum Kind: String, CaseIterable {
            case get, post, download, upload, older, plain, foreign, batch, chain, stream, events
        }

        var number: Int
        var kind = Kind.get
        var resource = 0
        var host = 0
        /// When it is added.
        var at = 0.0
        var priority = 0
        var tags: [Int] = []
        var after: [Int] = []
        var allowsFailure = false
        var children: [Int] = []
        var endsAtFirstFailure = true
        var deadline: Double?
        var retries = 2
        var hasKey = false
        var caching = Caching.none
        var joins = false
        var isAwaited = false
        var hasAccessory = false
        var condition: Int?
        /// Of a plain job: the seconds that it takes.
        var duration = 0.0

        enum Caching: String, CaseIterable { case none, http, cacheElseNetwork, cacheThenNetwork }
    }

    struct Act: Sendable {
        enum Moment: Sendable {
            case at(Double)
            /// In a callback of a job.
            case callback(Int)
            /// When a message reaches its server.
            case message(Int)
            /// While a credential is saved.
            case saving
            /// Before so many pieces of work.
            case step(Int)
        }

        enum Deed: Sendable {
            case cancel(Int), cancelAll, cancelTag(Int), pause(Int), resume(Int)
            case signOut, signIn(Int), suspend, goOn
            case limit(Int), hostLimit(Int), tagLimit(Int, Int), priority(Int, Int), deadline(Int, Double)
            case change(Int), outage(Int, Double), revoke, clock(Double), network(Double)
            case mail(Int), removeMail(Int, Int), retryMail(Int, Int), kill(Int), restart(Int), damage(Int)
            case disk(Double)
        }

        var moment: Moment
        var deed: Deed
    }

    /// What becomes of a message, by its number from 0.
    struct Fault: Sendable {
        enum Kind: Sendable {
            /// No connection.
            case refuse
            /// Lost on its way there, or back.
            case loseRequest, loseAnswer
            /// The body ends after so many of ten parts.
            case cut(Int)
            /// Nothing comes any more.
            case stall, stallBody
            case slow(Double)
            case status(Int, retryAfter: Int?)
            /// A server that has nothing to say in its body, or cuts it: the head decides.
            case cutRefusal(Int)
        }

        var message: Int
        var kind: Kind
    }
}

extension History {
    /// The children of a group, and theirs.
    func members(of group: Int) -> [Int] {
        jobs[group].children.flatMap { [$0] + members(of: $0) }
    }

    /// The groups that a job is in.
    func groups(of job: Int) -> [Job] {
        jobs.filter { members(of: $0.number).contains(job) }
    }
}

extension History {
    init(_ seed: UInt64) {
        self.init(seed: seed)
        var random = Random(seed)
        settings = Settings(&random)
        let count = random.pick(weighted: [(6, 1...4), (8, 3...8), (3, 6...14), (1, 18...30)])
        for number in 0..<random.within(count) { jobs.append(Job(number, &random, settings, jobs)) }
        if random.chance(0.08) { addTrain(&random) }
        if random.chance(0.03) { addCrowd(&random) }
        if random.chance(0.08) { addMails(&random) }
        let busy = random.chance(0.3) ? 10 : 4
        for _ in 0..<random.below(busy) { acts.append(Act(&random, jobs)) }
        let harm = random.pick([0, 0, 2, 4, 8])
        for _ in 0..<random.below(harm + 1) {
            faults.append(Fault(message: random.below(2 * jobs.count + 2), kind: Fault.Kind(&random)))
        }
    }

    /// A row of urgent jobs, longer than a download may wait.
    private mutating func addTrain(_ random: inout Random) {
        let (gap, pace) = (random.seconds(0...2), random.seconds(1...3))
        for index in 0..<random.within(6...24) {
            var job = Job(number: jobs.count)
            (job.at, job.priority, job.kind, job.duration) = (1 + Double(index) * (gap + pace), 1, .plain, pace)
            if random.chance(0.3) { job.tags = [random.below(3)] }
            jobs.append(job)
        }
    }

    /// Downloads, urgent jobs that wait for each other's tag, and one behind them that needs a slot alone.
    private mutating func addCrowd(_ random: inout Random) {
        settings.limit = random.within(2...3)
        settings.tagLimits[0] = 1
        for _ in 0..<settings.limit { jobs.append(Job(number: jobs.count, kind: .download, resource: 0, priority: -1)) }
        settings.resources[0] = Resource(pieceCount: 40, pace: 0.25)
        for _ in 0..<random.within(10...24) {
            jobs.append(Job(number: jobs.count, kind: .plain, at: 2, priority: 1, tags: [0], duration: 4))
        }
        jobs.append(Job(number: jobs.count, kind: .plain, at: 2.5, priority: 1))
    }
}

extension History.Settings {
    fileprivate init(_ random: inout Random) {
        order = random.pick(weighted: [(6, .any), (1, .oldest), (2, .newest)])
        isSlow = random.chance(0.2)
        interruption = random.pick(weighted: [(3, 0), (1, 0.1), (1, 0.5)])
        limit = random.pick(weighted: [(3, 1), (3, 2), (2, 3), (2, 6), (1, -1)])
        hostLimit = random.pick(weighted: [(4, -1), (1, 1), (1, 2)])
        tagLimits = (0..<3).map { _ in random.pick(weighted: [(3, -1), (2, 1), (1, 2), (1, 0)]) }
        rate = random.chance(0.1) ? random.within(1...4) : nil
        listens = random.chance(0.4)
        circuit = random.pick(weighted: [(4, .none), (1, .fails), (1, .waits)])
        tokenLife = random.pick(weighted: [(2, 1_000), (1, 5), (1, 1)])
        rotatesTokens = random.chance(0.5)
        savesTokens = random.chance(0.5)
        startsSignedIn = random.chance(0.9)
        hasReachability = random.chance(0.2)
        resources = (0..<random.within(2...4)).map { _ in History.Resource(&random) }
    }
}

extension History.Resource {
    fileprivate init(_ random: inout Random) {
        isPrivate = random.chance(0.6)
        maximumAge = random.pick(weighted: [(2, nil), (1, 0), (1, 5), (1, 60)])
        hasStrongTag = random.chance(0.75)
        servesRanges = random.chance(0.85)
        pieceCount = random.pick(weighted: [(3, 1), (2, 4), (1, 12), (1, 40)])
        pace = random.pick([0.01, 0.1, 0.25])
        delay = random.pick(weighted: [(4, 0.02), (2, 0.3), (1, 4), (1, 20), (1, 40)])
        if random.chance(0.15) { redirect = (random.pick([301, 302, 303, 307, 308]), random.below(2)) }
        repeatsType = random.chance(0.1)
    }
}

extension History.Job {
    fileprivate init(_ number: Int, _ random: inout Random, _ settings: History.Settings, _ others: [Self]) {
        self.init(number: number)
        kind = random.pick(weighted: [
            (8, .get), (5, .post), (5, .download), (2, .upload), (3, .older), (2, .plain), (1, .foreign), (1, .batch),
            (1, .chain), (1, .stream), (1, .events),
        ])
        resource = random.below(settings.resources.count)
        host = random.chance(0.8) ? 0 : 1
        at = random.chance(0.4) ? 0 : random.seconds(0...8)
        priority = random.pick(weighted: [(6, 0), (2, 1), (1, 2), (2, -1), (1, -2)])
        if random.chance(0.3) { tags = [random.below(3)] }
        for other in others where other.children.isEmpty || random.chance(0.5) {
            if random.chance(1.2 / Double(others.count + 2)) { after.append(other.number) }
        }
        allowsFailure = random.chance(0.3)
        if kind == .batch || kind == .chain {
            let taken = Set(others.flatMap(\.children))
            for other in others where !taken.contains(other.number) && other.kind != .foreign && random.chance(0.4) {
                children.append(other.number)
            }
            after.removeAll(where: children.contains)
            endsAtFirstFailure = random.chance(0.6)
        }
        deadline = random.pick(weighted: [(10, nil), (1, 0.5), (1, 3), (1, 30)])
        retries = random.pick(weighted: [(4, 2), (2, 0), (1, 5)])
        hasKey = random.chance(0.3)
        caching = random.pick(weighted: [(5, .none), (2, .http), (1, .cacheElseNetwork), (1, .cacheThenNetwork)])
        joins = random.chance(0.15)
        isAwaited = random.chance(0.2)
        hasAccessory = random.chance(0.15)
        condition = random.chance(0.1) ? random.below(3) : nil
        duration = random.pick([0, 0.2, 2])
    }
}

extension History.Act {
    fileprivate init(_ random: inout Random, _ jobs: [History.Job]) {
        let job = random.below(jobs.count)
        moment = random.pick(weighted: [
            (4, .at(random.seconds(0...12))), (3, .callback(job)), (3, .message(random.below(2 * jobs.count))),
            (3, .step(random.below(40 * jobs.count + 40))), (1, .saving),
        ])
        let other = random.below(jobs.count)
        deed = random.pick(weighted: [
            (8, .cancel(other)), (1, .cancelAll), (1, .cancelTag(random.below(3))), (3, .pause(other)),
            (3, .resume(other)), (4, .signOut), (3, .signIn(random.below(3))), (2, .suspend), (2, .goOn),
            (2, .limit(random.within(0...4))),
            (1, .hostLimit(random.within(1...3))), (2, .tagLimit(random.below(3), random.within(-1...2))),
            (3, .priority(other, random.within(-2...2))), (2, .deadline(other, random.seconds(0...20))),
            (2, .change(random.below(4))), (2, .outage(random.below(2), random.seconds(0...8))), (2, .revoke),
            (1, .clock(random.pick([-86_400, -10, 10, 86_400]))), (1, .network(random.seconds(0...6))),
        ])
    }
}

extension History.Fault.Kind {
    fileprivate init(_ random: inout Random) {
        let status = random.pick([500, 503, 429, 408, 404, 401, 403, 412, 416])
        self = random.pick(weighted: [
            (2, .refuse), (2, .loseRequest), (3, .loseAnswer), (2, .cut(random.below(10))), (1, .stall),
            (1, .stallBody),
            (2, .slow(random.seconds(0...5))), (3, .status(status, retryAfter: random.pick([nil, 1, 5]))),
            (2, .cutRefusal(random.pick([404, 401, 302]))),
        ])
    }
}
