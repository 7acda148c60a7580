import EasyNetwork
import Foundation

/// One history in a world of its own: servers, a network, users and their jobs, all of it on this thread.
final class World: @unchecked Sendable {
    // Sendable because one thread uses it.

    let history: History
    let folder: String
    let loop: Loop
    let server: Server
    private let random: Random
    private let isTraced: Bool
    var outcome: Outcome

    private(set) var queue: NetworkQueue?
    private(set) var processes: Processes?
    private(set) var loads: Loads?
    private let cookies = CookieJar()
    private(set) var cache: NetworkCache?
    private(set) var session: AuthenticationSession<Tokens>?
    private let reachability = NetworkReachability(.reachable)
    private var subscriptions: [EventSubscription] = []
    private var deeds: [History.Act.Moment: [History.Act.Deed]]
    private var (fileMoment, fileCount): (((Int) -> History.Act.Moment)?, Int) = (nil, 0)
    private(set) var healedAt: Double?

    let jobs: [Job]
    var jobsByOperation: [ObjectIdentifier: Job] = [:]
    /// Those that were added, until they have finished.
    var openJobs: [Job] = []
    let hasDownloads: Bool
    private(set) var messages: [Message] = []
    /// Those to the hosts, if there are any and a message goes to the host of its service alone.
    var circuits: [Circuit] = []

    // Users. An epoch is the time from a sign-in to the next one, or to a sign-out.
    private(set) var validEpochs: Set<Int> = []
    /// The steps at which a user was signed in or out.
    private(set) var signedIn: [(step: Int, user: Int?)] = []
    var refreshes: [(credential: Tokens.Credential?, beganAt: Double, endedAt: Double?)] = []

    // Limits.
    private(set) var limit: Int
    private(set) var limitChangedAt = 0.0
    private(set) var hasLimitedHosts: Bool
    /// The jobs that had a slot when the limit was lowered, and when the queue was suspended.
    private(set) var grandfathered: Set<Int> = []
    private(set) var startedBeforeSuspension: Set<Int>?
    /// The jobs with a slot, and those that ran when a running job was cancelled.
    var (hadSlots, hadRun): (Set<Int>, Set<Int>) = ([], [])
    /// The jobs that had no slot before, how many slots have been given, and when jobs without network have executed.
    var (newlyRunning, grantCount, executionTimes): ([Job], Int, [Double]) = ([], 0, [])
    /// When the slots were last looked at, and when a job last got its first one.
    var (checkedAt, startedAt) = (0.0, -Double.infinity)
    /// When barriers were added, and the jobs before them.
    private(set) var barriers: [(step: Int, before: [Job])] = []

    init(_ history: History, isTraced: Bool, folder: String) {
        (self.history, self.isTraced, self.folder) = (history, isTraced, folder)
        outcome = Outcome(seed: history.seed)
        loop = Loop(seed: history.seed &* 31 &+ 7, history.settings)
        server = Server(history.settings)
        random = Random(history.seed &* 17 &+ 3)
        jobs = history.jobs.map(Job.init)
        hasDownloads = history.jobs.contains { $0.kind == .download }
        deeds = Dictionary(grouping: history.acts, by: \.moment).mapValues { $0.map(\.deed) }
        (limit, hasLimitedHosts) = (history.settings.limit, history.settings.hostLimit >= 0)
    }

    func log(_ text: @autoclosure () -> String) {
        guard isTraced else { return }
        let milliseconds = Int(((loop.now - 1_000) * 1_000).rounded())
        let rest = "00\(milliseconds % 1_000)".suffix(3)
        // The folder has another name each time.
        let text = text().replacingOccurrences(of: folder, with: "")
        outcome.trace.append("\(milliseconds / 1_000).\(rest) \(text)")
    }

    func violate(_ law: Law, _ detail: String) {
        guard outcome.law == nil else { return }
        (outcome.law, outcome.detail) = (law.rawValue, detail)
        log("AGAINST THE LAW: \(law.rawValue): \(detail)")
        loop.mustStop = true
    }

    func latency() -> Double { random.seconds(0...0.06) }
    func flip() -> Bool { random.chance(0.5) }
    func after(_ seconds: Double, _ action: @escaping @Sendable () -> Void) { loop.after(seconds, action) }

    func fault(of message: Message) -> History.Fault.Kind? {
        if let healedAt, message.sentAt >= healedAt { return nil }
        return history.faults.first { $0.message == message.number }?.kind
    }

