import EasyNetwork
import Foundation

/// One history in a world of its own: servers, a network, users and their jobs, all of it on this thread.
final class World: @unchecked Sendable {
    // Sendable because one thread uses it.

    /// What is known of a job from outside.
    struct Record {
        var operation: Operation?
        weak var leaked: Operation?
        var (isAdded, isChild) = (false, false)
        var (addedAt, addedStep) = (0.0, 0)
        var endedAt: Double?
        var (callbackCount, completionCount, executionCount, awaitedCount) = (0, 0, 0, 0)
        var result: Result<Answer?, NetworkError>?
        var source: NetworkResponse.Source?
        /// Whether a cancel may have ended it, and whether one has returned.
        var (mayBeCancelled, hasCancelReturned) = (false, false)
        /// The ones in force.
        var (priority, deadline): (Int?, Double?)
        var messages: [Int] = []
        /// Since when it waits for nothing but one of all slots, and since when it waited for its first.
        var (waitsForSlotSince, readyAt): (Double?, Double?)
        /// Since when it runs and receives its body.
        var receivesSince: Double?
        /// Since when its slot is another one's, and how many slots had been given then.
        var absence: (since: Double, mostGrants: Int)?
    }

    /// What became of a message.
    struct Fate {
        let host: Int
        let sentAt: Double
        var endedAt: Double?
        var error: NetworkError.Code?
    }

    let history: History
    let folder: String
    let loop: Loop
    let server: Server
    private var random: Random
    private let isTraced: Bool
    private(set) var lines: [String] = []
    private(set) var violation: (law: String, detail: String)?
    var covered: Set<String> = []

    private(set) var queue: NetworkQueue?
    private var outboxes: Outboxes?
    private var session: AuthenticationSession<Tokens>?
    private let reachability = NetworkReachability(.reachable)
    private var subscription: EventSubscription?
    private var acts: [History.Act?]
    private var stepActs: [Int: [Int]] = [:]
    private(set) var healedAt: Double?

    var records: [Record]
    /// Those of the jobs, by their operations.
    var numbers: [ObjectIdentifier: Int] = [:]
    var fates: [Fate] = []
    var lastFailure = [-1e9, -1e9]

    // Users. An epoch is the time from a sign-in to the next one, or to a sign-out.
    private(set) var validEpochs: Set<Int> = []
    private var epochCount = 0
    private var epochChanges = 0
    /// The steps at which a user was signed in or out.
    private(set) var signedIn: [(step: Int, user: Int?)] = []
    private(set) var (hasSignedOut, hasRevoked) = (false, false)

    // Limits.
    private(set) var limit: Int
    private(set) var limitChangedAt = 0.0
    private(set) var hasLimitedHosts = false
    /// The jobs that had a slot when the limit was lowered, and when the queue was suspended.
    private(set) var grandfathered: Set<Int> = []
    private(set) var startedBeforeSuspension: Set<Int>?
    /// The jobs with a slot, those of them that had none before, and how many slots have been given.
    var hadSlots: Set<Int> = []
    var newlyRunning: Set<Int> = []
    var grantCount = 0

    init(_ history: History, isTraced: Bool, folder: String) {
        (self.history, self.isTraced, self.folder) = (history, isTraced, folder)
        loop = Loop(seed: history.seed &* 31 &+ 7, history.settings)
        server = Server(history.settings)
        random = Random(history.seed &* 17 &+ 3)
        records = history.jobs.map { _ in Record() }
        acts = history.acts
        limit = history.settings.limit
    }

    func log(_ text: @autoclosure () -> String) {
        guard isTraced else { return }
        let milliseconds = Int(((loop.now - 1_000) * 1_000).rounded())
        let rest = "00\(milliseconds % 1_000)".suffix(3)
        lines.append("\(milliseconds / 1_000).\(rest) \(text())")
    }

    func violate(_ law: Law, _ detail: String) {
        guard violation == nil else { return }
        violation = (law.rawValue, detail)
        log("AGAINST THE LAW: \(law.rawValue): \(detail)")
        loop.mustStop = true
    }

