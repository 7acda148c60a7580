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
    case groupEndedEarly, startedAfterGroup, messageLeft, sentBeforeRetryAfter
    case rangeWithoutCondition, pausedWithSlot, runsWithoutSlot, overLimit, slotUnused, slotHeldInVain,
        yieldedWithoutResume, yieldedForGood, urgentWaits,
        wrongOrder
    // Downloads, circuits, the whole.
    case incompleteFile, circuitStaysOpen, countsLeft, leaked, endless
    // Outboxes.
    case cannotOpen, noRoomForReplacement, sentAfterRemoval, sentAfterDelivery, keyChanged, laneOutOfOrder
    case stillThere, neverDelivered, periodMissed
}

/// Checks the laws by the record of the servers and the results of the jobs.
extension World {
    func willSend(_ message: Message) {
        log(
            "sends \(message.number): \(message.method) \(message.hostName)\(message.path)"
                + (message.job.map { " of job \($0)" } ?? "") + (message.token.map { ", token \($0)" } ?? "")
                + (message.headers["Range"].map { ", \($0)" } ?? "")
        )
        if let epoch = message.epoch, !validEpochs.contains(epoch) {
            violate(.sentAfterSignOut, "message \(message.number)")
        }
        if let epoch = message.cookie, message.host == 1 || !validEpochs.contains(epoch) {
            violate(.cookieOfAnotherUser, "message \(message.number)")
        }
        if message.host == 1 && message.token != nil { violate(.credentialElsewhere, "message \(message.number)") }
        if message.headers["Range"] != nil, message.headers["If-Range"] == nil {
            violate(.rangeWithoutCondition, "message \(message.number)")
        }
        if let mail = message.mail { processes?.willSend(message, mail: mail) }
        guard let job = message.job.map({ jobs[$0] }) else { return }
        if job.cancelledAt != nil && !job.plan.joins {
            violate(.sentAfterCancel, "message \(message.number) of job \(job.number)")
        }
        if job.messages.isEmpty { willStart(job) }
        if let last = job.messages.last, !job.plan.joins, let end = last.endedAt, let seconds = last.retryAfter,
            loop.now < end + seconds - 0.001
        {
            violate(.sentBeforeRetryAfter, "messages \(last.number) and \(message.number)")
        }
        checkRepeats(message, job)
        job.messages.append(message)
    }

    func willStart(_ job: Job) {
        if let deadline = job.deadline, deadline <= 0, !job.isChild { violate(.deadlinePassed, "job \(job.number)") }
        if let group = job.groups.first(where: { $0.network?.hasOutcome == true }), !job.plan.joins {
            violate(.startedAfterGroup, "job \(job.number) of \(group.number)")
        }
        for other in job.dependencies {
            if !other.isFinished {
                violate(.startedBeforeDependency, "job \(job.number), which waits for job \(other.number)")
            }
            if other.hasCallback, !other.isForeign, other.callbackCount == 0 {
                violate(
                    .startedBeforeCallback,
                    "job \(job.number) has started, and job \(other.number) has not called back"
                )
            }
        }
        if let before = startedBeforeSuspension, !before.contains(job.number), !job.plan.joins {
            violate(.startedWhileSuspended, "job \(job.number)")
        }
    }

