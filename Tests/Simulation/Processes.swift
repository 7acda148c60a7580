import EasyNetwork
import EasyNetworkOutbox
import Foundation

/// An entry of an outbox as the history wants it.
struct MailRequest: APIRequest, Codable {
    typealias Item = Answer
    let mail: Int
    let resource: Int
    var api: String { "w/\(resource)" }
    var method: NetworkService.Method { .post }
    var headers: [String: String]? { ["X-Mail": "\(mail)"] }
    var params: [String: Any]? { ["mail": mail] }
    var options: RequestOptions { RequestOptions(retry: .never) }
}

/// What is known of an entry from outside.
private final class Mail: CustomStringConvertible, @unchecked Sendable {
    // Sendable because one thread uses it.
    let plan: History.Mail
    var id: UUID?
    var (addedAt, removedAt): (Double, Double?) = (0, nil)
    /// When its success was seen by a process that still lives, and the number of that.
    var seen: (at: Double, process: Int)?
    var isAccepted = false
    /// When it may have become a dead letter, and when it was an entry again or was to be tried at once.
    var (diedAt, revivedAt, hastenedAt) = (-Double.infinity, -Double.infinity, -Double.infinity)
    /// Since it was an entry again: whether it was refused for good, and how many tries have failed.
    var (isRefused, failureCount) = (false, 0)
    /// The time of its last failure on disk, the earliest time of its next try unless a user asks for one, and the number
    /// of its failures on disk.
    var (failedAt, nextTry, notedCount) = (0.0, 0.0, 0)
    /// The messages of the entry, the earlier entries of its lane, and the entry that it depends on.
    var (messages, before, after): ([Message], [Mail], Mail?) = ([], [], nil)

    init(_ plan: History.Mail) { self.plan = plan }

    var description: String { "mail \(plan.number)" }
    var hasActed: Bool { messages.contains(where: \.hasActed) }
    var isPeriodic: Bool { plan.period != nil }
    var isDelivered: Bool { hasActed || isAccepted }
    var hasDied: Bool { diedAt > 0 }
    /// Whether those behind it in its lane may be sent.
    func mayBePassed(_ now: Double, _ slack: Double) -> Bool {
        isDelivered || removedAt != nil || hasDied && (revivedAt <= diedAt || now < revivedAt + slack)
    }
}

/// Two processes with outboxes over one folder, and caches over another.
final class Processes: @unchecked Sendable {
    // Sendable because one thread uses it.
    private typealias Process = (number: Int, outbox: Outbox, service: EasyNetworkService)

    private unowned let world: World
    private let (outboxFolder, cacheFolder): (URL, URL)
    private var processes: [Process?] = [nil, nil]
    private var (lastProcess, isDamaged) = (0, false)
    private let mails: [Mail]

    init(_ world: World) {
        self.world = world
        outboxFolder = URL(fileURLWithPath: world.folder + "/outbox")
        cacheFolder = URL(fileURLWithPath: world.folder + "/cache")
        mails = world.history.mails.map(Mail.init)
    }

    func start(_ place: Int) {
        guard processes[place] == nil else { return }
        lastProcess += 1
        let (number, loop) = (lastProcess, world.loop)
        loop.within(number) {
            do {
                let cache = try NetworkCache(directory: cacheFolder, diskCount: nil, diskAge: nil, clock: loop)
                let network = Network(world: world)
                let host = HostConfiguration(baseURL: URL(string: "https://b.test"), transport: network) {
                    ($0.clock, $0.cache, $0.random) = (loop, cache, { 0.5 })
                }
                let service = EasyNetworkService(host)
                let queue = NetworkQueue(maxConcurrentOperationCount: 2, clock: loop)
                let limit = world.history.settings.mailLimit
                let outbox = try Outbox(directory: outboxFolder, queue: queue, service: service, maximumCount: limit)
                outbox.register(MailRequest.self, name: "mail", delivered: settle)
                processes[place] = (number, outbox, service)
                try outbox.start()
                world.log("process \(place) starts")
            } catch { world.violate(.cannotOpen, "\(error)") }
        }
    }

    /// What the program does with a delivered entry.
    @Sendable private func settle(_ request: MailRequest, _: Answer) async -> Data? {
        let (time, over) = (mails[request.mail].plan.settleTime, Promise<Void>())
        _ = world.loop.schedule(after: time) { over.set() }
        if time > 0 { await over.wait() }
        return nil
    }

    /// Kills a process, as soon as none of its code is under way.
    func kill(_ place: Int) {
        guard let process = processes[place] else { return }
        guard world.loop.mayBeKilled(process.number) else { return world.after(0) { [self] in kill(place) } }
        world.log("process \(place) is killed")
        world.loop.kill(process.number)
        process.outbox.abandon()
        processes[place] = nil
        for mail in mails where mail.seen?.process == process.number { mail.seen = nil }
    }

