import EasyNetwork
import Foundation

/// The laws of DESIGN.md, "Properties", and more.
enum Law: String {
    case signedOut = "after a sign-out no request goes out with the old credential"
    case origin = "a credential goes to its own origin"
    case cancelled = "when cancel() has returned, nothing more is sent"
    case dependencies = "no job executes before its dependencies"
    case callbacksFirst = "callbacks run before dependents start"
    case suspended = "a suspended queue starts nothing"
    case once = "no unsafe request twice"
    case limit = "no more jobs than the limit"
    case deadline = "a job ends at its deadline"
    case nextSlot = "a job that needs only a slot gets the next one"
    case noSlot = "what waits for a retry has no slot"
    case yields = "only what can be resumed yields"
    case goesOn = "a download that yields goes on"
    case urgent = "urgent work goes first"
    case order = "priority and age decide"
    case ownResponse = "no response counts for another request"
    case ownUser = "no response counts for another user"
    case whole = "a download is whole"
    case fieldTwice = "a field that is sent twice counts once"
    case reason = "a job fails for a reason"
    case circuit = "a circuit closes when its server is back"
    case namedDeadline = "a job names its deadline"
    case ends = "every job ends"
    case callsBackOnce = "every job calls back once"
    case endsOnce = "every job ends once"
    case executesOnce = "every job executes once"
    case awaited = "who waits goes on"
    case zero = "every count is zero"
    case retries = "no more retries than the policy allows"
    case time = "time goes on"
    case freed = "everything is freed"
    case opens = "an outbox opens"
    case room = "an entry that replaces another has its room"
    case removed = "what was removed is not sent"
    case delivered = "what was delivered is not sent again"
    case key = "an entry has one key"
    case lane = "a lane keeps its order"
    case gone = "what was removed is gone"
    case promised = "what was promised is delivered"
    case period = "a period never takes longer"
}

/// Checks the laws by the record of the servers and the results of the jobs.
extension World {
    func willSend(_ message: Message) {
        log(
            "sends \(message.number): \(message.method) \(message.host == 0 ? "a" : "b")\(message.path)"
                + (message.job.map { " of job \($0)" } ?? "") + (message.token.map { ", token \($0)" } ?? "")
                + (message.headers["Range"].map { ", \($0)" } ?? "")
        )
        if let epoch = message.headers["X-Epoch"].flatMap({ Int($0) }), !validEpochs.contains(epoch) {
            violate(.signedOut, "message \(message.number)")
        }
        if message.host == 1 && message.token != nil { violate(.origin, "message \(message.number)") }
        if let mail = message.mail { willSend(message, mail: mail) }
        guard let job = message.job else { return }
        records[job].messages.append(message.number)
        if records[job].hasCancelReturned && !history.jobs[job].joins {
            violate(.cancelled, "message \(message.number) of job \(job)")
        }
        if records[job].messages.count == 1 { willStart(job) }
        checkRepeats(message, job)
    }

    func willStart(_ job: Int) {
        for other in history.jobs[job].after where records[other].operation?.isFinished == false {
            violate(.dependencies, "job \(job), which waits for job \(other)")
        }
        for other in history.jobs[job].after
        where hasCallback(history.jobs[other]) && history.jobs[other].kind != .foreign
            && records[other].callbackCount == 0
        {
            violate(.callbacksFirst, "job \(job) has started, and job \(other) has not called back")
        }
        if let before = startedBeforeSuspension, !before.contains(job), !history.jobs[job].joins {
            violate(.suspended, "job \(job)")
        }
    }

    /// Whether the last message of the same job lets this one follow.
    private func checkRepeats(_ message: Message, _ job: Int) {
        let plan = history.jobs[job]
        guard message.method == "POST", message.key == nil else { return }
        for arrival in server.arrivals
        where arrival.message.job == job && arrival.message.method == "POST" && arrival.message.key == nil {
            let isAnswered = fates[arrival.message.number].endedAt != nil && fates[arrival.message.number].error == nil
            let isHead = [401, 307, 308].contains(arrival.status)
            if !isHead || arrival.hasActed || !isAnswered && arrival.status != 401 && !isHead {
                violate(.once, "messages \(arrival.message.number) and \(message.number) of \(plan.kind) \(job)")
            }
        }
    }

    func checkQuiet() {
        guard let queue else { return }
        checkLimits(queue)
        for job in history.jobs {
            guard let operation = records[job.number].operation, records[job.number].isAdded,
                records[job.number].endedAt == nil, !operation.isFinished
            else {
                records[job.number].absence = nil
                continue
            }
            check(job, operation, queue)
        }
    }

