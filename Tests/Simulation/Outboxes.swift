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

/// Two processes with outboxes over one folder.
final class Outboxes: @unchecked Sendable {
    // Sendable because one thread uses it.
    /// What is known of an entry from outside.
    struct Record {
        var id: UUID?
        var key: String?
        var error: NetworkError.Code?
        var addedAt = 0.0
        var removedAt: Double?
        /// When its success was seen by a process that still lives, and the number of that.
        var seen: (at: Double, process: Int)?
        var hasDied = false
        var isAccepted = false
        var lastSentAt: Double?
        /// Those of its lane that were added before.
        var before: [Int] = []
    }

    private unowned let world: World
    private let folder: URL
    private var processes: [(number: Int, outbox: Outbox?)] = [(1, nil), (2, nil)]
    private var lastProcess = 2
    private var isDamaged = false
    var records: [Record]

    init(_ world: World) {
        self.world = world
        folder = URL(fileURLWithPath: world.folder + "/outbox")
        records = world.history.mails.map { _ in Record() }
    }

    func start(_ place: Int) {
        guard processes[place].outbox == nil else { return }
        lastProcess += 1
        processes[place].number = lastProcess
        let loop = world.loop
        loop.within(lastProcess) {
            let host = HostConfiguration(baseURL: URL(string: "https://b.test"), transport: Network(world: world)) {
                host in
                host.clock = loop
                host.random = { 0.5 }
            }
            let queue = NetworkQueue(maxConcurrentOperationCount: 2, clock: loop)
            do {
                let outbox = try Outbox(
                    directory: folder,
                    queue: queue,
                    service: EasyNetworkService(host),
                    maximumCount: world.history.settings.mailLimit
                )
                outbox.register(MailRequest.self, name: "mail")
                processes[place].outbox = outbox
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
        processes[place].outbox = nil
        for index in records.indices where records[index].seen?.process == number { records[index].seen = nil }
    }

    private func use(_ place: Int, _ work: (Outbox) throws -> Void) {
        guard let outbox = processes[place].outbox else { return }
        world.loop.within(processes[place].number) {
            do { try work(outbox) } catch { world.log("process \(place): \(error)") }
        }
    }

    func add(_ mail: History.Mail) {
        guard records[mail.number].id == nil else { return }
        use(mail.process) { outbox in
            let now = world.loop.now
            let same = world.history.mails.filter { $0.unique == mail.unique && mail.unique != nil }.map(\.number)
            let replaced = same.filter { isWaiting($0) }
            do throws(NetworkError) {
                let id = try outbox.add(
                    MailRequest(mail: mail.number, resource: mail.resource),
                    lane: mail.options.period == nil ? mail.lane.map { "lane\($0)" } : nil,
                    options: mail.options
                )
                // With `keep` it is another one.
                guard !records.contains(where: { $0.id == id }) else { return }
                records[mail.number].before = world.history.mails.filter { other in
                    other.lane == mail.lane && mail.lane != nil && mail.options.period == nil
                        && other.options.period == nil
                        && records[other.number].id != nil
                }.map(\.number)
                (records[mail.number].id, records[mail.number].addedAt) = (id, now)
                if case .replace? = mail.options.unique {
                    for other in same where other != mail.number && records[other].id != nil && !records[other].hasDied
                    {
                        records[other].removedAt = now
                    }
                }
                world.log("process \(mail.process) adds mail \(mail.number)")
            } catch {
                records[mail.number].error = error.code
                world.log("process \(mail.process) cannot add mail \(mail.number): \(error.code)")
                if error.code == .refused, case .replace? = mail.options.unique, !replaced.isEmpty {
                    world.violate(.noRoomForReplacement, "mail \(mail.number)")
                }
            }
        }
    }

    /// Whether it has not been sent.
    private func isWaiting(_ mail: Int) -> Bool {
        records[mail].id != nil && records[mail].lastSentAt == nil && records[mail].removedAt == nil
    }

    /// Whether nobody has locked a part of the folder.
    var mayInterrupt: Bool {
        ["dead", "unique"].allSatisfy { name in
            let descriptor = open(folder.path + "/" + name, O_RDONLY)
            defer { close(descriptor) }
            return descriptor < 0 || flock(descriptor, LOCK_EX | LOCK_NB) == 0
        }
    }

    func remove(_ mail: Int, _ place: Int) {
        guard let id = records[mail].id else { return }
        use(place) { outbox in
            if let unique = world.history.mails[mail].options.unique, world.history.mails[mail].period != nil {
                try outbox.remove(outbox.entries.filter { $0.options.unique == unique }.map(\.id))
            }
            try outbox.remove(id)
            records[mail].removedAt = records[mail].removedAt ?? world.loop.now
            world.log("process \(place) has removed mail \(mail)")
        }
    }

    func retry(_ mail: Int, _ place: Int) {
        guard let id = records[mail].id else { return }
        use(place) { outbox in
            try outbox.retry(id)
            world.log("process \(place) has mail \(mail) tried again")
        }
    }

    func damage(_ text: String) {
        isDamaged = true
        try? Data(text.utf8).write(to: folder.appendingPathComponent("sequence"))
    }

    private func hasActed(_ mail: Int) -> Bool {
        world.messages.contains { $0.mail == mail && $0.hasActed }
    }

    func willSend(_ message: Message, _ mail: Int) {
        let (record, now) = (records[mail], world.loop.now)
        let slack = world.history.settings.isSlow ? 30.0 : 5.0
        let isPeriodic = world.history.mails[mail].options.period != nil
        if let removedAt = record.removedAt, now > removedAt + slack {
            world.violate(.sentAfterRemoval, "mail \(mail), \(now - removedAt) s later")
        }
        if let seen = record.seen, now > seen.at + slack, !isPeriodic, record.removedAt == nil {
            world.violate(.sentAfterDelivery, "mail \(mail)")
        }
        if !isPeriodic, let key = record.key, key != message.key { world.violate(.keyChanged, "mail \(mail)") }
        records[mail].key = message.key
        records[mail].lastSentAt = now
        let waiting = record.before.first { other in
            !hasActed(other) && !records[other].isAccepted && records[other].removedAt == nil && !records[other].hasDied
        }
        if let waiting, !isDamaged { world.violate(.laneOutOfOrder, "mail \(mail) before mail \(waiting)") }
    }

    /// - Parameter status: of the answer that came.
    func ended(_ message: Message, _ mail: Int, _ status: Int?) {
        guard let status else { return }
        if (200..<300).contains(status), message.error == nil {
            (records[mail].seen, records[mail].isAccepted) = ((world.loop.now, world.loop.process), true)
        }
        // It is a dead letter soon, and may be sent again by hand. The head decides.
        if (400..<500).contains(status), ![408, 425, 429].contains(status) { records[mail].hasDied = true }
    }

    func heal() {
        for place in processes.indices { start(place) }
        for place in processes.indices {
            use(place) { outbox in try outbox.retry(records.compactMap(\.id)) }
        }
    }

    /// Whether all has been delivered that was promised.
    var isDone: Bool {
        world.history.mails.allSatisfy { mail in
            let record = records[mail.number]
            guard record.id != nil, mail.options.period == nil else { return true }
            return record.isAccepted || record.removedAt != nil
        }
    }

    func checkEnd() {
        use(0) { outbox in
            let (entries, dead) = (try outbox.entries, try outbox.deadLetters)
            for mail in world.history.mails {
                let record = records[mail.number]
                guard let id = record.id else { continue }
                let isThere = entries.contains { $0.id == id } || dead.contains { $0.id == id }
                if record.removedAt != nil {
                    if isThere { world.violate(.stillThere, "mail \(mail.number)") }
                } else if mail.options.period == nil, !record.isAccepted, !hasActed(mail.number),
                    !dead.contains(where: { $0.id == id })
                {
                    world.violate(.neverDelivered, "mail \(mail.number), \(isThere ? "still there" : "lost")")
                } else if let period = mail.options.period, !record.hasDied {
                    let silence = world.loop.now - max(record.lastSentAt ?? 0, record.addedAt, world.healedAt ?? 0)
                    if silence > 2.3 * period { world.violate(.periodMissed, "mail \(mail.number), \(silence) s") }
                }
            }
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

        init(_ number: Int, _ choices: inout Choices, _ resourceCount: Int) {
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