    private func use(_ place: Int, _ work: (Process) throws -> Void) {
        guard let process = processes[place] else { return }
        world.loop.within(process.number) {
            do { try work(process) } catch {
                world.log("process \(place): \((error as? NetworkError).map { "\($0.code)" } ?? "\(error)")")
            }
        }
    }

    func add(_ number: Int) {
        let (mail, now) = (mails[number], world.loop.now)
        let plan = mail.plan
        guard mail.id == nil else { return }
        let others = mails.filter { $0.id != nil }
        let same = others.filter { $0.plan.unique == plan.unique && plan.unique != nil }
        let isReplacement = plan.replaces && same.contains { $0.messages.isEmpty && $0.removedAt == nil }
        let first = plan.after.map { mails[$0] }.flatMap { $0.id != nil && !$0.isPeriodic ? $0 : nil }
        let options = plan.options(at: world.loop.start)
        use(plan.process) { process in
            do throws(NetworkError) {
                let request = MailRequest(mail: number, resource: plan.resource)
                let waiting = plan.replaces ? Set(try process.outbox.entries.map(\.id)) : []
                let (lane, after) = (plan.lane.map { "lane\($0)" }, first?.id.map { [$0] } ?? [])
                let id = try process.outbox.add(request, lane: lane, after: after, options: options)
                // With `keep` it is another one.
                guard !mails.contains(where: { $0.id == id }) else { return }
                (mail.id, mail.addedAt, mail.after) = (id, now, first?.removedAt == nil ? first : nil)
                mail.before = others.filter { $0.plan.lane == plan.lane && plan.lane != nil }
                // At once, and taken back from those that have become dead letters before, or entries since then.
                let revived = same.filter { $0.revivedAt == now && plan.replaces }
                let replaced = same.filter { other in other.id.map(waiting.contains) ?? false } + revived
                for other in replaced {
                    other.removedAt = now
                    bury(dependentsOf: other)
                }
                let dead = replaced.isEmpty ? [] : try process.outbox.deadLetters
                let left = dead + (revived.isEmpty ? [] : try process.outbox.entries)
                for other in replaced {
                    let isThere = (revived.contains { $0 === other } ? left : dead).contains { $0.id == other.id }
                    if isThere { other.removedAt = nil }
                }
                world.log("process \(plan.process) adds mail \(number)")
            } catch {
                world.log("process \(plan.process) cannot add mail \(number): \(error.code)")
                let mayBeRefused = error.code != .refused || first?.hasDied ?? false
                world.forbid(.noRoomForReplacement, mail, when: isReplacement && !mayBeRefused)
            }
        }
    }

    /// Whether nobody has locked a part of the folder.
    var mayInterrupt: Bool {
        ["dead", "unique"].allSatisfy { name in
            let descriptor = open(outboxFolder.path + "/" + name, O_RDONLY)
            defer { close(descriptor) }
            return descriptor < 0 || flock(descriptor, LOCK_EX | LOCK_NB) == 0
        }
    }

    func remove(_ number: Int, _ place: Int) {
        use(place) { process in
            let mail = mails[number]
            guard let id = mail.id else { return }
            world.watchFiles { .removing($0) }
            if let unique = mail.plan.options().unique, mail.isPeriodic {
                // One that has just left may have its next period, under another id.
                func isMeant(_ entry: OutboxEntry) -> Bool { entry.options.unique == unique || entry.addedAt == nil }
                while case let some = try process.outbox.entries.filter(isMeant), !some.isEmpty {
                    try process.outbox.remove(some.map(\.id))
                }
            }
            try process.outbox.remove(id)
            mail.removedAt = mail.removedAt ?? world.loop.now
            bury(dependentsOf: mail)
            world.log("process \(place) has removed mail \(number)")
        }
    }

    private func bury(dependentsOf mail: Mail) {
        for other in mails where other.after === mail && !other.isDelivered {
            other.diedAt = world.loop.now
            bury(dependentsOf: other)
        }
    }

    func retry(_ number: Int, _ place: Int) { retry([mails[number]], place) }

    private func retry(_ some: [Mail], _ place: Int) {
        use(place) { process in
            for mail in some { mail.hastenedAt = world.loop.now }
            let dead = Set(try process.outbox.deadLetters.map(\.id))
            let died = mails.filter { $0.id.map(dead.contains) ?? false }
            // Another process may have made it an entry since it was found.
            for mail in died where !isDamaged && mail.removedAt == nil && mail.revivedAt < world.loop.now {
                let hasTriesLeft = mail.failureCount < mail.plan.maximumAttemptCount ?? .max && !mail.isRefused
                let isAlone = mail.after.map { !$0.hasDied && $0.removedAt == nil } ?? true
                world.forbid(.diedWithoutReason, mail, when: hasTriesLeft && isAlone)
            }
            try process.outbox.retry(some.compactMap(\.id))
            let entries = Set(try process.outbox.entries.map(\.id))
            for mail in died where mail.id.map(entries.contains) ?? false {
                (mail.revivedAt, mail.isRefused, mail.failureCount, mail.notedCount) = (world.loop.now, false, 0, 0)
            }
            world.log("process \(place) has \(some) tried again")
        }
    }

