import EasyNetwork
import Foundation

/// What must not happen: the laws of DESIGN.md, "Properties", and more.
enum Law: String {
    // Users and their credentials.
    case sentAfterSignOut, keptAfterSignOut, credentialElsewhere, cookieOfAnotherUser, staleResponse
    case responseOfAnotherUser, responseOfAnotherRequest
    // Jobs.
    case sentAfterCancel, cancelTakesLong, startedBeforeDependency, startedBeforeCallback, startedWhileSuspended
    case unsafeRequestTwice, tooManyRetries, deadlinePassed, wrongDeadlineNamed, failedWithoutReason
    case neverEnds, endedTwice, executedTwice, calledBackTwice, waiterLost, fieldCountedTwice
    // Slots.
    case groupEndedEarly, startedAfterGroup, messageLeft, sentBeforeRetryAfter, rangeWithoutCondition, pausedWithSlot
    case runsWithoutSlot, overLimit, slotUnused, slotHeldInVain, yieldedWithoutResume, yieldedForGood, urgentWaits
    case wrongOrder
    // Downloads, circuits, the whole.
    case incompleteFile, circuitStaysOpen, countsLeft, leaked, endless
    // Outboxes.
    case cannotOpen, noRoomForReplacement, sentAfterRemoval, sentAfterDelivery, keyChanged, laneOutOfOrder
    case stillThere, neverDelivered, periodMissed
}

extension Job {
    /// Whether it is a call that shares its messages with no other job.
    fileprivate var isOwnCall: Bool { [.get, .post, .upload, .older].contains(plan.kind) && !plan.joins }
}

/// Checks the laws by the record of the servers and the results of the jobs.
extension World {
    private func violate(_ law: Law, _ message: Message) {
        violate(law, "message \(message.number)\(message.job.map { " of job \($0)" } ?? "")")
    }

    private func violate(_ law: Law, _ job: Job, _ detail: String? = nil) {
        violate(law, "job \(job.number), \(job.plan.kind)\(detail.map { ": \($0)" } ?? "")")
    }

    func willSend(_ message: Message) {
        log(
            "sends \(message.number): \(message.method) \(message.hostName)\(message.path)"
                + (message.job.map { " of job \($0)" } ?? "") + (message.token.map { ", token \($0)" } ?? "")
                + (message.headers["Range"].map { ", \($0)" } ?? "")
        )
        func isOver(_ epoch: Int) -> Bool { !validEpochs.contains(epoch) }
        if message.epoch.map(isOver) == true { violate(.sentAfterSignOut, message) }
        if let epoch = message.cookie, message.host == 1 || isOver(epoch) { violate(.cookieOfAnotherUser, message) }
        if message.host == 1, message.token != nil { violate(.credentialElsewhere, message) }
        if message.headers["Range"] != nil, message.headers["If-Range"] == nil {
            violate(.rangeWithoutCondition, message)
        }
        if let mail = message.mail { processes?.willSend(message, mail: mail) }
        guard let job = message.job.map({ jobs[$0] }) else { return }
        if job.cancelledAt != nil, !job.plan.joins { violate(.sentAfterCancel, message) }
        if job.messages.isEmpty { willStart(job) }
        if let last = job.messages.last, !job.plan.joins, let end = last.endedAt, let seconds = last.retryAfter,
            loop.now < end + seconds - 0.001
        {
            violate(.sentBeforeRetryAfter, message)
        }
        func isUnsafe(_ message: Message) -> Bool { message.method == "POST" && message.key == nil }
        let hasActed = job.messages.contains { earlier in
            guard isUnsafe(earlier), let status = earlier.status else { return false }
            return earlier.hasActed || ![401, 307, 308].contains(status)
        }
        if isUnsafe(message), hasActed { violate(.unsafeRequestTwice, message) }
        job.messages.append(message)
    }

