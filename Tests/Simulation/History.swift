/// The choices of the history that is being made. Fields that are declared with their choice take them in this order.
private var draw: Choices { .current }

/// What happens in one world: jobs, what users do, and what goes wrong. It follows from a seed, or from choices.
struct History: Sendable {
    /// Decides the order of all work, and the times of the network.
    let seed: UInt64
    let choices = draw
    private(set) var settings = Settings()
    private(set) var jobs: [Job] = []
    private(set) var mails: [Mail] = []
    private(set) var acts: [Act] = []
    private(set) var faults: [Fault] = []

    struct Settings: Sendable {
        let order: Loop.Order = draw.pick(weighted: [(1, .oldest), (6, .any), (2, .newest)])
        let isSlow = draw.chance(0.2)
        let interruption = draw.pick(weighted: [(3, 0), (1, 0.1), (1, 0.5)])
        var limit = draw.pick(weighted: [(1, -1), (3, 1), (3, 2), (2, 3), (2, 6)])
        let hostLimit = draw.pick(weighted: [(4, -1), (1, 1), (1, 2)])
        var tagLimits = (0..<3).map { _ in draw.pick(weighted: [(3, -1), (2, 1), (1, 2), (1, 0)]) }
        let rate: Int? = draw.pick(weighted: [(24, nil), (1, 1), (1, 2), (1, 3), (1, 4)])
        let burst = draw.pick([1, 2, 4])
        let listens = draw.chance(0.4)
        var circuit: Circuit = draw.pick(weighted: [(4, .none), (1, .fails), (1, .waits)])
        let tokenLife: Double = draw.pick(weighted: [(8, 1_000), (4, 5), (3, 1), (1, 0)])
        let rotatesTokens = draw.chance(0.5)
        let savesTokens = draw.chance(0.5)
        /// Seconds that a refresh waits for its user.
        let promptTime: Double = draw.pick(weighted: [(14, 0), (1, 2), (1, 150)])
        let startsSignedIn = !draw.chance(0.1)
        let hasCookies = draw.chance(0.3)
        let hasReachability = draw.chance(0.2)
        let mailLimit = draw.pick([.max, .max, 2, 3])
        /// Whether there is one user, and another account beside, which the cache keeps apart.
        let hasPartitions = draw.chance(0.4)
        var resources = (0..<draw.within(2...4)).map { _ in Resource() }

        enum Circuit: String { case none, fails, waits }
    }

    /// What lies at an address, `/r/0`, `/f/1`, `/w/2` and so on: something to read, a file, a place to write to.
    struct Resource: Sendable {
        let isPrivate = draw.chance(0.6)
        /// Seconds for which an answer is fresh; nil without a field.
        var maximumAge: Int? = draw.pick(weighted: [(2, nil), (1, 0), (1, 5), (1, 60)])
        /// What else `Cache-Control` says, the field that an answer depends on, and how old it is when it comes.
        var directive = draw.pick([nil, nil, nil, "no-store", "stale-while-revalidate=5", "stale-if-error=5"])
        let variesBy = draw.pick([nil, "Authorization", "Accept-Language"])
        let age = draw.pick([0, 0, 0, 0, 3, 40])
        /// Whether the server confirms another answer than it was asked for.
        let confirmsAny = draw.chance(0.1)
        let hasStrongTag = !draw.chance(0.25)
        let servesRanges = !draw.chance(0.15)
        /// Whether it sends ranges whatever the condition of the request says.
        var ignoresCondition = draw.chance(0.15)
        /// Whether its tags are those of other resources, too.
        var hasCommonTag = draw.chance(0.3)
        /// Pieces in which a body comes, and the seconds between two of them.
        var pieceCount = draw.pick(weighted: [(3, 1), (2, 4), (1, 12), (1, 40)])
        var pace = draw.pick([0.01, 0.1, 0.25])
        /// Seconds from the last piece of a file to the end of the response.
        var endPause = draw.pick(weighted: [(8, 0.0), (1, 2.0)])
        /// Seconds that the server takes to answer.
        var delay = draw.pick(weighted: [(4, 0.02), (2, 0.3), (1, 4), (1, 20), (1, 40)])
        /// Where an answer leads to instead, and by which status.
        let redirect: (status: Int, host: Int, isEndless: Bool)? = {
            let target = (draw.pick([301, 302, 303, 307, 308]), draw.below(2), draw.chance(0.1))
            return draw.chance(0.15) ? target : nil
        }()
        /// A field that the server sends twice.
        let repeatsType = draw.chance(0.1)
    }