    func live() {
        loop.willStep = { [unowned self] in
            if !deeds.isEmpty { happens(.step(loop.stepCount)) }
            if loop.stepCount > 60_000 { violate(.endless, "60,000 pieces of work") }
        }
        loop.becomesQuiet = { [unowned self] in checkQuiet() }
        loop.willCancel = { [unowned self] in hadRun.formUnion(openJobs.filter(\.isRunning).map(\.number)) }
        loop.run(until: loop.now + 40)
        heal()
        for _ in 0..<300 where !loop.mustStop && !isOver { loop.run(until: loop.now + 10) }
        if let processes, outcome.law == nil {
            if history.mails.contains(where: { $0.period != nil }) { loop.run(until: loop.now + 200) }
            processes.checkEnd()
        }
        if outcome.law == nil { checkEnd() }
        tearDown()
    }

    private var isOver: Bool {
        jobs.allSatisfy(\.isFinished) && queue?.operationCount == 0 && processes?.isDone ?? true
    }

    func prepare() {
        let settings = history.settings
        let queue = NetworkQueue(
            maxConcurrentOperationCount: settings.limit,
            maxConcurrentOperationCountPerHost: settings.hostLimit,
            rateLimit: settings.rate.map { RateLimit($0, per: 1, burst: settings.burst) },
            clock: loop
        )
        for (tag, limit) in settings.tagLimits.enumerated() where limit >= 0 {
            queue.setMaxConcurrentOperationCount(limit, forTag: "t\(tag)")
        }
        self.queue = queue
        if settings.listens { listen(to: queue) }
        var save: (@Sendable (Tokens.Credential?) -> Void)?
        if settings.savesTokens {
            save = { [unowned self] credential in
                log("saves \(credential.map { "token \($0.access)" } ?? "none")")
                happens(.saving)
                loop.interrupt()
            }
        }
        let credential = settings.startsSignedIn ? newCredential(0, epoch: 0) : nil
        let session = AuthenticationSession(Tokens(world: self), credential: credential, clock: loop, save: save)
        if let credential { (signedIn, validEpochs) = ([(loop.stepCount, 0)], [credential.epoch]) }
        self.session = session
        let cache = NetworkCache(diskBytes: 0, clock: loop)
        self.cache = cache
        let otherCredential = newCredential(Self.otherUser, epoch: -1)
        let other = AuthenticationSession(Tokens(world: self), credential: otherCredential, clock: loop)
        let services = [("a", session), ("b", nil), ("a", other)].enumerated().map { client, host in
            let ((name, session), isOther) = (host, host.1 === other)
            let url = URL(string: "https://\(name).test")
            let host = HostConfiguration(baseURL: url, transport: Network(world: self, client: client)) { host in
                (host.clock, host.retryBudget) = (loop, 1_000)
                host.random = { [unowned self] in Double(random.below(1_001)) / 1_000 }
                (host.cache, host.cookies) = (cache, settings.hasCookies && !isOther ? cookies : nil)
                host.authentication = session
                if settings.hasPartitions { host.cachePartition = isOther ? "other" : "first" }
                if settings.hasReachability { host.reachability = reachability }
                guard settings.circuit != .none else { return }
                let waits = settings.circuit == .waits
                host.circuitBreaker = CircuitBreaker(opensAfter: .failuresInRow(2), openTime: 2, waitsWhileOpen: waits)
            }
            listen(to: host)
            return EasyNetworkService(host)
        }
        makeJobs(services)
        loads = Loads(self, queue, services[0])
        if !history.mails.isEmpty {
            processes = Processes(self)
            for place in 0..<2 { processes?.start(place) }
            loop.mayInterruptFiles = { [unowned self] in self.processes?.mayInterrupt ?? true }
            loop.usesFile = { [unowned self] in usesFile() }
        }
        for act in history.acts { if case .at(let time) = act.moment { after(time) { self.happens(act.moment) } } }
    }

    /// Has the events of the queue in the trace.
    func listen(to queue: NetworkQueue) {
        let subscription = queue.subscribe { [unowned self] event in
            guard isTraced, let name = event.operation?.name else { return }
            switch event.kind {
            case .progress: break
            case .finished(let error): log("\(name): finished \(error.map { "\($0.code)" } ?? "well")")
            case .retryScheduled(let delay, _): log("\(name): waits \(delay) for a retry")
            default: log("\(name): \(Self.name(of: event.kind))")
            }
        }
        subscriptions.append(subscription)
    }

    private func listen(to host: HostConfiguration) {
        let number = circuits.count
        guard history.settings.circuit != .none, history.settings.resources.allSatisfy({ $0.redirect == nil }) else {
            return
        }
        circuits.append(Circuit())
        subscriptions.append(host.subscribe { [unowned self] event in circuitChanges(number, event.kind) })
    }

    /// The name of a case.
    private static func name(of value: Any) -> String { "\(value)".prefix { $0 != "(" }.description }