    func willStart(_ job: Job) {
        if let deadline = job.deadline, deadline <= 0, !job.isChild { violate(.deadlinePassed, job) }
        if let group = job.groups.first(where: { $0.network?.hasOutcome == true }), !job.plan.joins {
            violate(.startedAfterGroup, job, "group \(group.number)")
        }
        for other in job.dependencies {
            if !other.isFinished { violate(.startedBeforeDependency, job, "before job \(other.number)") }
            if other.hasCallback, !other.isForeign, other.callbackCount == 0 {
                violate(.startedBeforeCallback, job, "before the callback of job \(other.number)")
            }
        }
        if let before = startedBeforeSuspension, !before.contains(job.number), !job.plan.joins {
            violate(.startedWhileSuspended, job)
        }
    }

    func checkQuiet() {
        if let epoch = session?.credential?.epoch, !validEpochs.contains(epoch) {
            violate(.keptAfterSignOut, "epoch \(epoch)")
        }
        guard let queue, !openJobs.isEmpty else { return }
        checkLimits(queue)
        openJobs.removeAll(where: \.isFinished)
        for job in openJobs { check(job, queue) }
    }

    private func checkLimits(_ queue: NetworkQueue) {
        let all = runningJobs(queue)
        let granted = all.subtracting(hadSlots)
        hadSlots = all
        grantCount += granted.count
        newlyRunning = granted.map { jobs[$0] }.filter { $0.readyAt == nil }
        for job in newlyRunning { job.readyAt = job.waitsForSlotSince ?? loop.now }
        let running = all.filter { !jobs[$0].isGroup && !jobs[$0].plan.joins }
        if limit >= 0, running.count > limit, !running.isSubset(of: grandfathered) {
            violate(.overLimit, "\(running.sorted()) run, and \(limit) may")
        }
    }

    private func check(_ job: Job, _ queue: NetworkQueue) {
        guard let operation = job.operation else { return }
        let (now, last, isSlow) = (loop.now, job.messages.last, history.settings.isSlow)
        let isUndecided = job.network?.hasOutcome == false
        let isUndecidedRequest = isUndecided && job.isOwnCall && job.plan.kind != .older
        if let deadline = job.deadline, now > job.addedAt + deadline + 0.01, isUndecided {
            violate(.deadlinePassed, job, "\(deadline) s")
        }
        if let cancelledAt = job.cancelledAt, now > cancelledAt + 1, isUndecided, !isSlow {
            violate(.cancelTakesLong, job)
        }
        if let timeout = job.plan.timeout, let first = job.messages.first, now > first.sentAt + timeout + 0.01,
            isUndecidedRequest
        {
            violate(.deadlinePassed, job, "all of its messages, \(timeout) s")
        }
        guard job.dependencies.allSatisfy(\.isFinished) else { return }
        let (reasons, hasSlot) = (queue.explain(operation), hadSlots.contains(job.number))
        if reasons == [.turn] { violate(.slotUnused, job) }
        if reasons == [.running], job.isOwnCall, let ended = last?.endedAt, now > ended + 1 {
            violate(.slotHeldInVain, job, "since \(ended - 1_000)")
        }
        if isUndecidedRequest, job.plan.caching == .none, last?.isUnderWay == true, !hasSlot {
            violate(.runsWithoutSlot, job)
        }
        let waits = if case .limit? = reasons.first { reasons.count == 1 && !queue.isSuspended } else { false }
        job.waitsForSlotSince = waits ? job.waitsForSlotSince ?? now : nil
        if let since = job.waitsForSlotSince { checkOrder(job, since) }
        guard hasDownloads else { return }
        if let pausedAt = job.pausedAt, now > pausedAt + 1, last != nil, isResumable(job), hasSlot, !isSlow {
            violate(.pausedWithSlot, job)
        }
        if reasons == [.slotYielded], !isResumable(job), job.messages.contains(where: \.isUnderWay) {
            violate(.yieldedWithoutResume, job)
        }
        if let since = job.waitsForSlotSince, limit > 0, !isSlow { checkUrgency(job, since) }
        if reasons != [.running] { job.receivesSince = nil }
        guard reasons == [.slotYielded], job.plan.tags.isEmpty, !hasLimitedHosts else { return job.absence = nil }
        let absence = job.absence ?? (now, .max)
        job.absence = absence
        if now < absence.since + 5 {
            // After four seconds it has the next slot but one, and others that have been absent for longer go first.
            let absentCount = openJobs.count { $0.absence.map { $0.since <= absence.since } ?? false }
            job.absence?.mostGrants = grantCount + 2 * absentCount + 1
        } else if grantCount > absence.mostGrants {
            violate(.yieldedForGood, job, "absent since \(absence.since - 1_000)")
        }
    }