    func latency() -> Double { random.seconds(0...0.06) }
    func flip() -> Bool { random.chance(0.5) }
    func after(_ seconds: Double, _ action: @escaping @Sendable () -> Void) { loop.after(seconds, action) }

    func fault(of message: Int) -> History.Fault.Kind? {
        healedAt != nil ? nil : history.faults.first { $0.message == message }?.kind
    }

    func live() {
        prepare()
        loop.willStep = { [unowned self] in
            if let due = stepActs.removeValue(forKey: loop.stepCount) { for index in due { perform(index) } }
            if loop.stepCount > 60_000 { violate(.time, "60,000 pieces of work") }
        }
        loop.becomesQuiet = { [unowned self] in checkQuiet() }
        loop.run(until: loop.now + 40)
        heal()
        for _ in 0..<300 where !loop.mustStop && !isOver { loop.run(until: loop.now + 10) }
        if let outboxes, violation == nil {
            if history.mails.contains(where: { $0.options.period != nil }) { loop.run(until: loop.now + 200) }
            outboxes.checkEnd()
        }
        if violation == nil { checkEnd() }
        tearDown()
    }

    private var isOver: Bool {
        records.allSatisfy { $0.operation?.isFinished ?? true } && queue?.operationCount == 0
            && outboxes?.isDone ?? true
    }

    private func prepare() {
        let settings = history.settings
        let queue = NetworkQueue(
            maxConcurrentOperationCount: settings.limit,
            maxConcurrentOperationCountPerHost: settings.hostLimit,
            rateLimit: settings.rate.map { RateLimit($0, per: 1) },
            clock: loop
        )
        for (tag, limit) in settings.tagLimits.enumerated() where limit >= 0 {
            queue.setMaxConcurrentOperationCount(limit, forTag: "t\(tag)")
        }
        self.queue = queue
        if settings.listens {
            subscription = queue.subscribe { [unowned self] event in
                guard isTraced else { return }
                if case .progress = event.kind { return }
                if let name = event.operation?.name { log("\(name): \(Self.text(of: event))") }
            }
        }
        let save: @Sendable (Tokens.Credential?) -> Void = { [unowned self] credential in
            log("saves \(credential.map { "token \($0.access)" } ?? "none")")
            happens(.saving)
            loop.interrupt()
        }
        let session = AuthenticationSession(
            Tokens(world: self),
            credential: settings.startsSignedIn ? newCredential(0) : nil,
            clock: loop,
            save: settings.savesTokens ? save : nil
        )
        if settings.startsSignedIn { noteUser(0) }
        validEpochs = settings.startsSignedIn ? [0] : []
        self.session = session
        let cache = NetworkCache(diskBytes: 0, clock: loop)
        let services = ["a", "b"].map { name in
            let host = HostConfiguration(
                baseURL: URL(string: "https://\(name).test"),
                transport: Network(world: self)
            ) { host in
                host.clock = loop
                host.random = { [unowned self] in Double(random.below(1_001)) / 1_000 }
                host.cache = cache
                if name == "a" { host.authentication = session }
                if settings.hasReachability { host.reachability = reachability }
                switch settings.circuit {
                case .none: break
                case .fails: host.circuitBreaker = CircuitBreaker(opensAfter: .failuresInRow(2), openTime: 2)
                case .waits:
                    host.circuitBreaker = CircuitBreaker(opensAfter: .failuresInRow(2), openTime: 2, waits: true)
                }
            }
            return EasyNetworkService(host)
        }
        makeJobs(services)
        if !history.mails.isEmpty {
            let outboxes = Outboxes(self)
            for place in 0..<2 { outboxes.start(place) }
            self.outboxes = outboxes
            loop.mayInterruptFiles = { [unowned self] in self.outboxes?.mayInterrupt ?? true }
        }
        for (index, act) in history.acts.enumerated() {
            switch act.moment {
            case .at(let time): after(time) { self.perform(index) }
            case .step(let step): stepActs[step, default: []].append(index)
            case .callback, .message, .saving: break
            }
        }
    }