    struct Job: Sendable {
        enum Kind: String {
            case get, post, download, upload, older, pair, plain, foreign, batch, chain, stream, events
        }
        enum Caching: String { case none, http, cacheElseNetwork, cacheThenNetwork }

        // The constants are drawn when a job is made; `drawJob` draws the variables.
        var number = 0
        /// Whether it was left out. The others keep their numbers.
        var isRemoved = false
        var kind = Kind.get
        var resource = 0, host = 0
        /// When it is added.
        var at = 0.0
        var priority = 0
        var tags: [Int] = [], after: [Int] = []
        let allowsFailure = draw.chance(0.3)
        var children: [Int] = []
        let endsAtFirstFailure = draw.chance(0.6)
        /// How many children of a batch may run at once.
        var childLimit = draw.pick(weighted: [(2, -1), (2, 1), (1, 2)])
        /// Whether its request is made when the first job that it waits for has succeeded.
        var isPrepared = draw.chance(0.4)
        /// Of a download: whether its file has the place of others.
        var sharesFile = draw.chance(0.1)
        let deadline: Double? = draw.pick(weighted: [(30, nil), (3, 0.5), (3, 3), (3, 30), (1, 0), (1, -1)])
        /// For all messages of its request together.
        let timeout: Double? = draw.pick(weighted: [(12, nil), (1, 0.5), (1, 3), (1, 30)])
        let retries = draw.pick(weighted: [(4, 2), (2, 0), (1, 5)])
        var hasKey = draw.chance(0.3)
        var caching: Caching = draw.pick(weighted: [
            (5, .none), (2, .http), (1, .cacheElseNetwork), (1, .cacheThenNetwork),
        ])
        var joins = draw.chance(0.15)
        /// What it asks for, and whether for the other account.
        let language = draw.pick(["en", "de"])
        let isOther = draw.chance(0.2)
        let isAwaited = draw.chance(0.2)
        /// Whether the user's own class makes it.
        let isOfOwnClass = draw.chance(0.5)
        /// Whether its callbacks have a queue of their own.
        let hasOwnQueue = draw.chance(0.2)
        let hasAccessory = draw.chance(0.15)
        let condition: Int? = draw.pick(weighted: [(27, nil), (1, 0), (1, 1), (1, 2)])
        /// Of a plain job: the seconds that it takes.
        var duration = 0.0
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
            /// When so many files were used since a message of an outbox has ended, or a removal has begun.
            case settling(Int), removing(Int)
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
            /// The first of two calls.
            case giveUp(Int)
            /// Adds a barrier, which is cancelled after so many seconds.
            case barrier(Double)
            case release(Int), drain(Int, Double)
        }