    /// Delivers for so long, and then begins again.
    func drain(_ place: Int, _ seconds: Double) {
        use(place) { process in
            for mail in mails { mail.hastenedAt = max(mail.hastenedAt, world.loop.now + max(0, seconds)) }
            WorkQueue.task { [world, outbox = process.outbox] in
                _ = try? await outbox.drain(deadline: seconds)
                // The other one may go on meanwhile.
                _ = world.loop.schedule(after: 3) { try? outbox.start() }
            }
        }
    }

    func willSend(_ message: Message, mail number: Int) {
        let (mail, now) = (mails[number], world.loop.now)
        let isSlow = world.history.settings.isSlow
        let slack = isSlow ? 30.0 : 5.0
        func isPast(_ time: Double?, by slack: Double) -> Bool { now > (time ?? .infinity) + slack }
        world.forbid(.sentAfterRemoval, mail, when: isPast(mail.removedAt, by: slack))
        let isOnce = !mail.isPeriodic
        let isSeen = isPast(mail.seen?.at, by: isSlow ? 30 : 0.1)
        // A full disk does not keep that it was delivered.
        let mustBeKept = mail.removedAt == nil && isOnce && !world.hasDone("disk")
        world.forbid(.sentAfterDelivery, mail, when: isSeen && mustBeKept)
        let time = world.hasDone("clock") ? nil : mail.plan.notBefore
        let hasTime = time.map { world.loop.date < world.loop.start + $0 - 0.001 } ?? false
        let isHastened = mail.plan.lane != nil || mail.hastenedAt >= mail.failedAt
        let isWaiting = now < mail.nextTry - 0.001 && isOnce && !isHastened && !world.hasDone("clock")
        world.forbid(.sentEarly, mail, when: (hasTime || isWaiting) && !message.isRedirected)
        let isFreed = mail.after.map { $0.removedAt ?? .infinity <= mail.hastenedAt } ?? true
        world.forbid(.sentBeforeDependency, mail, when: mail.after?.isDelivered == false && !isFreed)
        let key = mail.messages.last?.key
        world.forbid(.keyChanged, mail, when: isOnce && key != nil && key != message.key)
        mail.messages.append(message)
        let isFirst = mail.before.allSatisfy { $0.mayBePassed(now, isSlow ? 30 : 2) }
        world.forbid(.laneOutOfOrder, mail, when: !isDamaged && !isFirst && !message.isRedirected)
    }

    func ended(_ message: Message, mail number: Int, _ status: Int?) {
        let mail = mails[number]
        world.watchFiles { .settling($0) }
        if message.hasFailed || status == 408 { failed(message, mail) }
        guard let status else { return }
        if (200..<300).contains(status), message.error == nil {
            mail.isAccepted = true
            if !message.isCancelled { mail.seen = (world.loop.now, world.loop.process) }
        }
        // It is a dead letter soon, and may be sent again by hand. The head decides.
        let isFinal = (message.isRedirected ? 300..<500 : 400..<500).contains(status)
        if isFinal, ![408, 425, 429].contains(status) {
            (mail.diedAt, mail.isRefused) = (world.loop.now, true)
            bury(dependentsOf: mail)
        }
    }

    private func failed(_ message: Message, _ mail: Mail) {
        mail.failureCount += 1
        if mail.plan.maximumAttemptCount != nil {
            mail.diedAt = world.loop.now
            bury(dependentsOf: mail)
        }
        // What a killed process has not written is not known to the next one.
        let (process, now) = (world.loop.process, world.loop.now)
        world.after(0.1) { [self] in
            // One that was given up says nothing about its server. If a drain ends at this moment, the failure may not be
            // noted.
            let isNoted =
                world.loop.isAlive(process) && !message.isCancelled && !world.hasDone("disk") && mail.hastenedAt != now
            guard isNoted, mail.messages.last === message else { return }
            (mail.failedAt, mail.nextTry) = (now, now + pow(2, Double(min(mail.notedCount, 8))))
            mail.notedCount += 1
        }
    }

    func heal() {
        for place in processes.indices { start(place) }
        for place in processes.indices { use(place) { try $0.outbox.start() } }
        for place in processes.indices { retry(mails, place) }
    }

    /// Whether all has been delivered that was promised.
    var isDone: Bool { mails.allSatisfy { $0.id == nil || $0.isPeriodic || $0.isAccepted || $0.removedAt != nil } }