    /// All that went wrong is over: each job that was added must come to its end.
    private func heal() {
        guard let queue, !loop.mustStop else { return }
        log("all is well again")
        healedAt = loop.now
        (acts, stepActs) = ([], [:])
        loop.diskIsFullUntil = 0
        server.recover()
        reachability.status = .reachable
        resumeQueue(queue)
        if limit == 0 { setLimit(1, queue) }
        for tag in 0..<3 { queue.setMaxConcurrentOperationCount(-1, forTag: "t\(tag)") }
        for index in records.indices { (records[index].operation as? DownloadOperation)?.resume() }
        outboxes?.heal()
    }

    private func tearDown() {
        outboxes?.tearDown()
        (subscription, outboxes, session) = (nil, nil, nil)
        for index in records.indices {
            (records[index].leaked, records[index].operation) = (records[index].operation, nil)
        }
        let isQueueThere = { [weak queue] in queue != nil }
        queue = nil
        guard violation == nil else { return }
        loop.run(until: loop.now + 100)
        if let index = records.firstIndex(where: { $0.leaked != nil }) {
            violate(.freed, "job \(index) is still there")
        }
        if isQueueThere() { violate(.freed, "the queue is still there") }
    }

    private static func text(of event: NetworkEvent) -> String {
        switch event.kind {
        case .finished(let error): "finished \(error.map { "\($0.code)" } ?? "well")"
        case .retryScheduled(let delay, _): "waits \(delay) for a retry"
        default: "\(event.kind)".prefix { $0 != "(" }.description
        }
    }

    /// Performs the acts that wait for this moment.
    func happens(_ moment: Moment) {
        for index in acts.indices {
            switch (acts[index]?.moment, moment) {
            case (.callback(let one), .callback(let other)) where one == other: perform(index)
            case (.message(let one), .message(let other)) where one == other:
                let deed = index
                after(0) { self.perform(deed) }
            case (.saving, .saving): perform(index)
            default: break
            }
        }
    }

    enum Moment { case callback(Int), message(Int), saving }

    private func perform(_ index: Int) {
        guard acts.indices.contains(index), let act = acts[index].take() else { return }
        perform(act.deed)
    }

    private func perform(_ deed: History.Act.Deed) {
        guard let queue, let session else { return }
        log("user: \(deed)")
        covered.insert("\(deed)".prefix { $0 != "(" }.description)
        switch deed {
        case .cancel(let job): if records[job].isAdded { cancel([job]) { $0[0]?.cancel() } }
        case .cancelAll:
            cancel(Array(records.indices.filter { records[$0].isAdded })) { _ in queue.cancelAllOperations() }
        case .cancelTag(let tag):
            // Those that a group has not added yet are not here.
            let here = queue.operations.compactMap { numbers[ObjectIdentifier($0)] }
            let jobs = here.filter { history.jobs[$0].tags.contains(tag) }
            cancel(jobs) { _ in queue.cancelOperations(tag: "t\(tag)") }
        case .pause(let job): (records[job].operation as? DownloadOperation)?.pause()
        case .resume(let job): (records[job].operation as? DownloadOperation)?.resume()
        case .signOut:
            hasSignedOut = true
            changeUser(to: nil) { session.signOut() }
        case .signIn(let user):
            let credential = newCredential(user)
            validEpochs.insert(credential.epoch)
            changeUser(to: user) { session.signIn(credential) }
        case .suspend:
            queue.isSuspended = true
            startedBeforeSuspension = runningJobs(queue)
        case .goOn: resumeQueue(queue)
        case .limit(let limit): setLimit(limit, queue)
        case .hostLimit(let limit):
            hasLimitedHosts = true
            queue.maxConcurrentOperationCountPerHost = limit
        case .tagLimit(let tag, let limit): queue.setMaxConcurrentOperationCount(limit, forTag: "t\(tag)")
        case .priority(let job, let priority):
            records[job].operation?.queuePriority = Self.priority(priority)
            (records[job].priority, records[job].waitsForSlotSince) = (priority, nil)
        case .deadline(let job, let seconds):
            (records[job].operation as? NetworkOperation)?.deadline = seconds
        case .change(let resource): server.change(resource)
        case .outage(let host, let seconds):
            server.breakDown(host, until: loop.now + seconds, answers: flip())
        case .revoke:
            hasRevoked = true
            server.revokeAll()
        case .clock(let seconds): loop.dateOffset += seconds
        case .mail(let mail): outboxes?.add(history.mails[mail])
        case .removeMail(let mail, let place): outboxes?.remove(mail, place)
        case .retryMail(let mail, let place): outboxes?.retry(mail, place)
        case .disk(let seconds): loop.diskIsFullUntil = loop.now + seconds
        case .kill(let place): outboxes?.kill(place)
        case .restart(let place): outboxes?.start(place)
        case .damage(let kind): outboxes?.damage(["7fffffffffffffff", "", "garbage", "00000000000000ff"][kind])
        case .network(let seconds):
            reachability.status = .unreachable
            after(seconds) { [unowned self] in reachability.status = .reachable }
        }
    }