    /// Whether the earlier messages of the same job let this one follow.
    private func checkRepeats(_ message: Message, _ job: Job) {
        guard message.method == "POST", message.key == nil else { return }
        for earlier in job.messages where earlier.method == "POST" && earlier.key == nil {
            guard let status = earlier.status, earlier.hasActed || ![401, 307, 308].contains(status) else { continue }
            violate(
                .unsafeRequestTwice,
                "messages \(earlier.number) and \(message.number) of \(job.plan.kind) \(job.number)"
            )
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
        guard limit >= 0, all.count > limit else { return }
        let running = all.filter { !jobs[$0].isGroup && !jobs[$0].plan.joins }
        if running.count > limit && !running.isSubset(of: grandfathered) {
            violate(.overLimit, "\(running.sorted()) run, and \(limit) may")
        }
    }

    private func check(_ job: Job, _ queue: NetworkQueue) {
        guard let operation = job.operation else { return }
        let (number, now) = (job.number, loop.now)
        let isUndecided = job.network?.hasOutcome == false
        if let deadline = job.deadline, now > job.addedAt + deadline + 0.01, isUndecided {
            violate(.deadlinePassed, "job \(number), \(deadline) s")
        }
        if let cancelledAt = job.cancelledAt, now > cancelledAt + 1, isUndecided, !history.settings.isSlow {
            violate(.cancelTakesLong, "job \(number), \(job.plan.kind)")
        }
        if let timeout = job.plan.timeout, let first = job.messages.first, now > first.sentAt + timeout + 0.01,
            isUndecided, [.get, .post, .upload].contains(job.plan.kind), !job.plan.joins
        {
            violate(.deadlinePassed, "job \(number), all of its messages, \(timeout) s")
        }
        guard job.dependencies.allSatisfy(\.isFinished) else { return }
        let reasons = queue.explain(operation)
        if reasons == [.turn] { violate(.slotUnused, "job \(number)") }
        if reasons == [.running], [.get, .post, .upload, .older].contains(job.plan.kind), !job.plan.joins,
            let ended = job.messages.last?.endedAt, now > ended + 1
        {
            violate(.slotHeldInVain, "job \(number) since \(ended - 1_000)")
        }
        if isUndecided, [.get, .post, .upload].contains(job.plan.kind), !job.plan.joins, job.plan.caching == .none,
            job.messages.last?.isUnderWay == true, !hadSlots.contains(number)
        {
            violate(.runsWithoutSlot, "job \(number)")
        }
        let waits = if case .limit? = reasons.first { reasons.count == 1 && !queue.isSuspended } else { false }
        job.waitsForSlotSince = waits ? job.waitsForSlotSince ?? now : nil
        if waits { checkOrder(job) }
        guard hasDownloads else { return }
        if let pausedAt = job.pausedAt, now > pausedAt + 1, !job.messages.isEmpty, isResumable(job),
            hadSlots.contains(number), !history.settings.isSlow
        {
            violate(.pausedWithSlot, "job \(number)")
        }
        if reasons == [.slotYielded], !isResumable(job), job.messages.contains(where: \.isUnderWay) {
            violate(.yieldedWithoutResume, "job \(number)")
        }
        if waits { checkUrgency(job) }
        if reasons != [.running] { job.receivesSince = nil }
        guard reasons == [.slotYielded], job.plan.tags.isEmpty, !hasLimitedHosts else { return job.absence = nil }
        let absence = job.absence ?? (now, .max)
        job.absence = absence
        if now < absence.since + 5 {
            // After four seconds it has the next slot but one, and others that have been absent for longer go first.
            let absentCount = openJobs.count { $0.absence.map { $0.since <= absence.since } ?? false }
            job.absence?.mostGrants = grantCount + 2 * absentCount + 1
        } else if grantCount > absence.mostGrants {
            violate(.yieldedForGood, "job \(number) is absent since \(absence.since - 1_000)")
        }
    }

    /// An urgent job that waits for a slot, and a download that has had one for long.
    private func checkUrgency(_ job: Job) {
        guard let queue, let since = job.waitsForSlotSince, limit > 0, !history.settings.isSlow else { return }
        let other = openJobs.first { other in
            other.priority < min(job.priority, 0) && isResumable(other) && !other.isAwaited(at: loop.now)
                && other.groups.isEmpty
                && other.receivesSince.map { $0 < loop.now - 2.5 } ?? false
        }
        if let other, loop.now - max(since, limitChangedAt) > 2.5, runningJobs(queue).count == limit {
            violate(.urgentWaits, "job \(job.number) has waited since \(since - 1_000), and job \(other.number) runs")
        }
    }

    /// A job that waits for nothing but one of all slots goes before those of lower priority, and later ones.
    private func checkOrder(_ job: Job) {
        guard isPlainJob(job), job.plan.tags.isEmpty, !hasLimitedHosts, history.settings.rate == nil,
            job.operation?.isExecuting == false,
            let since = job.waitsForSlotSince, since < loop.now
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
        if let other { violate(.wrongOrder, "job \(other.number) has started, and job \(job.number) waits") }
    }

    /// Whether nothing but its own priority, and a slot, decides when it starts.
    private func isPlainJob(_ job: Job) -> Bool {
        !job.isGroup && job.plan.condition == nil && !job.isAwaited(at: loop.now) && job.groups.isEmpty
    }

    /// Whether a download can go on where it stopped.
    private func isResumable(_ job: Job) -> Bool {
        guard job.plan.kind == .download, !job.plan.hasKey else { return false }
        let resources = history.settings.resources
        let isRedirected = resources[job.plan.resource].redirect != nil
        let resource = resources[isRedirected ? next(job.plan.resource) : job.plan.resource]
        return resource.hasStrongTag && resource.servesRanges
    }

    /// The resource that one may redirect to.
    private func next(_ resource: Int) -> Int { (resource + 1) % history.settings.resources.count }

    func checkEnd(of job: Job) {
        guard let error = job.network?.error else { return checkSuccess(of: job) }
        if let problem = problem(of: job, error) {
            violate(
                .failedWithoutReason,
                "job \(job.number), \(job.plan.kind): \(error.code): \(error.message ?? ""): \(problem)"
            )
        }
    }

    private func checkSuccess(of job: Job) {
        if job.plan.kind == .download { return checkFile(of: job) }
        guard case .success(let answer?) = job.result else { return }
        let caching = job.plan.caching
        if job.source == .network && !job.plan.joins && answer.job != job.number && caching == .none {
            violate(.responseOfAnotherRequest, "job \(job.number) got that of job \(answer.job)")
        }
        // A policy of its own does not tell users apart.
        let tellsUsers = caching == .none || caching == .http
        check(answer, of: job.plan.resource, since: tellsUsers ? job.addedStep : 0, "job \(job.number)")
    }

    /// Whether an answer is for a resource, and a user who was signed in since a step.
    func check(_ answer: Answer, of resource: Int, since step: Int, _ reader: String) {
        let path = answer.path.split(separator: "/").last.flatMap { Int($0) } ?? -1
        let isRedirected = history.settings.resources[resource].redirect != nil
        if path != resource, !isRedirected || path != next(resource) {
            violate(.responseOfAnotherRequest, "\(reader) got \(answer.path)")
        }
        let before = signedIn.last { $0.step <= step }.map { [$0] } ?? []
        let users = (before + signedIn.filter { $0.step > step }).map(\.user)
        if answer.user >= 0, !users.contains(answer.user) {
            violate(.responseOfAnotherUser, "\(reader) got that of user \(answer.user)")
        }
    }

    private func checkFile(of job: Job) {
        let found = FileManager.default.contents(atPath: file(of: job))
        // Or of the one that it was redirected to.
        let isWhole = [job.plan.resource, next(job.plan.resource)].contains { index in
            (1...server.versions[index]).contains { server.bytes(of: index, version: $0) == found }
        }
        if !isWhole { violate(.incompleteFile, "job \(job.number) has \(found?.count ?? -1) bytes") }
    }

    /// Why the job must not have failed like this; nil if it may.
    private func problem(of job: Job, _ error: NetworkError) -> String? {
        let isShared = job.plan.joins || job.isGroup
        switch error.code {
        case .cancelled: return mayBeCancelled(job) ? nil : "nobody has cancelled it"
        case .dependencyFailed:
            let others = job.dependencies + job.plan.children.map { jobs[$0] }
            return job.isChild || others.contains(where: \.hasFailed) ? nil : "its dependencies have succeeded"
        case .timedOut: return timeProblem(job, error)
        case .cycle: return hasDone("release") || waitsForItself(job) ? nil : "it does not wait for itself"
        case .redirectFailed, .cannotSendAgain: return nil
        case .cannotParseResponse:
            if history.settings.resources.contains(where: \.repeatsType) {
                violate(.fieldCountedTwice, "job \(job.number), \(job.plan.kind)")
            }
            return isShared ? nil : "no reason"
        case .connectionLost where job.messages.last.map(isCutRefusal) ?? false: return "the head decides"
        case _ where isShared: return nil
        case .connectionLost where mayRetry(job), .cannotConnect where mayRetry(job): return "it has retries left"
        case .connectionLost, .cannotConnect:
            return job.messages.last?.error == nil ? "its last message was answered" : nil
        case .unacceptableStatus:
            let status = job.messages.last { $0.status != nil }?.status ?? 200
            return (200..<300).contains(status) ? "its last status was good" : nil
        case .unauthorized:
            let settings = history.settings
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
        let settings = history.settings
        guard [.get, .post].contains(job.plan.kind), job.messages.count <= job.plan.retries, settings.circuit == .none
        else { return false }
        return job.plan.kind == .get
            || job.messages.allSatisfy { message in
                switch fault(of: message) {
                case .reject, .refuse: true
                default: false
                }
            }
    }

    /// A trial that has gone on for long shows that the server is there.
    private func circuitProblem(_ job: Job) -> String? {
        guard history.settings.circuit == .fails else { return "there is no circuit" }
        let isTried = messages.contains { message in
            message.host == job.plan.host && message.isUnderWay && message.sentAt > lastFailure[message.host] + 1
                && message.sentAt < loop.now - 6
        }
        if isTried && history.settings.resources[job.plan.resource].redirect == nil {
            violate(.circuitStaysOpen, "job \(job.number)")
        }
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
            let stalls =
                !history.faults.isEmpty || job.plan.timeout != nil || job.plan.joins || job.isGroup
                || history.settings.isSlow
            return stalls ? nil : "nothing has stalled"
        }
        if job.isChild { return nil }
        guard let deadline = job.deadline, abs(deadline - seconds) <= 0.006 * max(1, seconds) else {
            if !job.isGroup { violate(.wrongDeadlineNamed, "job \(job.number), \(seconds) s") }
            return nil
        }
        return loop.now >= job.addedAt + deadline ? nil : "it is early"
    }

    func checkEnd() {
        guard let queue else { return }
        for job in jobs {
            guard let operation = job.operation else { continue }
            let number = job.number
            guard operation.isFinished else {
                let reasons = queue.explain(operation).map(\.description).joined(separator: ", ")
                return violate(.neverEnds, "job \(number), \(job.plan.kind) \(reasons)")
            }
            if job.executionCount > 1 { violate(.executedTwice, "job \(number)") }
            if job.callbackCount != (job.hasCallback ? 1 : 0), !job.isForeign || job.callbackCount > 1 {
                violate(.calledBackTwice, "job \(number), \(job.plan.kind), did so \(job.callbackCount) times")
            }
            if job.isForeign { continue }
            if job.completionCount != 1 { violate(.endedTwice, "job \(number) did so \(job.completionCount) times") }
            if job.plan.isAwaited && job.awaitedCount != 1 { violate(.waiterLost, "job \(number)") }
            if !job.isChild { checkCounts(job) }
        }
        loads?.checkEnd()
        let left = messages.first {
            $0.isUnderWay && $0.job.flatMap { jobs[$0].endedAt }.map { $0 < loop.now - 1 } ?? false
        }
        if let left { violate(.messageLeft, "message \(left.number)") }
        let text = queue.description
        if queue.operationCount != 0 || !text.contains(" 0 of ") && !text.contains(" 0 slots") {
            violate(.countsLeft, text)
        }
    }

    /// Messages that were paid for.
    private func checkCounts(_ job: Job) {
        guard [.get, .post, .upload, .older].contains(job.plan.kind), !job.plan.joins else { return }
        let free = job.messages.count { [401, 301, 302, 303, 307, 308, 304].contains($0.status) }
        let background = job.plan.caching == .none ? 0 : 4
        if job.messages.count > 1 + job.plan.retries + free + background {
            violate(.tooManyRetries, "job \(job.number) has sent \(job.messages.count) messages")
        }
        let actCount = job.messages.count(where: \.hasActed)
        if actCount > 1 { violate(.unsafeRequestTwice, "job \(job.number) has acted \(actCount) times") }
    }
}