    func checkEnd() {
        use(0) { process in
            let (left, dead) = try (Set(process.outbox.entries.map(\.id)), Set(process.outbox.deadLetters.map(\.id)))
            for mail in mails {
                guard let id = mail.id else { continue }
                let isThere = left.contains(id) || dead.contains(id)
                if mail.removedAt != nil {
                    world.forbid(.stillThere, mail, when: isThere)
                } else if let period = mail.plan.period {
                    let lastSentAt = mail.messages.last?.sentAt ?? 0
                    let silence = world.loop.now - max(lastSentAt, mail.addedAt, world.healedAt ?? 0)
                    world.forbid(.periodMissed, mail, when: silence > 2.3 * period && !mail.hasDied)
                } else {
                    let isSettled = mail.isAccepted || mail.hasActed || dead.contains(id)
                    world.forbid(.neverDelivered, "\(mail), is there: \(isThere)", when: !isSettled)
                }
            }
        }
    }

    /// Reads a document by the rules of HTTP, from the cache on disk perhaps.
    func read(_ resource: Int, _ place: Int) {
        use(place) { process in
            WorkQueue.task { [self, service = process.service] in
                do {
                    let response = try await service.send(ReadRequest(resource: resource))
                    check(try response.decode(Answer.self), response, resource)
                } catch {
                    let error = error as? NetworkError
                    world.log("process \(place) cannot read \(resource): \(error.map { "\($0.code)" } ?? "")")
                    if error?.code == .cannotParseResponse { world.violate(.incompleteFile, "resource \(resource)") }
                }
            }
        }
    }

    private func check(_ answer: Answer, _ response: NetworkResponse, _ resource: Int) {
        world.log("a process reads \(resource): answer of message \(answer.message) by \(response.source)")
        world.outcome.covered.insert("read by \(response.source)")
        world.check(answer, of: resource, since: 0, "a process")
        if response.source == .cache { world.age(of: answer) }
    }

    /// Writes over a file of the outbox or of the cache.
    func damage(_ kind: Int) {
        if kind < 4 {
            isDamaged = true
            let text = ["7fffffffffffffff", "", "garbage", "00000000000000ff"][kind]
            try? Data(text.utf8).write(to: outboxFolder.appendingPathComponent("sequence"))
        } else {
            let name = try? FileManager.default.contentsOfDirectory(atPath: cacheFolder.path).min()
            guard let file = name.map(cacheFolder.appendingPathComponent) else { return }
            guard var data = try? Data(contentsOf: file), !data.isEmpty else { return }
            if kind == 4 { data = data.prefix(data.count / 2) } else { data[data.count - 1 - data.count / 5] ^= 1 }
            try? data.write(to: file)
        }
    }

    func tearDown() { for place in processes.indices { kill(place) } }
}

extension History {
    struct Mail: Sendable {
        let (number, process, resource): (Int, Int, Int)
        let (lane, replaces): (Int?, Bool)
        private(set) var (unique, period): (Int?, Double?)
        let notBefore: Double?
        let after, maximumAttemptCount: Int?
        /// The seconds for which a delivered one is used before it leaves.
        let settleTime: Double

        init(_ number: Int, _ choices: Choices, _ resourceCount: Int) {
            self.number = number
            (process, resource) = (choices.below(2), choices.below(resourceCount))
            period = choices.chance(0.2) ? 60 : nil
            lane = choices.pick(weighted: [(2, nil), (1, 0), (1, 1)])
            unique = choices.pick(weighted: [(4, nil), (1, 0), (1, 1)])
            replaces = choices.chance(0.6)
            let (first, time) = (choices.below(max(1, number)), choices.seconds(1...20))
            after = choices.chance(0.25) && number > 0 && period == nil ? first : nil
            notBefore = choices.chance(0.15) && period == nil ? time : nil
            maximumAttemptCount = choices.pick(weighted: [(3, nil), (1, 1), (1, 3)])
            settleTime = choices.pick([0, 0, 2])
            if period != nil { repeats() }
        }

        /// Has its name alone, as its entry has another id in each period.
        mutating func repeats() { (period, unique) = (60, 10 + number) }

        /// - Parameter start: when the world began.
        func options(at start: Date = Date(timeIntervalSince1970: 0)) -> OutboxOptions {
            OutboxOptions(
                unique: unique.map { replaces ? .replace("u\($0)") : .keep("u\($0)") },
                notBefore: notBefore.map { start + $0 },
                period: period,
                maximumAttemptCount: maximumAttemptCount
            )
        }
    }
}

private struct ReadRequest: BaseAPIRequest {
    let resource: Int
    var api: String { "r/\(resource)" }
    var options: RequestOptions { RequestOptions(cache: .http) }
}