    private func cancel(_ jobs: [Int], _ act: ([Operation?]) -> Void) {
        var all = jobs
        for job in jobs { all += history.members(of: job) }
        for job in all { records[job].mayBeCancelled = true }
        act(jobs.map { records[$0].operation })
        for job in jobs { records[job].hasCancelReturned = true }
    }

    private func setLimit(_ limit: Int, _ queue: NetworkQueue) {
        queue.maxConcurrentOperationCount = limit
        (self.limit, limitChangedAt) = (limit, loop.now)
        grandfathered = runningJobs(queue)
    }

    private func resumeQueue(_ queue: NetworkQueue) {
        startedBeforeSuspension = nil
        queue.isSuspended = false
    }

    /// The jobs that have a slot.
    func runningJobs(_ queue: NetworkQueue) -> Set<Int> {
        Set(queue.drawnJobs.jobs.lazy.filter(\.isRunning).compactMap { self.numbers[ObjectIdentifier($0.operation)] })
    }

    static func priority(_ number: Int) -> Operation.QueuePriority {
        [.veryLow, .low, .normal, .high, .veryHigh][number + 2]
    }

    private func newCredential(_ user: Int) -> Tokens.Credential {
        let (access, refresh) = server.makeToken(for: user, at: loop.now)
        epochCount += 1
        return Tokens.Credential(access: access, refresh: refresh, epoch: epochCount - 1)
    }

    /// - Parameter change: may be interrupted by another change, which is the later one then.
    private func changeUser(to user: Int?, _ change: () -> Void) {
        epochChanges += 1
        let (number, epoch) = (epochChanges, user == nil ? nil : epochCount - 1)
        noteUser(user)
        change()
        if number == epochChanges { validEpochs = epoch.map { [$0] } ?? [] }
        log("user: \(user.map { "is signed in as \($0)" } ?? "is signed out")")
    }

    private func noteUser(_ user: Int?) {
        signedIn.append((loop.stepCount, user))
    }

    func willSend(_ message: Message, mail: Int) { outboxes?.willSend(message, mail) }

    func newMessage(_ request: TransportRequest, body: Data) -> Message {
        let message = Message(fates.count, request, body: body)
        fates.append(Fate(host: message.host, sentAt: loop.now))
        return message
    }

    func receives(_ message: Message) {
        guard let job = message.job else { return }
        records[job].receivesSince = records[job].receivesSince ?? loop.now
    }

    func ended(_ message: Message, _ code: NetworkError.Code?, status: Int?) {
        (fates[message.number].endedAt, fates[message.number].error) = (loop.now, code)
        if code != nil && code != .cancelled || status.map({ $0 >= 500 || $0 == 429 }) ?? false {
            lastFailure[message.host] = loop.now
        }
        log("message \(message.number) ends\(code.map { ": \($0)" } ?? "")")
        if let mail = message.mail { outboxes?.ended(message, mail, status: code == nil ? status : nil) }
        if let job = message.job, let fault = history.faults.first(where: { $0.message == message.number }) {
            covered.insert("\(history.jobs[job].kind) \(fault.kind)".prefix { $0 != "(" }.description)
        }
    }
}