    private func checkLimits(_ queue: NetworkQueue) {
        let all = runningJobs(queue)
        newlyRunning = all.subtracting(hadSlots).filter { records[$0].readyAt == nil }
        for job in newlyRunning { records[job].readyAt = records[job].waitsForSlotSince ?? loop.now }
        grantCount += all.subtracting(hadSlots).count
        hadSlots = all
        let running = all.filter { number in
            let job = history.jobs[number]
            return job.kind != .batch && job.kind != .chain && !job.joins
        }
        if limit >= 0 && running.count > limit && !running.isSubset(of: grandfathered) {
            violate(.limit, "\(running.sorted()) run, and \(limit) may")
        }
    }

    private func check(_ job: History.Job, _ operation: Operation, _ queue: NetworkQueue) {
        let number = job.number
        let now = loop.now
        if let deadline = records[number].deadline, now > records[number].addedAt + deadline + 0.01,
            (operation as? NetworkOperation)?.hasOutcome == false
        {
            violate(.deadline, "job \(number), \(deadline) s")
        }
        guard job.after.allSatisfy({ records[$0].operation?.isFinished != false }) else { return }
        let reasons = queue.explain(operation)
        if reasons == [.turn] { violate(.nextSlot, "job \(number)") }
        if reasons == [.running], [.get, .post, .upload, .older].contains(job.kind), !job.joins,
            let ended = records[number].messages.last.flatMap({ fates[$0].endedAt }), now > ended + 1
        {
            violate(.noSlot, "job \(number) since \(ended - 1_000)")
        }
        let waits = if case .limit? = reasons.first { reasons.count == 1 && !queue.isSuspended } else { false }
        records[number].waitsForSlotSince = waits ? records[number].waitsForSlotSince ?? now : nil
        if waits { checkOrder(job) }
        guard history.jobs.contains(where: { $0.kind == .download }) else { return }
        if reasons == [.slotYielded], !isResumable(job),
            records[number].messages.contains(where: { fates[$0].endedAt == nil })
        {
            violate(.yields, "job \(number)")
        }
        if waits { checkUrgency(job) }
        if reasons != [.running] { records[number].receivesSince = nil }
        if reasons == [.slotYielded], job.tags.isEmpty, history.settings.hostLimit < 0, !hasLimitedHosts {
            let absence = records[number].absence ?? (now, .max)
            records[number].absence = absence
            if now < absence.since + 5 {
                // After four seconds it has the next slot but one, and others that have been absent for longer go first.
                let absentCount = records.count { $0.absence.map { $0.since <= absence.since } ?? false }
                records[number].absence?.mostGrants = grantCount + 2 * absentCount + 1
            } else if grantCount > absence.mostGrants {
                violate(.goesOn, "job \(number) is absent since \(absence.since - 1_000)")
            }
        } else {
            records[number].absence = nil
        }
    }

    private func priority(_ job: Int) -> Int { records[job].priority ?? history.jobs[job].priority }

    /// An urgent job that waits for a slot, and a download that has had one for long.
    private func checkUrgency(_ job: History.Job) {
        guard let queue, let since = records[job.number].waitsForSlotSince, limit > 0 else { return }
        let other = history.jobs.first { other in
            other.kind == .download && priority(other.number) < min(priority(job.number), 0) && isResumable(other)
                && records[other.number].endedAt == nil
                && records[other.number].receivesSince.map { $0 < loop.now - 2.5 } ?? false
        }
        if let other, loop.now - max(since, limitChangedAt) > 2.5, runningJobs(queue).count == limit {
            violate(.urgent, "job \(job.number) has waited since \(since - 1_000), and job \(other.number) runs")
        }
    }

    /// A job that waits for nothing but one of all slots goes before those of lower priority, and later ones.
    private func checkOrder(_ job: History.Job) {
        guard job.tags.isEmpty, job.children.isEmpty, job.condition == nil, !isAwaited(job.number) else { return }
        guard history.settings.hostLimit < 0, !hasLimitedHosts, let since = records[job.number].waitsForSlotSince,
            since < loop.now
        else { return }
        // One that somebody waits for, or that comes back, goes earlier.
        let other = newlyRunning.first { other in
            let plan = history.jobs[other]
            let isPlain = plan.children.isEmpty && !plan.joins && plan.kind != .download && plan.condition == nil
            guard isPlain, !isAwaited(other), records[other].priority == nil, let began = records[other].readyAt else {
                return false
            }
            return priority(other) < priority(job.number)
                || priority(other) == priority(job.number) && began > since && plan.tags.isEmpty
        }
        if let other { violate(.order, "job \(other) has started, and job \(job.number) waits") }
    }

    /// Whether it may have the priority of another one.
    private func isAwaited(_ job: Int) -> Bool {
        history.jobs.contains { $0.after.contains(job) } || !history.groups(of: job).isEmpty
    }

