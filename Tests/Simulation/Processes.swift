import EasyNetwork
import EasyNetworkOutbox
import Foundation

/// An entry of an outbox as the history wants it.
struct MailRequest: APIRequest, Codable {
    typealias Item = Void
    let mail: Int
    let resource: Int
    var api: String { "w/\(resource)" }
    var method: NetworkService.Method { .post }
    var headers: [String: String]? { ["X-Mail": "\(mail)"] }
    var params: [String: Any]? { ["mail": mail] }
}

/// What is known of an entry from outside.
private final class Mail: CustomStringConvertible {
    let plan: History.Mail
    var id: UUID?
    var (addedAt, removedAt): (Double, Double?) = (0, nil)
    /// When its success was seen by a process that still lives, and the number of that.
    var seen: (at: Double, process: Int)?
    var (hasDied, isAccepted) = (false, false)
    var messages: [Message] = []
    /// Those of its lane that were added before.
    var before: [Mail] = []

    init(_ plan: History.Mail) { self.plan = plan }

    var description: String { "mail \(plan.number)" }
    var hasActed: Bool { messages.contains(where: \.hasActed) }
    var isPeriodic: Bool { plan.period != nil }
    /// Whether it need not be sent any more, for those behind it in its lane.
    var isOver: Bool { hasActed || isAccepted || removedAt != nil || hasDied }
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
                outbox.register(MailRequest.self, name: "mail")
                processes[place] = (number, outbox, service)
                try outbox.start()
                world.log("process \(place) starts")
            } catch { world.violate(.cannotOpen, "\(error)") }
        }
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
            do { try work(process) } catch { world.log("process \(place): \(error)") }
        }
    }

    func add(_ number: Int) {
        let (mail, now) = (mails[number], world.loop.now)
        let plan = mail.plan
        guard mail.id == nil else { return }
        let others = mails.filter { $0.id != nil }
        let same = others.filter { $0.plan.unique == plan.unique && plan.unique != nil }
        let isReplacement = plan.replaces && same.contains { $0.messages.isEmpty && $0.removedAt == nil }
        use(plan.process) { process in
            do throws(NetworkError) {
                let request = MailRequest(mail: number, resource: plan.resource)
                let waiting = plan.replaces ? Set(try process.outbox.entries.map(\.id)) : []
                let id = try process.outbox.add(request, lane: plan.lane.map { "lane\($0)" }, options: plan.options)
                // With `keep` it is another one.
                guard !mails.contains(where: { $0.id == id }) else { return }
                (mail.id, mail.addedAt) = (id, now)
                mail.before = others.filter { $0.plan.lane == plan.lane && plan.lane != nil }
                // At once, and taken back from those that have become dead letters before.
                let replaced = same.filter { other in other.id.map(waiting.contains) ?? false }
                for other in replaced { other.removedAt = now }
                let dead = replaced.isEmpty ? [] : Set(try process.outbox.deadLetters.map(\.id))
                for other in replaced where other.id.map(dead.contains) ?? false { other.removedAt = nil }
                world.log("process \(plan.process) adds mail \(number)")
            } catch {
                world.log("process \(plan.process) cannot add mail \(number): \(error.code)")
                world.forbid(.noRoomForReplacement, mail, when: error.code == .refused && isReplacement)
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
            if let unique = mail.plan.options.unique, mail.isPeriodic {
                try process.outbox.remove(process.outbox.entries.filter { $0.options.unique == unique }.map(\.id))
            }
            try process.outbox.remove(id)
            mail.removedAt = mail.removedAt ?? world.loop.now
            world.log("process \(place) has removed mail \(number)")
        }
    }

    func retry(_ number: Int, _ place: Int) {
        guard let id = mails[number].id else { return }
        use(place) {
            try $0.outbox.retry(id)
            world.log("process \(place) has mail \(number) tried again")
        }
    }

    func willSend(_ message: Message, mail number: Int) {
        let (mail, now) = (mails[number], world.loop.now)
        let slack = world.history.settings.isSlow ? 30.0 : 5.0
        func isPast(_ time: Double?) -> Bool { now > (time ?? .infinity) + slack }
        world.forbid(.sentAfterRemoval, mail, when: isPast(mail.removedAt))
        let isOnce = !mail.isPeriodic
        world.forbid(.sentAfterDelivery, mail, when: mail.removedAt == nil && isPast(mail.seen?.at) && isOnce)
        let key = mail.messages.last?.key
        world.forbid(.keyChanged, mail, when: isOnce && key != nil && key != message.key)
        mail.messages.append(message)
        world.forbid(.laneOutOfOrder, mail, when: !isDamaged && mail.before.contains { !$0.isOver })
    }

    func ended(_ message: Message, mail number: Int, _ status: Int?) {
        let mail = mails[number]
        guard let status else { return }
        if (200..<300).contains(status), message.error == nil {
            (mail.seen, mail.isAccepted) = ((world.loop.now, world.loop.process), true)
        }
        // It is a dead letter soon, and may be sent again by hand. The head decides.
        let isFinal = (message.isRedirected ? 300..<500 : 400..<500).contains(status)
        if isFinal, ![408, 425, 429].contains(status) { mail.hasDied = true }
    }

    func heal() {
        for place in processes.indices { start(place) }
        for place in processes.indices { use(place) { try $0.outbox.retry(mails.compactMap(\.id)) } }
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
        let (lane, unique): (Int?, Int?)
        let replaces: Bool
        let period: Double?

        init(_ number: Int, _ choices: Choices, _ resourceCount: Int) {
            self.number = number
            (process, resource) = (choices.below(2), choices.below(resourceCount))
            // Alone, as its entry has another id in each period.
            period = choices.chance(0.2) ? 60 : nil
            lane = choices.pick(weighted: [(2, nil), (1, 0), (1, 1)])
            let key: Int? = choices.pick(weighted: [(4, nil), (1, 0), (1, 1)])
            unique = period == nil ? key : 10 + number
            replaces = choices.chance(0.6)
        }

        var options: OutboxOptions {
            OutboxOptions(unique: unique.map { replaces ? .replace("u\($0)") : .keep("u\($0)") }, period: period)
        }
    }
}

private struct ReadRequest: BaseAPIRequest {
    let resource: Int
    var api: String { "r/\(resource)" }
    var options: RequestOptions { RequestOptions(cache: .http) }
}