    /// An urgent job that waits for a slot, and a download that has had one for long.
    private func checkUrgency(_ job: Job, _ since: Double) {
        let other = openJobs.first { other in
            other.priority < min(job.priority, 0) && isResumable(other) && isAlone(other)
                && other.receivesSince.map { $0 < loop.now - 2.5 } ?? false
        }
        if let other, loop.now - max(since, limitChangedAt) > 2.5, hadSlots.count == limit {
            violate(.urgentWaits, job, "since \(since - 1_000), and job \(other.number) runs")
        }
    }

    /// A job that waits for nothing but one of all slots goes before those of lower priority, and later ones.
    private func checkOrder(_ job: Job, _ since: Double) {
        guard isPlainJob(job), job.plan.tags.isEmpty, !hasLimitedHosts, history.settings.rate == nil,
            job.operation?.isExecuting == false, since < loop.now
        else { return }
        let other = newlyRunning.first { other in
            // One that comes back goes earlier.
            guard isPlainJob(other), other.plan.kind != .download, !other.plan.joins,
                other.priorityChangedAt < loop.now, let began = other.readyAt
            else { return false }
            return other.priority < job.priority
                || other.priority == job.priority && began > since && other.plan.tags.isEmpty
                    && other.priorityChangedAt < 0 && other.dependents.isEmpty && job.dependents.isEmpty
        }
        if let other { violate(.wrongOrder, job, "waits, and job \(other.number) has started") }
    }

    /// Whether its own priority counts alone.
    private func isAlone(_ job: Job) -> Bool { !job.isAwaited(at: loop.now) && job.groups.isEmpty }

    /// Whether nothing but its own priority, and a slot, decides when it starts.
    private func isPlainJob(_ job: Job) -> Bool { !job.isGroup && job.plan.condition == nil && isAlone(job) }

    /// The resource, and the one that it redirects to.
    private func places(_ resource: Int) -> [Int] {
        let resources = history.settings.resources
        return resources[resource].redirect == nil ? [resource] : [resource, (resource + 1) % resources.count]
    }

    /// Whether a download can go on where it stopped.
    private func isResumable(_ job: Job) -> Bool {
        guard job.plan.kind == .download, !job.plan.hasKey else { return false }
        let resources = places(job.plan.resource).map { history.settings.resources[$0] }
        return resources.suffix(1).allSatisfy { $0.hasStrongTag && $0.servesRanges }
    }

    func checkEnd(of job: Job) {
        if let error = job.network?.error {
            guard let problem = problem(of: job, error) else { return }
            return violate(.failedWithoutReason, job, "\(error.code): \(error.message ?? ""): \(problem)")
        }
        let resource = job.plan.resource
        if job.plan.kind == .download {
            let found = FileManager.default.contents(atPath: file(of: job))
            let isWhole = places(resource).contains { place in
                (1...server.versions[place]).contains { server.bytes(of: place, version: $0) == found }
            }
            if !isWhole { violate(.incompleteFile, job, "\(found?.count ?? -1) bytes") }
        } else if case .success(let answer?) = job.result {
            let caching = job.plan.caching
            if job.source == .network && !job.plan.joins && answer.job != job.number && caching == .none {
                violate(.responseOfAnotherRequest, job, "got that of job \(answer.job)")
            }
            // A policy of its own does not tell users apart.
            let tellsUsers = caching == .none || caching == .http
            check(answer, of: resource, since: tellsUsers ? job.addedStep : 0, "job \(job.number)")
        }
    }