    /// Whether a download can go on where it stopped.
    func isResumable(_ job: History.Job) -> Bool {
        guard job.kind == .download, !job.hasKey else { return false }
        var index = job.resource
        if history.settings.resources[index].redirect != nil { index = (index + 1) % history.settings.resources.count }
        let resource = history.settings.resources[index]
        return resource.hasStrongTag && resource.servesRanges
    }

    func checkEnd(of number: Int) {
        let job = history.jobs[number]
        let record = records[number]
        guard let error = (record.operation as? NetworkOperation)?.error else { return checkSuccess(of: job) }
        checkFailure(of: job, error)
    }

    private func checkSuccess(of job: History.Job) {
        let record = records[job.number]
        if job.kind == .download { return checkFile(of: job) }
        guard case .success(let answer?) = record.result else { return }
        if record.source == .network && !job.joins && answer.job != job.number && job.caching == .none {
            violate(.ownResponse, "job \(job.number) got that of job \(answer.job)")
        }
        let path = answer.path.split(separator: "/").last.flatMap { Int($0) } ?? -1
        let next = (job.resource + 1) % history.settings.resources.count
        if path != job.resource, path != next || history.settings.resources[job.resource].redirect == nil {
            violate(.ownResponse, "job \(job.number) got \(answer.path)")
        }
        // A policy of its own does not tell users apart.
        guard answer.user >= 0, job.caching == .none || job.caching == .http else { return }
        let before = signedIn.last { $0.step <= record.addedStep }.map { [$0] } ?? []
        let users = (before + signedIn.filter { $0.step > record.addedStep }).map(\.user)
        if !users.contains(answer.user) { violate(.ownUser, "job \(job.number) got that of user \(answer.user)") }
    }

    private func checkFile(of job: History.Job) {
        let found = FileManager.default.contents(atPath: folder + "/\(job.number)")
        // Or of the one that it was redirected to.
        let isWhole = [job.resource, (job.resource + 1) % history.settings.resources.count].contains { index in
            (1...server.versions[index]).contains { server.bytes(of: index, version: $0) == found }
        }
        if !isWhole { violate(.whole, "job \(job.number) has \(found?.count ?? -1) bytes") }
    }

    private func checkFailure(of job: History.Job, _ error: NetworkError) {
        let number = job.number
        let record = records[number]
        let fates = record.messages.map { self.fates[$0] }
        let arrivals = server.arrivals.filter { $0.message.job == number }
        let isShared = job.joins || !job.children.isEmpty
        if error.code == .circuitOpen, !isShared { checkCircuit(job) }
        if error.code == .cannotParseResponse, history.settings.resources.contains(where: \.repeatsType) {
            return violate(.fieldTwice, "job \(number), \(job.kind)")
        }
        let problem: String? =
            switch error.code {
            case .cancelled: mayBeCancelled(job) ? nil : "nobody has cancelled it"
            case .dependencyFailed:
                record.isChild || (job.after + job.children).contains { failed($0) }
                    ? nil : "its dependencies have succeeded"
            case .timedOut: timeProblem(job, error)
            case .connectionLost, .cannotConnect:
                record.messages.last.map(isCutRefusal) ?? false
                    ? "the head decides"
                    : isShared || fates.last?.error != nil ? nil : "its last message was answered"
            case .unacceptableStatus:
                isShared || arrivals.last.map { !(200..<300).contains($0.status) } ?? false
                    ? nil : "its last status was good"
            case .unauthorized:
                isShared || hasSignedOut || hasRevoked || !history.settings.startsSignedIn
                    || history.settings.tokenLife < 100
                    || !history.faults.isEmpty || arrivals.contains { $0.status == 401 } ? nil : "it was authorized"
            case .circuitOpen: isShared || history.settings.circuit == .fails ? nil : "there is no circuit"
            case .refused: isShared || job.condition == 2 ? nil : "its condition holds"
            case .redirectFailed, .cannotSendAgain: nil
            case .cycle: waitsForItself(job.number) ? nil : "it does not wait for itself"
            default: isShared ? nil : "no reason"
            }
        if let problem {
            violate(.reason, "job \(number), \(job.kind): \(error.code): \(error.message ?? ""): \(problem)")
        }
    }

    /// Whether a cycle can be reached from the job: its end waits for its start and the ends of its children, its start
    /// for those that it depends on and for the start of the groups that it is in.
    private func waitsForItself(_ number: Int) -> Bool {
        typealias Node = [Int]
        func next(_ node: Node) -> [Node] {
            let job = history.jobs[node[0]]
            if node[1] == 1 { return [[job.number, 0]] + job.children.map { [$0, 1] } }
            let groups = history.groups(of: job.number)
            let before = groups.filter { $0.kind == .chain }.flatMap { group in
                group.children.prefix { $0 != job.number && !history.members(of: $0).contains(job.number) }
            }
            return (job.after + before).map { [$0, 1] } + groups.map { [$0.number, 0] }
        }
        var done: Set<Node> = []
        func hasCycle(_ node: Node, _ path: Set<Node>) -> Bool {
            if path.contains(node) { return true }
            guard done.insert(node).inserted else { return false }
            return next(node).contains { hasCycle($0, path.union([node])) }
        }
        return hasCycle([number, 1], [])
    }

