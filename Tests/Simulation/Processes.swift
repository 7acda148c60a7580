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
private final class Mail {
    let plan: History.Mail
    var id: UUID?
    var key: String?
    var addedAt = 0.0
    var removedAt: Double?
    /// When its success was seen by a process that still lives, and the number of that.
    var seen: (at: Double, process: Int)?
    var (hasDied, isAccepted) = (false, false)
    var lastSentAt: Double?
    var messages: [Message] = []
    /// Those of its lane that were added before.
    var before: [Mail] = []

    init(_ plan: History.Mail) {
        self.plan = plan
    }

    var hasActed: Bool { messages.contains(where: \.hasActed) }
    var isPeriodic: Bool { plan.period != nil }
    /// Whether it need not be sent any more, for those behind it in its lane.
    var isOver: Bool { hasActed || isAccepted || removedAt != nil || hasDied }
}

/// Two processes with outboxes over one folder, and caches over another.
final class Processes: @unchecked Sendable {
    // Sendable because one thread uses it.
    private struct Process {
        var number: Int
        var outbox: Outbox?
        var service: EasyNetworkService?
    }

    private unowned let world: World
    private let folder: URL
    private var processes = [Process(number: 1), Process(number: 2)]
    private var lastProcess = 2
    private var isDamaged = false
    private let mails: [Mail]

    init(_ world: World) {
        self.world = world
        folder = URL(fileURLWithPath: world.folder)
        mails = world.history.mails.map(Mail.init)
    }

    func start(_ place: Int) {
        guard processes[place].outbox == nil else { return }
        lastProcess += 1
        let loop = world.loop
        loop.within(lastProcess) {
            do {
                let files = folder.appendingPathComponent("cache")
                let cache = try NetworkCache(directory: files, diskCount: nil, diskAge: nil, clock: loop)
                let network = Network(world: world)
                let host = HostConfiguration(baseURL: URL(string: "https://b.test"), transport: network) { host in
                    (host.clock, host.cache) = (loop, cache)
                    host.random = { 0.5 }
                }
                let service = EasyNetworkService(host)
                let outbox = try Outbox(
                    directory: folder.appendingPathComponent("outbox"),
                    queue: NetworkQueue(maxConcurrentOperationCount: 2, clock: loop),
                    service: service,
                    maximumCount: world.history.settings.mailLimit
                )
                outbox.register(MailRequest.self, name: "mail")
                processes[place] = Process(number: lastProcess, outbox: outbox, service: service)
                try outbox.start()
                world.log("process \(place) starts")
            } catch {
                world.violate(.cannotOpen, "\(error)")
            }
        }
    }

    /// Kills a process, as soon as none of its code is under way.
    func kill(_ place: Int) {
        guard let outbox = processes[place].outbox else { return }
        let number = processes[place].number
        guard world.loop.mayBeKilled(number) else { return world.after(0) { [self] in kill(place) } }
        world.log("process \(place) is killed")
        world.loop.kill(number)
        outbox.abandon()
        (processes[place].outbox, processes[place].service) = (nil, nil)
        for mail in mails where mail.seen?.process == number { mail.seen = nil }
    }

    private func use(_ place: Int, _ work: (Outbox) throws -> Void) {
        guard let outbox = processes[place].outbox else { return }
        world.loop.within(processes[place].number) {
            do { try work(outbox) } catch { world.log("process \(place): \(error)") }
        }
    }

    // MARK: - Outboxes

    func add(_ number: Int) {
        let (mail, now) = (mails[number], world.loop.now)
        let plan = mail.plan
        guard mail.id == nil else { return }
        let others = mails.filter { $0.id != nil && $0 !== mail }
        let same = others.filter { $0.plan.unique == plan.unique && plan.unique != nil }
        let isReplacement = plan.replaces && same.contains { $0.lastSentAt == nil && $0.removedAt == nil }
        use(plan.process) { outbox in
            do throws(NetworkError) {
                let request = MailRequest(mail: number, resource: plan.resource)
                let waiting = plan.replaces ? Set(try outbox.entries.map(\.id)) : []
                let id = try outbox.add(request, lane: plan.lane.map { "lane\($0)" }, options: plan.options)
                // With `keep` it is another one.
                guard !mails.contains(where: { $0.id == id }) else { return }
                (mail.id, mail.addedAt) = (id, now)
                mail.before = others.filter { $0.plan.lane == plan.lane && plan.lane != nil }
                // At once, and taken back from those that have become dead letters before.
                let replaced = same.filter { other in other.id.map(waiting.contains) ?? false }
                for other in replaced { other.removedAt = now }
                let dead = replaced.isEmpty ? [] : Set(try outbox.deadLetters.map(\.id))
                for other in replaced where other.id.map(dead.contains) ?? false { other.removedAt = nil }
                world.log("process \(plan.process) adds mail \(number)")
            } catch {
                world.log("process \(plan.process) cannot add mail \(number): \(error.code)")
                if error.code == .refused, isReplacement { world.violate(.noRoomForReplacement, "mail \(number)") }
            }
        }
    }

    /// Whether nobody has locked a part of the folder.
    var mayInterrupt: Bool {
        ["dead", "unique"].allSatisfy { name in
            let descriptor = open(folder.path + "/outbox/" + name, O_RDONLY)
            defer { close(descriptor) }
            return descriptor < 0 || flock(descriptor, LOCK_EX | LOCK_NB) == 0
        }
    }