    /// All that went wrong is over: each job that was added must come to its end.
    private func heal() {
        guard let queue, !loop.mustStop else { return }
        log("all is well again")
        healedAt = loop.now
        deeds = [:]
        (loop.diskIsFullUntil, loop.dateOffset) = (0, 0)
        server.recover()
        reachability.status = .reachable
        (startedBeforeSuspension, queue.isSuspended) = (nil, false)
        if limit == 0 { setLimit(1, queue) }
        for tag in 0..<3 { queue.setMaxConcurrentOperationCount(-1, forTag: "t\(tag)") }
        jobs.forEach(resume)
        processes?.heal()
    }

    private func tearDown() {
        processes?.tearDown()
        (subscriptions, processes, loads, session) = ([], nil, nil, nil)
        var mayLeak = jobs.map { job in
            ("job \(job.number)", { [weak operation = job.operation] in operation != nil })
        }
        mayLeak.append(("the queue", { [weak queue] in queue != nil }))
        for job in jobs {
            (job.operation, job.members, job.groups, job.dependencies, job.dependents) = (nil, [], [], [], [])
            job.calls = []
        }
        barriers = []
        queue = nil
        guard outcome.law == nil else { return }
        loop.run(until: loop.now + 100)
        for (name, isThere) in mayLeak where isThere() { violate(.leaked, "\(name) is still there") }
    }

    static let otherUser = 3
    /// Whether a job is for the account that no one signs out of.
    func isOther(_ job: History.Job) -> Bool { job.isOther && history.settings.hasPartitions }
    /// Whether users have.
    func hasDone(_ deed: String) -> Bool { outcome.covered.contains(deed) }

    /// Counts the uses of files from now on.
    func watchFiles(_ moment: @escaping (Int) -> History.Act.Moment) { (fileCount, fileMoment) = (0, moment) }

    private func usesFile() {
        guard let fileMoment, let due = deeds.removeValue(forKey: fileMoment(fileCount)) else { return fileCount += 1 }
        fileCount += 1
        // Not while the lock of a folder is held, for which they would wait.
        guard loop.mayInterruptFiles() else { return deeds[fileMoment(fileCount), default: []] += due }
        loop.within(0) { due.forEach(perform) }
    }

    /// Performs the acts that wait for this moment. Users are part of no process.
    func happens(_ moment: History.Act.Moment) {
        loop.within(0) { deeds.removeValue(forKey: moment)?.forEach(perform) }
    }

    func perform(_ deed: History.Act.Deed) {
        guard let queue, let session else { return }
        log("user: \(deed)")
        outcome.covered.insert(Self.name(of: deed))
        switch deed {
        case .cancel(let job): if jobs[job].isAdded { cancel([jobs[job]]) { jobs[job].operation?.cancel() } }
        case .cancelAll:
            loads?.mayBeCancelled = true
            cancel(jobs.filter(\.isAdded)) { queue.cancelAllOperations() }
        case .cancelTag(let tag):
            // Those that a group has not added yet are not here.
            let here = queue.operations.compactMap { jobsByOperation[ObjectIdentifier($0)] }
            cancel(here.filter { $0.plan.tags.contains(tag) }) { queue.cancelOperations(tag: "t\(tag)") }
        case .pause(let job):
            (jobs[job].operation as? DownloadOperation)?.pause()
            jobs[job].pausedAt = loop.now
        case .resume(let job): resume(jobs[job])
        case .signOut: setUser(nil, session)
        case .signIn(let user): setUser(user, session)
        case .suspend:
            queue.isSuspended = true
            startedBeforeSuspension = runningJobs(queue)
        case .goOn: (startedBeforeSuspension, queue.isSuspended) = (nil, false)
        case .limit(let limit): setLimit(limit, queue)
        case .hostLimit(let limit):
            hasLimitedHosts = true
            queue.maxConcurrentOperationCountPerHost = limit
        case .tagLimit(let tag, let limit): queue.setMaxConcurrentOperationCount(limit, forTag: "t\(tag)")
        case .priority(let job, let priority):
            let job = jobs[job]
            job.operation?.queuePriority = Self.priority(priority)
            (job.priority, job.priorityChangedAt, job.waitsForSlotSince) = (priority, loop.now, nil)
        case .deadline(let job, let seconds): jobs[job].network?.deadline = seconds
        case .change(let resource): server.change(resource)
        case .outage(let host, let seconds): server.breakDown(host, until: loop.now + seconds, answers: flip())
        case .revoke: server.revokeAll()
        case .clock(let seconds): loop.dateOffset += seconds
        case .mail(let mail): processes?.add(mail)
        case .removeMail(let mail, let place): processes?.remove(mail, place)
        case .retryMail(let mail, let place): processes?.retry(mail, place)
        case .drain(let place, let seconds): processes?.drain(place, seconds)
        case .disk(let seconds): loop.diskIsFullUntil = loop.now + seconds
        case .kill(let place): processes?.kill(place)
        case .restart(let place): processes?.start(place)
        case .damage(let kind): processes?.damage(kind)
        case .read(let resource, let place): processes?.read(resource, place)
        case .load(let load): loads?.load(load)
        case .cancelLoad(let number): loads?.cancel(number)
        case .hurryLoad(let number, let priority): loads?.hurry(number, Self.priority(priority))
        case .depend(let job, let other):
            // Not of one that may be about to start.
            let (job, other) = (jobs[job], jobs[other])
            guard !job.hasStarted, job !== other, !runningJobs(queue).contains(job.number) else { return }
            // It waits behind the others again.
            job.waitsForSlotSince = nil
            addDependency(other, of: job)
        case .release(let job):
            let job = jobs[job]
            // Foundation's own operations do not become ready then.
            guard !job.hasStarted, !job.isForeign, !job.plan.isPrepared,
                let other = job.dependencies.last?.operation
            else { return }
            job.operation?.removeDependency(other)
            // Too late when the failure of the other one is ending it.
            guard job.operation?.dependencies.contains(other) == false else { return }
            job.dependencies.removeAll { $0.operation === other }
        case .giveUp(let job):
            jobs[job].mayBeCancelled = true
            jobs[job].calls.first?.cancel()
        case .barrier(let seconds):
            let before = queue.operations
            barriers.append((loop.stepCount, before.compactMap { jobsByOperation[ObjectIdentifier($0)] }))
            queue.addBarrierBlock { [unowned self] in loop.interrupt() }
            let barrier = queue.operations.last { !before.contains($0) }
            after(seconds) { barrier?.cancel() }
        case .network(let seconds):
            reachability.status = .unreachable
            after(seconds) { [unowned self] in reachability.status = .reachable }
        }
    }