    /// Whether an answer is for a resource, and a user who was signed in since a step.
    func check(_ answer: Answer, of resource: Int, since step: Int, _ reader: String) {
        let path = answer.path.split(separator: "/").last.flatMap { Int($0) } ?? -1
        if !places(resource).contains(path) { violate(.responseOfAnotherRequest, "\(reader) got \(answer.path)") }
        let first = signedIn.lastIndex { $0.step <= step } ?? 0
        if answer.user >= 0, !signedIn[first...].contains(where: { $0.user == answer.user }) {
            violate(.responseOfAnotherUser, "\(reader) got that of user \(answer.user)")
        }
    }

    /// Why the job must not have failed like this; nil if it may.
    private func problem(of job: Job, _ error: NetworkError) -> String? {
        let (isShared, settings, last) = (job.plan.joins || job.isGroup, history.settings, job.messages.last)
        switch error.code {
        case .cancelled: return mayBeCancelled(job) ? nil : "nobody has cancelled it"
        case .dependencyFailed:
            let others = job.dependencies + job.plan.children.map { jobs[$0] }
            return job.isChild || others.contains(where: \.hasFailed) ? nil : "its dependencies have succeeded"
        case .timedOut: return timeProblem(job, error)
        case .cycle: return hasDone("release") || waitsForItself(job) ? nil : "it does not wait for itself"
        case .redirectFailed, .cannotSendAgain: return nil
        case .cannotParseResponse:
            if settings.resources.contains(where: \.repeatsType) { violate(.fieldCountedTwice, job) }
            return isShared ? nil : "no reason"
        case .connectionLost where last.map(isCutRefusal) ?? false: return "the head decides"
        case _ where isShared: return nil
        case .connectionLost where mayRetry(job), .cannotConnect where mayRetry(job): return "it has retries left"
        case .connectionLost, .cannotConnect: return last?.error == nil ? "its last message was answered" : nil
        case .unacceptableStatus:
            let status = job.messages.last { $0.status != nil }?.status ?? 200
            return (200..<300).contains(status) ? "its last status was good" : nil
        case .unauthorized:
            return hasDone("signOut") || hasDone("revoke") || !settings.startsSignedIn || settings.tokenLife < 100
                || !history.faults.isEmpty || job.messages.contains { $0.status == 401 } ? nil : "it was authorized"
        case .circuitOpen: return circuitProblem(job)
        case .refused: return job.plan.condition == 2 ? nil : "its condition holds"
        default: return "no reason"
        }
    }

    /// Whether a cycle can be reached from the job: its end waits for its start and the ends of its children, its start
    /// for those that it depends on and for the start of the groups that it is in.
    private func waitsForItself(_ job: Job) -> Bool {
        // The start of a job is twice its number, its end one more.
        func next(_ node: Int) -> [Int] {
            let job = jobs[node / 2]
            if node % 2 == 1 { return [node - 1] + job.plan.children.map { 2 * $0 + 1 } }
            let steps = job.groups.filter { $0.plan.kind == .chain }.flatMap { chain in
                chain.plan.children.prefix { $0 != job.number && !jobs[$0].members.contains { $0 === job } }
            }
            return (job.dependencies.map(\.number) + steps).map { 2 * $0 + 1 } + job.groups.map { 2 * $0.number }
        }
        var done: Set<Int> = []
        func hasCycle(_ node: Int, _ path: Set<Int>) -> Bool {
            path.contains(node)
                || done.insert(node).inserted && next(node).contains { hasCycle($0, path.union([node])) }
        }
        return hasCycle(2 * job.number + 1, [])
    }

    /// Whether the message was answered by a refusal without its whole body.
    private func isCutRefusal(_ message: Message) -> Bool {
        if message.error == .connectionLost, case .cutRefusal = fault(of: message) { true } else { false }
    }