    func remove(_ number: Int, _ place: Int) {
        let mail = mails[number]
        guard let id = mail.id else { return }
        use(place) { outbox in
            if let unique = mail.plan.options.unique, mail.isPeriodic {
                try outbox.remove(outbox.entries.filter { $0.options.unique == unique }.map(\.id))
            }
            try outbox.remove(id)
            mail.removedAt = mail.removedAt ?? world.loop.now
            world.log("process \(place) has removed mail \(number)")
        }
    }

    func retry(_ number: Int, _ place: Int) {
        guard let id = mails[number].id else { return }
        use(place) { outbox in
            try outbox.retry(id)
            world.log("process \(place) has mail \(number) tried again")
        }
    }

    func willSend(_ message: Message, mail number: Int) {
        let (mail, now) = (mails[number], world.loop.now)
        let slack = world.history.settings.isSlow ? 30.0 : 5.0
        if let removedAt = mail.removedAt {
            if now > removedAt + slack {
                world.violate(.sentAfterRemoval, "mail \(number), \(now - removedAt) s later")
            }
        } else if let seen = mail.seen, now > seen.at + slack, !mail.isPeriodic {
            world.violate(.sentAfterDelivery, "mail \(number)")
        }
        if !mail.isPeriodic, let key = mail.key, key != message.key { world.violate(.keyChanged, "mail \(number)") }
        (mail.key, mail.lastSentAt) = (message.key, now)
        mail.messages.append(message)
        if let first = mail.before.first(where: { !$0.isOver }), !isDamaged {
            world.violate(.laneOutOfOrder, "mail \(number) before mail \(first.plan.number)")
        }
    }

    func ended(_ message: Message, mail number: Int, _ status: Int?) {
        let mail = mails[number]
        guard let status else { return }
        if (200..<300).contains(status), message.error == nil {
            (mail.seen, mail.isAccepted) = ((world.loop.now, world.loop.process), true)
        }
        // It is a dead letter soon, and may be sent again by hand. The head decides.
        if (400..<500).contains(status), ![408, 425, 429].contains(status) { mail.hasDied = true }
    }

    func heal() {
        for place in processes.indices { start(place) }
        for place in processes.indices { use(place) { outbox in try outbox.retry(mails.compactMap(\.id)) } }
    }

    /// Whether all has been delivered that was promised.
    var isDone: Bool { mails.allSatisfy { $0.id == nil || $0.isPeriodic || $0.isAccepted || $0.removedAt != nil } }

    func checkEnd() {
        use(0) { outbox in
            let left = Set(try outbox.entries.map(\.id)), dead = Set(try outbox.deadLetters.map(\.id))
            for mail in mails {
                guard let id = mail.id else { continue }
                let (number, isThere) = (mail.plan.number, left.contains(id) || dead.contains(id))
                if mail.removedAt != nil {
                    if isThere { world.violate(.stillThere, "mail \(number)") }
                } else if let period = mail.plan.period {
                    let silence = world.loop.now - max(mail.lastSentAt ?? 0, mail.addedAt, world.healedAt ?? 0)
                    if silence > 2.3 * period, !mail.hasDied { world.violate(.periodMissed, "mail \(number)") }
                } else if !mail.isAccepted, !mail.hasActed, !dead.contains(id) {
                    world.violate(.neverDelivered, "mail \(number), \(isThere ? "still there" : "lost")")
                }
            }
        }
    }

    // MARK: - Caches

    /// Reads a document by the rules of HTTP, from the cache on disk perhaps.
    func read(_ resource: Int, _ place: Int) {
        guard let service = processes[place].service else { return }
        world.loop.within(processes[place].number) {
            WorkQueue.task { [self] in
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
        guard response.source == .cache, world.loop.dateOffset == 0 else { return }
        // A 304 makes it fresh again.
        let confirmations = world.messages.filter { $0.path == answer.path && [200, 304].contains($0.status) }
        let age = world.loop.now - (confirmations.compactMap(\.endedAt).max() ?? 0)
        // A redirect leads to the next one.
        let most = world.history.settings.resources.compactMap(\.maximumAge).max() ?? 0
        if age > Double(most) { world.violate(.staleResponse, "resource \(resource), after \(age) s") }
    }

    /// Writes over a file of the outbox or of the cache.
    func damage(_ kind: Int) {
        if kind < 4 {
            isDamaged = true
            let text = ["7fffffffffffffff", "", "garbage", "00000000000000ff"][kind]
            try? Data(text.utf8).write(to: folder.appendingPathComponent("outbox/sequence"))
        } else {
            let cache = folder.appendingPathComponent("cache")
            let names = (try? FileManager.default.contentsOfDirectory(atPath: cache.path)) ?? []
            guard let file = names.min().map({ cache.appendingPathComponent($0) }),
                var data = try? Data(contentsOf: file), !data.isEmpty
            else { return }
            if kind == 4 { data = data.prefix(data.count / 2) } else { data[data.count - 1 - data.count / 5] ^= 1 }
            try? data.write(to: file)
        }
    }

    func tearDown() {
        for place in processes.indices { kill(place) }
    }
}

extension History {
    struct Mail: Sendable {
        let number: Int
        let process: Int
        let resource: Int
        let lane: Int?
        let unique: Int?
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
            var options = OutboxOptions()
            if let unique { options.unique = replaces ? .replace("u\(unique)") : .keep("u\(unique)") }
            options.period = period
            return options
        }
    }
}

private struct ReadRequest: BaseAPIRequest {
    let resource: Int
    var api: String { "r/\(resource)" }
    var options: RequestOptions { RequestOptions(cache: .http) }
}