    private func resume(_ job: Job) {
        job.pausedAt = nil
        (job.operation as? DownloadOperation)?.resume()
    }

    private func cancel(_ jobs: [Job], _ act: () -> Void) {
        for job in jobs { for each in [job] + job.members { each.mayBeCancelled = true } }
        act()
        for job in jobs { job.cancelledAt = job.cancelledAt ?? loop.now }
    }

    private func setLimit(_ limit: Int, _ queue: NetworkQueue) {
        queue.maxConcurrentOperationCount = limit
        (self.limit, limitChangedAt) = (limit, loop.now)
        grandfathered = runningJobs(queue)
    }

    /// The numbers of the jobs that have a slot.
    func runningJobs(_ queue: NetworkQueue) -> Set<Int> {
        let running = queue.drawnJobs.jobs.filter(\.isRunning)
        return Set(running.compactMap { jobsByOperation[ObjectIdentifier($0.operation)]?.number })
    }

    static func priority(_ number: Int) -> Operation.QueuePriority {
        [.veryLow, .low, .normal, .high, .veryHigh][number + 2]
    }

    /// - Parameter epoch: negative for the other account.
    private func newCredential(_ user: Int, epoch: Int) -> Tokens.Credential {
        let (access, refresh) = server.makeToken(for: user, at: loop.now)
        return Tokens.Credential(access: access, refresh: refresh, epoch: epoch)
    }

    private func setUser(_ user: Int?, _ session: AuthenticationSession<Tokens>) {
        let user = history.settings.hasPartitions ? user.map { _ in 0 } : user
        let credential = user.map { newCredential($0, epoch: signedIn.count) }
        signedIn.append((loop.stepCount, user))
        let number = signedIn.count
        if let credential {
            validEpochs.insert(credential.epoch)
            session.signIn(credential)
        } else {
            session.signOut()
        }
        cookies.removeAll()
        // Another change may have interrupted this one, and is the later one then.
        if number == signedIn.count { validEpochs = credential.map { [$0.epoch] } ?? [] }
        log("user: \(user.map { "is signed in as \($0)" } ?? "is signed out")")
    }

    func newMessage(_ request: TransportRequest, _ client: Int?) -> Message {
        messages.append(Message(messages.count, request, at: loop.now, client))
        return messages[messages.count - 1]
    }

    func receives(_ message: Message) {
        guard let job = message.job.map({ jobs[$0] }) else { return }
        (job.receivesSince, job.absence) = (job.receivesSince ?? loop.now, nil)
    }

    /// - Parameter status: of the answer that came.
    func ended(_ message: Message, _ code: NetworkError.Code?, status: Int?) {
        (message.endedAt, message.error) = (loop.now, code)
        if let job = message.job { jobs[job].receivesSince = nil }
        log("message \(message.number) ends\(code.map { ": \($0)" } ?? "")")
        if let mail = message.mail { processes?.ended(message, mail: mail, status) }
        if let job = message.job, let fault = fault(of: message) {
            outcome.covered.insert("\(jobs[job].plan.kind) \(Self.name(of: fault))")
        }
    }
}