    /// Whether a retry repeats nothing, and is left.
    private func mayRetry(_ job: Job) -> Bool {
        guard job.messages.count <= job.plan.retries, history.settings.circuit == .none else { return false }
        let isUnprocessed = job.messages.allSatisfy { message in
            switch fault(of: message) {
            case .reject, .refuse: true
            default: false
            }
        }
        return job.plan.kind == .get || job.plan.kind == .post && isUnprocessed
    }

    /// A trial that has gone on for long shows that the server is there.
    private func circuitProblem(_ job: Job) -> String? {
        guard history.settings.circuit == .fails else { return "there is no circuit" }
        let isTried = messages.contains { message in
            message.host == job.plan.host && message.isUnderWay && message.sentAt > lastFailure[message.host] + 1
                && message.sentAt < loop.now - 6
        }
        if isTried, places(job.plan.resource).count == 1 { violate(.circuitStaysOpen, job) }
        return nil
    }

    private func mayBeCancelled(_ job: Job) -> Bool {
        if job.mayBeCancelled || job.plan.joins { return true }
        // By the group that it is a child of, or by a child.
        return job.groups.contains { group in
            group.plan.children.contains(job.number)
                && (group.plan.endsAtFirstFailure || group.plan.kind == .chain || group.hasFailed)
        } || job.plan.children.contains { mayBeCancelled(jobs[$0]) }
    }

    private func timeProblem(_ job: Job, _ error: NetworkError) -> String? {
        guard let message = error.message, message.hasPrefix("its deadline of "),
            let seconds = Double(message.dropFirst(16).prefix { $0 != " " })
        else {
            return !history.faults.isEmpty || job.plan.timeout != nil || job.plan.joins || job.isGroup
                || history.settings.isSlow ? nil : "nothing has stalled"
        }
        if job.isChild { return nil }
        guard let deadline = job.deadline, abs(deadline - seconds) <= 0.006 * max(1, seconds) else {
            if !job.isGroup { violate(.wrongDeadlineNamed, job, "\(seconds) s") }
            return nil
        }
        return loop.now >= job.addedAt + deadline ? nil : "it is early"
    }

    func checkEnd() {
        guard let queue else { return }
        for job in jobs {
            guard let operation = job.operation else { continue }
            guard operation.isFinished else {
                return violate(.neverEnds, job, queue.explain(operation).map(\.description).joined(separator: ", "))
            }
            if job.executionCount > 1 { violate(.executedTwice, job) }
            if job.callbackCount != (job.hasCallback ? 1 : 0), !job.isForeign || job.callbackCount > 1 {
                violate(.calledBackTwice, job, "\(job.callbackCount) times")
            }
            if job.isForeign { continue }
            if job.completionCount != 1 { violate(.endedTwice, job, "\(job.completionCount) times") }
            if job.plan.isAwaited, job.awaitedCount != 1 { violate(.waiterLost, job) }
            if !job.isChild, job.isOwnCall { checkCounts(job) }
        }
        loads?.checkEnd()
        let left = messages.first {
            $0.isUnderWay && $0.job.flatMap { jobs[$0].endedAt }.map { $0 < loop.now - 1 } ?? false
        }
        if let left { violate(.messageLeft, left) }
        let text = queue.description
        if queue.operationCount != 0 || !text.contains(" 0 of ") && !text.contains(" 0 slots") {
            violate(.countsLeft, text)
        }
    }

    /// Messages that were paid for.
    private func checkCounts(_ job: Job) {
        let free = job.messages.count { [401, 301, 302, 303, 307, 308, 304].contains($0.status) }
        let background = job.plan.caching == .none ? 0 : 4
        if job.messages.count > 1 + job.plan.retries + free + background {
            violate(.tooManyRetries, job, "\(job.messages.count) messages")
        }
        let actCount = job.messages.count(where: \.hasActed)
        if actCount > 1 { violate(.unsafeRequestTwice, job, "it has acted \(actCount) times") }
    }
}