    /// Whether the message was answered by a refusal without its whole body.
    private func isCutRefusal(_ message: Int) -> Bool {
        guard fates[message].error == .connectionLost,
            case .cutRefusal = history.faults.first(where: { $0.message == message })?.kind
        else { return false }
        return true
    }

    /// A trial that has gone on for long shows that the server is there.
    private func checkCircuit(_ job: History.Job) {
        let host = job.host
        let since = lastFailure[host]
        let isTried = fates.contains { fate in
            fate.host == host && fate.endedAt == nil && fate.sentAt > since + 1 && fate.sentAt < loop.now - 12
        }
        if isTried && history.settings.resources[job.resource].redirect == nil {
            violate(.circuit, "job \(job.number)")
        }
    }

    private func failed(_ number: Int) -> Bool {
        let operation = records[number].operation
        return (operation as? NetworkOperation)?.error != nil || operation?.isCancelled == true
    }

    private func mayBeCancelled(_ job: History.Job) -> Bool {
        if records[job.number].mayBeCancelled || job.joins { return true }
        // By the group that it is a child of, or by a child.
        return history.jobs.contains { group in
            group.children.contains(job.number) && (group.endsAtFirstFailure || group.kind == .chain)
                || group.children.contains(job.number) && failed(group.number)
                || job.children.contains(group.number) && records[group.number].mayBeCancelled
        } || job.children.contains { mayBeCancelled(history.jobs[$0]) }
    }

    private func timeProblem(_ job: History.Job, _ error: NetworkError) -> String? {
        let record = records[job.number]
        guard let message = error.message, message.hasPrefix("its deadline of "),
            let seconds = Double(message.dropFirst(16).prefix { $0 != " " })
        else {
            let stalls = !history.faults.isEmpty || job.joins || !job.children.isEmpty
            return stalls ? nil : "nothing has stalled"
        }
        if record.isChild { return nil }
        guard let deadline = record.deadline, abs(deadline - seconds) <= 0.006 * max(1, seconds) else {
            if job.children.isEmpty { violate(.namedDeadline, "job \(job.number), \(seconds) s") }
            return nil
        }
        return loop.now >= record.addedAt + deadline ? nil : "it is early"
    }

    func checkEnd() {
        guard let queue else { return }
        let children = Set(history.jobs.flatMap(\.children))
        for job in history.jobs {
            guard let operation = records[job.number].operation else { continue }
            let record = records[job.number]
            guard operation.isFinished else {
                let reasons = queue.explain(operation).map(\.description).joined(separator: ", ")
                return violate(.ends, "job \(job.number), \(job.kind) \(reasons)")
            }
            let calls = hasCallback(job) ? 1 : 0
            let isForeign = job.kind == .foreign
            if record.callbackCount != calls, !isForeign || record.callbackCount > 1 {
                violate(.callsBackOnce, "job \(job.number), \(job.kind), did so \(record.callbackCount) times")
            }
            if record.completionCount != 1 && !isForeign {
                violate(.endsOnce, "job \(job.number) did so \(record.completionCount) times")
            }
            if record.executionCount > 1 { violate(.executesOnce, "job \(job.number)") }
            if job.isAwaited && record.awaitedCount != 1 && !isForeign { violate(.awaited, "job \(job.number)") }
            if !children.contains(job.number) { checkCounts(job) }
        }
        if queue.operationCount != 0 { violate(.zero, "\(queue)") }
        let text = queue.description
        if !text.contains(" 0 of "), !text.contains(" 0 slots") { violate(.zero, text) }
    }

    private func hasCallback(_ job: History.Job) -> Bool { ![.plain, .stream, .events].contains(job.kind) }

    /// Messages that were paid for.
    private func checkCounts(_ job: History.Job) {
        guard [.get, .post, .upload, .older].contains(job.kind), !job.joins else { return }
        let arrivals = server.arrivals.filter { $0.message.job == job.number }
        let free = arrivals.filter { [401, 301, 302, 303, 307, 308, 304].contains($0.status) }.count
        let count = records[job.number].messages.count
        let background = job.caching == .none ? 0 : 4
        if count > 1 + job.retries + free + background {
            violate(.retries, "job \(job.number) has sent \(count) messages")
        }
        let acts = arrivals.filter(\.hasActed).count
        if acts > 1 { violate(.once, "job \(job.number) has acted \(acts) times") }
    }
}