        let moment: Moment
        let deed: Deed
    }

    /// A resource that a loader is asked for.
    struct Load: Sendable {
        let resource: Int
        let isVariant, ignoresCache: Bool
    }

    /// What becomes of a message, by its number from 0.
    struct Fault: Sendable {
        enum Kind: Sendable {
            /// No connection; or the server has not processed it, as by a GOAWAY.
            case refuse, reject
            /// Lost on its way there, or back.
            case loseRequest, loseAnswer
            /// The body ends after so many of ten parts.
            case cut(Int, isNoticed: Bool)
            /// Nothing comes any more, or after so many of ten parts.
            case stall, stallBody(Int)
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

    static func make(_ seed: UInt64, _ choices: Choices? = nil) -> Self {
        (choices ?? Choices(seed: seed)).make { Self(seed) }
    }

    private init(_ seed: UInt64) {
        self.seed = seed
        let count = draw.pick(weighted: [(6, 1...4), (8, 3...8), (3, 6...14), (1, 18...30)])
        addJobs(draw.within(count)) { history, _ in history.drawJob() }
        if draw.chance(0.08) { addTrain() }
        if draw.chance(0.06) { addCrowd() }
        if draw.chance(0.05) { addParts() }
        if draw.chance(0.08) { addMails() }
        if draw.chance(0.05) { addOutage() }
        if draw.chance(0.1) { addLoads() }
        if draw.chance(0.02) { addPairs() }
        if draw.chance(0.06) { addVisits() }
        for _ in 0..<draw.below(draw.chance(0.3) ? 10 : 4) { acts += draw.part { Act(of: jobs.count) } }
        let harm = draw.pick([0, 0, 2, 4, 8])
        for _ in 0..<draw.below(harm + 1) { faults += draw.part { Fault(below: 2 * jobs.count + 2) } }
        if draw.chance(0.02) { addPreparedBatch() }
        if draw.chance(0.01) { addRemoval() }
    }

    private mutating func addJobs(_ count: Int, _ make: (History, Int) -> Job) {
        for index in 0..<count {
            var job = draw.part { make(self, index) }.first ?? Choices.simplest { Job(isRemoved: true) }
            job.number = jobs.count
            jobs.append(job)
        }
    }

    private func drawJob() -> Job {
        let kind: Job.Kind = draw.pick(weighted: [
            (8, .get), (5, .post), (5, .download), (2, .upload), (3, .older), (2, .plain), (1, .foreign), (1, .batch),
            (1, .chain), (1, .stream), (1, .events), (1, .pair),
        ])
        let (resource, host) = (draw.below(settings.resources.count), draw.chance(0.2) ? 1 : 0)
        let at = draw.pick(weighted: [(2, 0), (3, draw.seconds(0...8))])
        let priority = draw.pick(weighted: [(6, 0), (2, 1), (1, 2), (2, -1), (1, -2)])
        let tags = draw.pick(weighted: [(7, []), (1, [0]), (1, [1]), (1, [2])])
        let (isGroup, taken) = (kind == .batch || kind == .chain, Set(jobs.flatMap(\.children)))
        var (after, children): ([Int], [Int]) = ([], [])
        for other in jobs where !other.isRemoved {
            if draw.chance((other.children.isEmpty ? 1.2 : 0.6) / Double(jobs.count + 2)) {
                after.append(other.number)
            } else if isGroup, draw.chance(0.4), other.kind != .foreign, !taken.contains(other.number) {
                children.append(other.number)
            }
        }
        var job = Job(kind: kind, at: at, priority: priority, tags: tags, after: after, children: children)
        (job.resource, job.host, job.duration) = (resource, host, draw.pick([0, 0.2, 2]))
        return job
    }

    /// A row of urgent jobs, longer than a download may wait.
    private mutating func addTrain() {
        let (gap, pace) = (draw.seconds(0...2), draw.seconds(1...3))
        addJobs(draw.within(6...24)) { _, index in
            let (at, tags) = (1 + Double(index) * (gap + pace), draw.chance(0.3) ? [draw.below(3)] : [])
            return Choices.simplest { Job(kind: .plain, at: at, priority: 1, tags: tags, duration: pace) }
        }
    }

    /// Downloads, urgent jobs that wait for their tags, and a later one that needs only a slot.
    private mutating func addCrowd() {
        settings.limit = draw.within(2...3)
        settings.tagLimits = [1, 0, 0]
        (settings.resources[0].pieceCount, settings.resources[0].pace) = (40, 0.25)
        for _ in 0..<settings.limit {
            jobs.append(Choices.simplest { Job(number: jobs.count, kind: .download, priority: -1) })
        }
        // A user who does not know what he wants.
        let (times, job) = ((0..<3).map { _ in draw.seconds(1...6) }.sorted(), jobs.count - 1)
        for (time, deed) in zip(times, [.pause(job), .resume(job), .pause(job)] as [Act.Deed]) {
            acts += draw.part { Act(moment: .at(time), deed: deed) }
        }
        addJobs(draw.within(10...24)) { _, index in
            Choices.simplest { Job(kind: .plain, at: 2, priority: 1, tags: [index % 3], duration: 4) }
        }
        jobs.append(Choices.simplest { Job(number: jobs.count, kind: .plain, at: 2.5, priority: 1) })
    }

    /// Downloads that are given up, and others that go on with what they have left.
    private mutating func addParts() {
        let flag = draw.chance(0.5)
        for index in 0..<2 {
            let resource = Choices.simplest { Resource(pieceCount: 12, pace: 0.25, endPause: 2, delay: 0.02) }
            settings.resources[index] = resource
            (settings.resources[index].hasCommonTag, settings.resources[index].ignoresCondition) = (flag, !flag)
        }
        for number in 0..<3 {
            let (resource, end) = (draw.below(2), draw.seconds(0...4))
            acts.append(Act(moment: .at(Double(4 * number) + end), deed: .cancel(jobs.count)))
            addJobs(1) { _, _ in
                Choices.simplest { Job(kind: .download, resource: resource, at: Double(4 * number), sharesFile: true) }
            }
            acts += draw.part { Act(moment: .at(draw.seconds(0...12)), deed: .change(draw.below(2))) }
        }
    }

    /// A server that is down, calls that wait for it, and users who give up during the trial.
    private mutating func addOutage() {
        settings.circuit = draw.pick([.waits, .fails])
        (settings.resources[0].delay, settings.resources[1].delay) = (draw.pick([20, 0.3]), 0.02)
        for begin in [0, 10] {
            acts += draw.part { Act(moment: .at(Double(begin)), deed: .outage(0, draw.seconds(1...4))) }
        }
        addJobs(draw.within(4...12)) { _, _ in
            let (at, resource) = (draw.seconds(0...draw.pick([6, 16])), draw.below(2))
            return Choices.simplest { Job(resource: resource, at: at) }
        }
        for _ in 0..<4 { faults += draw.part { Fault(message: draw.within(2...12), kind: .abandon) } }
    }

    /// What users ask a loader for, and no longer want.
    private mutating func addLoads() {
        for number in 0..<draw.within(1...8) {
            acts += draw.part {
                let (resource, isVariant) = (draw.below(settings.resources.count), draw.chance(0.3))
                let load = Load(resource: resource, isVariant: isVariant, ignoresCache: draw.chance(0.2))
                return Act(moment: .at(draw.seconds(0...6)), deed: .load(load))
            }
            let deed: Act.Deed = draw.pick(weighted: [
                (4, .goOn), (2, .cancelLoad(number)), (1, .hurryLoad(number, draw.within(-2...2))),
            ])
            acts += draw.part { Act(moment: .at(draw.seconds(0...7)), deed: deed) }
        }
    }

    /// Jobs of two calls, which wait, come back, and are given up.
    private mutating func addPairs() {
        settings.limit = draw.within(1...2)
        let count = draw.within(2...4)
        for _ in 0..<count { jobs.append(Choices.simplest { Job(number: jobs.count, kind: .pair) }) }
        for _ in 0..<6 {
            let kind = Fault.Kind.status(503, retryAfter: draw.pick([1, 5]))
            faults += draw.part { Fault(message: draw.below(10), kind: kind) }
            let deed = Act.Deed.giveUp(jobs.count - 1 - draw.below(count))
            acts += draw.part { Act(moment: .step(draw.below(60 * count)), deed: deed) }
        }
    }

    /// A periodic entry that a user removes while a process writes down the end of its message.
    private mutating func addRemoval() {
        var mail = Mail(mails.count, draw, settings.resources.count)
        mail.repeats()
        mails.append(mail)
        acts.append(Act(moment: .at(0), deed: .mail(mail.number)))
        for place in 0..<2 {
            acts += draw.part { Act(moment: .settling(draw.within(0...8)), deed: .removeMail(mail.number, place)) }
        }
    }

    /// A batch of few places, whose children are prepared together when a job has ended.
    private mutating func addPreparedBatch() {
        let first = jobs.count
        jobs.append(Choices.simplest { Job(number: first) })
        addJobs(draw.within(2...4)) { _, _ in Choices.simplest { Job(after: [first], isPrepared: true) } }
        let children = Array(first + 1..<jobs.count)
        jobs.append(Choices.simplest { Job(number: jobs.count, kind: .batch, children: children, childLimit: 1) })
    }

    /// Readers of one resource, who come again and again, and what changes it or keeps it from them.
    private mutating func addVisits() {
        let (gap, host, joins) = (draw.seconds(0...draw.pick([1, 8])), draw.below(2), draw.chance(0.3))
        settings.resources[0].maximumAge = draw.pick([0, 1, 5, 60])
        settings.resources[0].directive = draw.pick([nil, "stale-while-revalidate=5", "stale-if-error=5"])
        addJobs(draw.within(4...12)) { _, index in
            var job = Job(kind: draw.chance(0.2) ? .older : .get, host: host, at: Double(index) * gap)
            // The older way a request with a key changes what it would read.
            (job.hasKey, job.caching, job.joins) = (job.kind == .older, joins ? .none : .http, joins)
            return job
        }
        for _ in 0..<draw.below(5) {
            let deed: Act.Deed = draw.pick([.outage(host, draw.seconds(0...8)), .change(0), .signIn(draw.below(3))])
            acts += draw.part { Act(moment: .at(draw.seconds(0...1 + 4 * gap)), deed: deed) }
        }
    }

    /// Adds what users do with outboxes, and the kills.
    private mutating func addMails() {
        for number in 0..<draw.within(1...6) {
            mails.append(Mail(number, draw, settings.resources.count))
            acts += draw.part { Act(moment: .at(draw.seconds(0...6)), deed: .mail(number)) }
        }
        for _ in 0..<draw.below(8) { acts += draw.part { Act(ofMails: mails.count) } }
        if draw.chance(0.3) {
            // A process that ends while its entries wait for a server.
            let (begin, end, kill) = (draw.seconds(0...3), draw.seconds(2...8), draw.seconds(1...10))
            acts += draw.part { Act(moment: .at(begin), deed: .outage(1, end)) }
            acts += draw.part { Act(moment: .at(kill), deed: .kill(draw.below(2))) }
        }
        // One that is a dead letter while those behind it in its lane are tried.
        acts += draw.part { Act(moment: .at(draw.seconds(1...8)), deed: .retryMail(0, draw.below(2))) }
        faults += draw.part { Fault(message: draw.below(4), kind: .status(draw.pick([400, 200]), retryAfter: nil)) }
        if draw.chance(0.3) {
            // While one process is at its files, the other one goes there.
            let (mail, time) = (draw.below(mails.count), draw.seconds(0...20))
            let (isSettling, count, place) = (draw.chance(0.5), draw.below(5), draw.below(2))
            let end: Act.Deed = draw.chance(0.5) ? .drain(place, 0) : .removeMail(mail, 0)
            acts.append(Act(moment: isSettling ? .settling(count) : .at(time), deed: end))
            acts.append(Act(moment: draw.pick([.at(time), .removing(count)]), deed: .retryMail(mail, place)))
        }
        for _ in 0..<draw.below(8) {
            faults += draw.part {
                let status = Fault.Kind.status(draw.pick([400, 403, 409, 500, 503, 200]), retryAfter: nil)
                return Fault(message: draw.below(10), kind: draw.chance(0.3) ? .loseAnswer : status)
            }
        }
    }
}

extension History.Act {
    fileprivate init(of jobCount: Int) {
        moment = draw.pick(weighted: [
            (4, .at(draw.seconds(0...12))), (3, .callback(draw.below(jobCount))),
            (3, .message(draw.below(2 * jobCount))), (3, .step(draw.below(40 * jobCount + 40))), (1, .saving),
            (1, .refreshing), (1, .authorizing),
        ])
        let isOfSession = [.saving, .refreshing, .authorizing].contains(moment)
        let (job, other, three, four) = (draw.below(jobCount), draw.below(jobCount), draw.below(3), draw.below(4))
        let seconds = draw.seconds(0...8)
        deed = draw.pick(weighted: [
            (8, .cancel(job)), (1, .cancelAll), (1, .cancelTag(three)), (3, .pause(job)), (3, .resume(job)),
            (isOfSession ? 60 : 4, .signOut), (3, .signIn(three)), (2, .suspend), (2, .goOn), (2, .limit(four)),
            (1, .hostLimit(1 + three)), (2, .tagLimit(three, four - 1)), (3, .priority(job, three - 2)),
            (3, .priority(job, three)), (2, .deadline(job, 2 * seconds)), (2, .change(four)),
            (2, .outage(four % 2, seconds)), (2, .revoke), (1, .clock([-86_400, -10, 10, 86_400][four])),
            (1, .network(seconds)), (4, .depend(job, other)), (2, .release(job)), (2, .giveUp(job)),
            (1, .barrier(seconds / 2)),
        ])
    }

    fileprivate init(ofMails mailCount: Int) {
        let (mail, place, four, seconds) = (draw.below(mailCount), draw.below(2), draw.below(4), draw.seconds(0...5))
        moment = draw.pick(weighted: [
            (3, .at(draw.seconds(0...15))), (2, .message(draw.below(8))), (2, .step(draw.below(400))),
            (2, .settling(draw.below(12))), (2, .removing(draw.below(12))),
        ])
        deed = draw.pick(weighted: [
            (4, .removeMail(mail, place)), (4, .retryMail(mail, place)), (2, .kill(place)), (2, .restart(place)),
            (1, .damage(four)), (1, .damage(4 + place)), (6, .read(four % 2, place)),
            (1, .clock([-3e8, 3e8, -3_600, 3_600][four])), (2, .outage(1, seconds)), (1, .disk(seconds)),
            (2, .drain(place, seconds - 2)),
        ])
    }
}

extension History.Fault {
    fileprivate init(below count: Int) {
        message = draw.below(count)
        let (status, ten) = (draw.pick([500, 503, 429, 408, 404, 401, 403, 412, 416]), draw.below(10))
        let isNoticed = draw.chance(0.5)
        kind = draw.pick(weighted: [
            (2, .refuse), (2, .reject), (2, .loseRequest), (3, .loseAnswer), (2, .cut(ten, isNoticed: isNoticed)),
            (1, .stall), (1, .stallBody(ten)), (2, .abandon), (2, .slow(draw.seconds(0...5))),
            (3, .status(status, retryAfter: draw.pick([nil, 1, 5]))), (2, .cutRefusal(draw.pick([404, 401, 302]))),
        ])
    }
}
