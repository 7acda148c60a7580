import EasyNetwork
import Foundation

/// What must not happen: the laws of DESIGN.md, "Properties", and more.
enum Law: String {
    // Users and what they may see.
    case sentAfterSignOut, keptAfterSignOut, credentialElsewhere, cookieOfAnotherUser, responseOfAnotherUser
    case responseOfAnotherRequest, staleResponse, incompleteFile
    case refreshedInVain, refreshTakesLong, confirmedAnother, askedInVain, notRefreshed, storedInSpite
    // Jobs.
    case sentAfterCancel, cancelTakesLong, startedBeforeDependency, startedBeforeCallback, startedWhileSuspended
    case unsafeRequestTwice, tooManyRetries, deadlinePassed, wrongDeadlineNamed, failedWithoutReason
    case neverEnds, endedTwice, executedTwice, calledBackTwice, waiterLost, fieldCountedTwice
    case groupEndedEarly, startedAfterGroup, messageLeft, sentBeforeRetryAfter, rangeWithoutCondition
    // Slots, circuits, the whole.
    case pausedWithSlot, runsWithoutSlot, overLimit, overRate, slotUnused, slotHeldInVain, yieldedWithoutResume
    case yieldedForGood, urgentWaits, wrongOrder, countsLeft, leaked, endless
    case circuitOpensEarly, circuitOpenTooLong, circuitStaysOpen, sentThroughOpenCircuit
    // Outboxes.
    case cannotOpen, noRoomForReplacement, sentAfterRemoval, sentAfterDelivery, keyChanged, laneOutOfOrder
    case stillThere, neverDelivered, periodMissed, diedWithoutReason, sentEarly, sentBeforeDependency
}

extension Job: CustomStringConvertible {
    var description: String { "job \(number), \(plan.kind)" }
    /// Whether it is a call that shares its messages with no other job.
    fileprivate var isOwnCall: Bool { [.get, .post, .upload, .older].contains(plan.kind) && !plan.joins }
}

extension Message: CustomStringConvertible {
    var description: String { "message \(number)" + (job.map { " of job \($0)" } ?? "") }
    fileprivate var isUnsafe: Bool { method == "POST" && key == nil }
}

/// Checks the laws by the record of the servers and the results of the jobs.
extension World {
    /// - Parameter culprit: a job, a message or words.
    func forbid(_ law: Law, _ culprit: @autoclosure () -> Any, when isBroken: Bool) {
        if isBroken { violate(law, "\(culprit())") }
    }

    private func isOver(_ epoch: Int?) -> Bool { epoch.map { $0 >= 0 && !validEpochs.contains($0) } ?? false }

    func willSend(_ message: Message) {
        log(
            "sends \(message.number): \(message.method) \(message.hostName)\(message.path)"
                + (message.job.map { " of job \($0)" } ?? "") + (message.token.map { ", token \($0)" } ?? "")
                + (message.headers["Range"].map { ", \($0)" } ?? "")
        )
        let isElsewhere = message.host == 1
        forbid(.sentAfterSignOut, message, when: isOver(message.epoch))
        forbid(.cookieOfAnotherUser, message, when: isOver(message.cookie) || isElsewhere && message.cookie != nil)
        forbid(.credentialElsewhere, message, when: isElsewhere && message.token != nil)
        let isRange = message.headers["Range"] != nil
        forbid(.rangeWithoutCondition, message, when: isRange && message.headers["If-Range"] == nil)
        if let mail = message.mail { processes?.willSend(message, mail: mail) }
        let trials = message.client.map(trials) ?? []
        let notBefore = trials.first?.client.map { circuits[$0].notBefore } ?? 0
        let mustWait = trials.count > 1 || trials.count > 0 && loop.now < notBefore - 0.001
        forbid(.sentThroughOpenCircuit, message, when: mustWait && trials.contains { $0 === message })
        // What a cache refreshes behind a job is not the job's.
        guard let job = message.job.map({ jobs[$0] }), job.source != .cache else { return }
        forbid(.sentAfterCancel, message, when: job.cancelledAt != nil && !job.plan.joins)
        if job.messages.isEmpty { willStart(job) }
        let (last, isOneCall) = (job.messages.last, !job.plan.joins && job.plan.kind != .pair)
        let isConfirmed = last?.status == 304 && last?.document?.tag == last?.headers["If-None-Match"]
        forbid(.askedInVain, message, when: isConfirmed && last?.error == nil && isOneCall)
        if let end = last?.endedAt, let seconds = last?.retryAfter {
            forbid(.sentBeforeRetryAfter, message, when: loop.now < end + seconds - 0.001 && isOneCall)
        }
        let hasActed = job.messages.contains { earlier in
            guard earlier.isUnsafe, let status = earlier.status else { return false }
            return earlier.hasActed || ![401, 307, 308].contains(status)
        }
        forbid(.unsafeRequestTwice, message, when: message.isUnsafe && hasActed)
        job.messages.append(message)
    }

    func willRefresh(_ credential: Tokens.Credential?) -> Int {
        if let credential {
            let isRefused = messages.contains { $0.token == credential.access && $0.status == 401 }
            forbid(.refreshedInVain, "token \(credential.access)", when: !isRefused)
        }
        refreshes.append((credential, loop.now, nil))
        return refreshes.count - 1
    }

    func didRefresh(_ number: Int) {
        refreshes[number].endedAt = loop.now
        let (settings, (credential, beganAt, _)) = (history.settings, refreshes[number])
        guard settings.circuit == .none, !settings.hasReachability, !settings.isSlow, let credential else { return }
        // It sends its message at once, and is given up after 120 seconds.
        let message = messages.last { $0.refreshToken == credential.refresh && $0.sentAt >= beganAt }
        let isLate = message.map { $0.sentAt > beganAt + 121 } ?? (loop.now > beganAt + settings.promptTime + 1)
        forbid(.refreshTakesLong, "of token \(credential.access)", when: isLate)
    }

    /// What the events of a service, and its messages, tell of its circuit.
    struct Circuit {
        var isOpen = false
        /// Whether a trial has closed it without an answer, and may fail yet.
        var isTrusted = false
        /// The number of the first message after it was opened or closed.
        var firstMessage = 0
        /// No message is sent earlier while it is open.
        var notBefore = 0.0
    }

    /// The messages of a service since its circuit was opened or closed.
    private func messagesSinceChange(_ client: Int) -> [Message] {
        messages[circuits[client].firstMessage...].filter { $0.client == client }
    }

    /// The messages under way through the open circuit of a service. Downloads and streams may have passed it earlier.
    private func trials(_ client: Int) -> [Message] {
        guard circuits.indices.contains(client), circuits[client].isOpen else { return [] }
        return messagesSinceChange(client).filter { message in
            message.isUnderWay && !message.isCancelled && message.job.map { jobs[$0].isOwnCall } ?? true
        }
    }

    func circuitChanges(_ client: Int, _ kind: NetworkEvent.Kind) {
        var circuit = circuits[client]
        let (sent, now) = (messagesSinceChange(client), loop.now)
        switch kind {
        case .circuitOpened(let error):
            let failed = sent.filter(\.hasFailed)
            let isEnough = circuit.isTrusted || failed.count >= (circuit.isOpen ? 1 : 2)
            forbid(.circuitOpensEarly, "after \(failed)", when: !isEnough)
            let wishes = messages.map { $0.client == client ? ($0.endedAt ?? now) + ($0.retryAfter ?? 0) - now : 0 }
            let (seconds, longest) = (error.headers["Retry-After"].flatMap { Double($0) } ?? 0, wishes.max() ?? 0)
            let isFirst = !circuit.isOpen && !circuit.isTrusted && !history.settings.isSlow
            forbid(.circuitOpenTooLong, "\(seconds) s", when: isFirst && seconds > max(2, longest) + 1)
            // The wish of the message that has opened it.
            let wish = failed.filter { $0.endedAt == now }.map { $0.error == nil ? $0.retryAfter ?? 0 : 0 }.min() ?? 0
            (circuit.isOpen, circuit.isTrusted, circuit.notBefore) = (true, false, now + max(2, wish))
        case .circuitClosed: (circuit.isOpen, circuit.isTrusted) = (false, sent.last?.answeredAt == nil)
        default: return
        }
        circuit.firstMessage = messages.count
        circuits[client] = circuit
    }

    func willStart(_ job: Job) {
        let isOwn = !job.plan.joins
        forbid(.deadlinePassed, job, when: job.deadline.map { $0 <= 0 } == true && !job.isChild)
        let isLate = job.groups.first?.network?.hasOutcome == true && !hadRun.contains(job.number)
        forbid(.startedAfterGroup, job, when: isLate && isOwn)
        for other in job.dependencies {
            forbid(.startedBeforeDependency, "\(job), before \(other)", when: !other.isFinished)
            let mustCall = other.hasCallback && !other.isForeign
            forbid(.startedBeforeCallback, "\(job), before \(other)", when: mustCall && other.callbackCount == 0)
        }
        for barrier in barriers where barrier.step < job.addedStep && !job.isChild {
            let isAlone = barrier.before.allSatisfy(\.isFinished)
            forbid(.startedBeforeDependency, "\(job), behind a barrier", when: !isAlone)
        }
        forbid(.startedWhileSuspended, job, when: startedBeforeSuspension?.contains(job.number) == false && isOwn)
    }

    /// Of jobs that execute as soon as they have their token.
    func checkRate(_ job: Job) {
        guard let rate = history.settings.rate, job.plan.condition == nil, !history.settings.isSlow else { return }
        executionTimes.append(loop.now)
        let earlier = executionTimes.dropLast(rate + history.settings.burst - 1).last ?? -.infinity
        forbid(.overRate, job, when: earlier > loop.now - 0.999)
    }

    func checkQuiet() {
        forbid(.keptAfterSignOut, "the session", when: isOver(session?.credential?.epoch))
        guard let queue, !openJobs.isEmpty else { return }
        let all = runningJobs(queue)
        let granted = all.subtracting(hadSlots)
        hadSlots = all
        grantCount += granted.count(where: takesSlot)
        newlyRunning = granted.map { jobs[$0] }.filter { $0.readyAt == nil }
        if newlyRunning.contains(where: { takesSlot($0.number) }) { startedAt = loop.now }
        for job in newlyRunning { job.readyAt = job.waitsForSlotSince ?? loop.now }
        let running = all.filter(takesSlot)
        let isOver = limit >= 0 && running.count > limit && !running.isSubset(of: grandfathered)
        forbid(.overLimit, "\(running.sorted()) run, and \(limit) may", when: isOver)
        openJobs.removeAll(where: \.isFinished)
        for job in openJobs { check(job, queue) }
        checkedAt = loop.now
    }

    private func takesSlot(_ job: Int) -> Bool { !jobs[job].isGroup && !jobs[job].plan.joins }

    private func check(_ job: Job, _ queue: NetworkQueue) {
        guard let operation = job.operation else { return }
        let (now, last, isSlow) = (loop.now, job.messages.last, history.settings.isSlow)
        let isUndecided = job.network?.hasOutcome == false
        let isUndecidedRequest = isUndecided && job.isOwnCall && job.plan.kind != .older
        func isPast(_ start: Double?, _ seconds: Double?, by slack: Double = 0) -> Bool {
            now > (start ?? .infinity) + (seconds ?? .infinity) + slack
        }
        forbid(.deadlinePassed, job, when: isUndecided && isPast(job.addedAt, job.deadline, by: 0.01))
        forbid(.cancelTakesLong, job, when: isUndecided && isPast(job.cancelledAt, 1) && !isSlow)
        let first = job.messages.first?.sentAt
        forbid(.deadlinePassed, job, when: isUndecidedRequest && isPast(first, job.plan.timeout, by: 0.01))
        if job.plan.kind == .batch, case let limit = childLimit(of: job), limit > 0 {
            let count = job.plan.children.count { hadSlots.contains($0) && !jobs[$0].plan.joins }
            forbid(.overLimit, "\(count) children of \(job)", when: count > limit)
        }
        guard job.dependencies.allSatisfy(\.isFinished) else { return }
        let (reasons, hasSlot) = (queue.explain(operation), hadSlots.contains(job.number))
        forbid(.slotUnused, job, when: reasons == [.turn])
        let isUnderWay = job.messages.contains(where: \.isUnderWay)
        let lastEnd = isUnderWay ? nil : job.messages.compactMap(\.endedAt).max()
        forbid(.slotHeldInVain, job, when: hasSlot && (job.isOwnCall || job.plan.kind == .pair) && isPast(lastEnd, 1))
        let isServed = job.messages.contains { $0.isUnderWay && !$0.isCancelled } && job.plan.caching == .none
        forbid(.runsWithoutSlot, job, when: isUndecidedRequest && isServed && !hasSlot)
        let waits = if case .limit? = reasons.first { reasons.count == 1 && !queue.isSuspended } else { false }
        job.waitsForSlotSince = waits ? job.waitsForSlotSince ?? now : nil
        if let since = job.waitsForSlotSince { checkOrder(job, since) }
        guard hasDownloads else { return }
        let canGoOn = isResumable(job)
        let isPaused = isPast(job.pausedAt, 1) && job.plan.kind == .download
        forbid(.pausedWithSlot, job, when: isPaused && last != nil && hasSlot && !isSlow)
        let hasYielded = reasons == [.slotYielded]
        forbid(.yieldedWithoutResume, job, when: hasYielded && !canGoOn && job.messages.contains(where: \.isUnderWay))
        if let since = job.waitsForSlotSince, limit > 0, !isSlow { checkUrgency(job, since) }
        if reasons != [.running] { job.receivesSince = nil }
        guard hasYielded, job.plan.tags.isEmpty, !hasLimitedHosts else { return job.absence = nil }
        let absence = job.absence ?? (now, .max)
        job.absence = absence
        if now < absence.since + 5 {
            // After four seconds it has the next slot but one, and others that have been absent for longer go first. Of
            // these a last part may have come a little later.
            let absentCount = openJobs.count { $0.absence.map { $0.since <= absence.since + 1 } ?? false }
            job.absence?.mostGrants = grantCount + 2 * absentCount + 1
        } else if grantCount > absence.mostGrants {
            violate(.yieldedForGood, "\(job)")
        }
    }

    /// An urgent job that waits for a slot, and a download that has had one for long.
    private func checkUrgency(_ job: Job, _ since: Double) {
        let start = loop.now - 2.5
        // The time from which a rate would let a job start. While jobs start all the time, the law says nothing.
        let mayStartAt = history.settings.rate.map { startedAt + 1 / Double($0) } ?? -.infinity
        // The jobs of the loader have slots, too.
        guard max(since, limitChangedAt, mayStartAt) < start, hadSlots.count == limit, barriers.isEmpty,
            !hasDone("load")
        else { return }
        for other in openJobs where other.priority < min(job.priority, 0) && isResumable(other) && isAlone(other) {
            // Once it had to start over, it does not rely on ranges.
            let hasAskedForRest = other.messages.contains { $0.headers["Range"] != nil }
            let mayYield = !hasAskedForRest || other.messages.last?.status == 206
            let hasRunLong = other.receivesSince ?? .infinity < start
            forbid(.urgentWaits, "\(job), while \(other) runs", when: hasRunLong && mayYield)
        }
    }

    /// A job that waits for nothing but one of all slots goes before those of lower priority, and later ones.
    private func checkOrder(_ job: Job, _ since: Double) {
        guard isPlainJob(job), job.plan.tags.isEmpty, !hasLimitedHosts, history.settings.rate == nil,
            !job.isRunning, since < loop.now, barriers.isEmpty
        else { return }
        let other = newlyRunning.first { other in
            // One that comes back goes earlier.
            guard isPlainJob(other), other.plan.kind != .download, !other.plan.joins else { return false }
            if other.priority != job.priority {
                return other.priority < job.priority && other.priorityChangedAt < loop.now
            }
            return other.readyAt.map { $0 > since } == true && other.plan.tags.isEmpty
                && other.priorityChangedAt < 0 && other.dependents.isEmpty && job.dependents.isEmpty
        }
        if let other { violate(.wrongOrder, "\(job), waits, and \(other) has started") }
    }

    /// Whether its own priority has counted alone since the last check.
    private func isAlone(_ job: Job) -> Bool { !job.isAwaited(at: checkedAt) && job.groups.isEmpty }

    /// Whether nothing but its own priority, and a slot, decides when it starts.
    private func isPlainJob(_ job: Job) -> Bool { !job.isGroup && job.plan.condition == nil && isAlone(job) }

    /// The resource and the one that it redirects to.
    private func places(_ resource: Int) -> [Int] {
        let resources = history.settings.resources
        return resources[resource].redirect == nil ? [resource] : [resource, (resource + 1) % resources.count]
    }

    /// Whether a download can go on where it stopped.
    private func isResumable(_ job: Job) -> Bool {
        guard job.plan.kind == .download, !job.plan.hasKey else { return false }
        // A redirect by a fault leads to the resource itself.
        let target = job.messages.last(where: \.isRedirected)?.resource ?? places(job.plan.resource).last
        return target.map { history.settings.resources[$0] }.map { $0.hasStrongTag && $0.servesRanges } ?? false
    }

    func checkEnd(of job: Job) {
        if let error = job.network?.error {
            guard let problem = problem(of: job, error) else { return }
            return violate(.failedWithoutReason, "\(job): \(error.code): \(error.message ?? ""): \(problem)")
        }
        if job.plan.kind == .download {
            let found = FileManager.default.contents(atPath: file(of: job))
            // Another one may have taken the place by now.
            let others = jobs.filter {
                $0.plan.sharesFile && $0.network?.hasOutcome == true && $0.network?.error == nil
            }
            let readers = [job] + (job.plan.sharesFile ? others : [])
            let isWhole = readers.contains { reader in
                places(reader.plan.resource).contains { place in
                    let versions = reader.oldestVersions[place]...server.versions[place]
                    return versions.contains { server.bytes(of: place, version: $0) == found }
                }
            }
            forbid(.incompleteFile, "\(job), \(found?.count ?? -1) bytes", when: !isWhole)
        } else if case .success(let answer?) = job.result {
            let caching = job.plan.caching
            let isOwn = job.source == .network && !job.plan.joins && caching == .none
            forbid(.responseOfAnotherRequest, "\(job), of \(answer.job)", when: isOwn && answer.job != job.number)
            // A policy of its own does not tell users apart.
            let tellsUsers = caching == .none || caching == .http
            check(answer, of: job.plan.resource, since: tellsUsers ? job.addedStep : 0, "job \(job.number)", job)
            if caching == .http, !job.plan.joins { checkCaching(answer, of: job) }
        }
    }

    /// Whether the rules of HTTP allow an answer.
    private func checkCaching(_ answer: Answer, of job: Job) {
        let (message, settings) = (messages[answer.message], history.settings)
        guard let document = message.document else { return }
        let resource = settings.resources[message.resource]
        let isAnother = resource.variesBy == "Accept-Language" && message.language != job.plan.language
        forbid(.responseOfAnotherRequest, "\(job), in another language", when: isAnother)
        let isOutdated = messages.contains { change in
            guard change.hasActed, change.address == message.address, let version = change.document?.version,
                let writer = change.job.map({ jobs[$0] }), writer.network?.error == nil, let end = writer.endedAt
            else { return false }
            return version > document.version && end < job.addedAt && isOther(writer.plan) == isOther(job.plan)
        }
        forbid(.staleResponse, "\(job), after a change", when: isOutdated)
        if job.source == .revalidated, let last = job.messages.last {
            forbid(.confirmedAnother, job, when: last.document?.tag != document.tag)
            let age = loop.now - last.sentAt + Double(resource.age) + 1
            forbid(.staleResponse, "\(job), age \(job.age ?? 0)", when: job.age ?? 0 > age)
        }
        guard job.source == .cache, let age = age(of: answer), age > Double(resource.maximumAge ?? 0),
            resource.directive?.hasPrefix("stale-while") == true
        else { return }
        after(8) { [self, now = loop.now] in
            let isAsked = messages.contains { other in
                // A refresh that has failed may wait for its next try, until the timeout of its job.
                let job = other.job.map { jobs[$0] }
                let timeout = other.hasFailed && job?.source == .cache ? job?.plan.timeout : nil
                let end = timeout.map { other.sentAt + $0 } ?? other.endedAt ?? .infinity
                return other.address == message.address && end >= now
            }
            let mayWait = settings.circuit != .none || settings.hasReachability
            forbid(.notRefreshed, message.address, when: !isAsked && !mayWait)
        }
    }

    /// Seconds since the server has last made or confirmed an answer of a cache, which may not be too old for it.
    @discardableResult
    func age(of answer: Answer) -> Double? {
        let (message, settings) = (messages[answer.message], history.settings)
        guard !hasDone("clock"), !settings.isSlow else { return nil }
        let resource = settings.resources[message.resource]
        let dates = messages.compactMap { other in
            let isSame = other.address == message.address && other.document?.tag == message.document?.tag
            return isSame && [200, 304].contains(other.status) && other.endedAt != nil ? other.document?.madeAt : nil
        }
        let age = loop.now - (dates.max() ?? 0)
        let window = resource.directive?.split(separator: "=").last.flatMap { Double($0) } ?? 0
        let isTooOld = resource.directive == "no-store" || age > Double(resource.maximumAge ?? 0) + window
        forbid(.staleResponse, "\(answer.path), after \(age) s", when: isTooOld)
        return age
    }

    /// Whether an answer is for a resource, and a user who was signed in since a step.
    func check(_ answer: Answer, of resource: Int, since step: Int, _ reader: String, _ job: Job? = nil) {
        let isKnownPlace = places(resource).contains { answer.path.hasSuffix("/\($0)") }
        forbid(.responseOfAnotherRequest, "\(reader) got \(answer.path)", when: !isKnownPlace)
        // A cache of one user keeps what it has until the next sign-in.
        let first = history.settings.hasPartitions ? 0 : signedIn.lastIndex { $0.step <= step } ?? 0
        let isOther = job.map { self.isOther($0.plan) } ?? false
        let isKnown = isOther ? answer.user == Self.otherUser : signedIn[first...].contains { $0.user == answer.user }
        forbid(.responseOfAnotherUser, "\(reader) got that of user \(answer.user)", when: answer.user >= 0 && !isKnown)
    }

    /// Why the job must not have failed like this; nil if it may.
    private func problem(of job: Job, _ error: NetworkError) -> String? {
        let (settings, last) = (history.settings, job.messages.last)
        let isShared = job.plan.joins || job.isGroup || job.plan.kind == .pair
        let isRefused = if case .cutRefusal = last.flatMap(fault) { last?.error == .connectionLost } else { false }
        switch error.code {
        case .cancelled: return mayBeCancelled(job) ? nil : "nobody has cancelled it"
        case .dependencyFailed:
            let others = job.dependencies + job.plan.children.map { jobs[$0] }
            return job.isChild || others.contains(where: \.hasFailed) ? nil : "its dependencies have succeeded"
        case .timedOut: return timeProblem(job, error)
        case .cycle:
            let mayBe = hasDone("release") || !barriers.isEmpty || waitsForItself(job)
            return mayBe ? nil : "it does not wait for itself"
        case .cannotSendAgain: return nil
        case .redirectFailed: return settings.resources.contains { $0.redirect?.isEndless == true } ? nil : "no circle"
        case .cannotParseResponse:
            forbid(.fieldCountedTwice, job, when: settings.resources.contains(where: \.repeatsType))
            return isShared ? nil : "no reason"
        case .connectionLost where isRefused && job.plan.kind != .pair: return "the head decides"
        case _ where isShared: return nil
        case .connectionLost where mayRetry(job), .cannotConnect where mayRetry(job): return "it has retries left"
        case .connectionLost, .cannotConnect: return last?.error == nil ? "its last message was answered" : nil
        case .unacceptableStatus:
            let status = job.messages.last { $0.status != nil }?.status ?? 200
            return (200..<300).contains(status) ? "its last status was good" : nil
        case .unauthorized:
            if settings.isSlow { return nil }
            let account = refreshes.filter { ($0.credential?.epoch ?? 0 < 0) == isOther(job.plan) }
            let isLimited = error.message?.contains("times within") == true
            if isLimited, account.count(where: { $0.beganAt > loop.now - 31 }) < 5 { return "few refreshes have begun" }
            let hasFailed = account.contains { $0.endedAt ?? .infinity >= job.addedAt }
            let isRefused = messages.contains { $0.status == 401 && $0.endedAt ?? .infinity >= job.addedAt }
            return hasFailed || isRefused ? nil : "it was authorized"
        case .circuitOpen:
            guard settings.circuit == .fails else { return "there is no circuit" }
            // A trial that has gone on for long shows that the server is there.
            let isTried = trials(job.plan.host).contains { $0.sentAt < loop.now - 6 }
            forbid(.circuitStaysOpen, job, when: isTried)
            return nil
        case .refused: return job.plan.condition == 2 || job.plan.sharesFile ? nil : "its condition holds"
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

    /// Whether a retry repeats nothing, and is left.
    private func mayRetry(_ job: Job) -> Bool {
        let isLeft = job.messages.count <= job.plan.retries && history.settings.circuit == .none
        let isUnprocessed = job.messages.map(fault).allSatisfy { fault in
            if case .reject = fault { true } else if case .refuse = fault { true } else { false }
        }
        let isSafe = job.plan.kind == .get || job.plan.kind == .download && !job.plan.hasKey
        return isLeft && (isSafe || job.plan.kind == .post && isUnprocessed)
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
        guard let message = error.message, message.hasPrefix("the deadline of "),
            let seconds = Double(message.dropFirst(16).prefix { $0 != " " })
        else {
            return !history.faults.isEmpty || job.plan.timeout != nil || job.plan.joins || job.isGroup
                || history.settings.isSlow ? nil : "nothing has stalled"
        }
        if job.isChild { return nil }
        guard let deadline = job.deadline, abs(deadline - seconds) <= 0.006 * max(1, seconds) else {
            forbid(.wrongDeadlineNamed, "\(job), \(seconds) s", when: !job.isGroup)
            return nil
        }
        return loop.now >= job.addedAt + deadline ? nil : "it is early"
    }

    func checkEnd() {
        guard let queue else { return }
        for job in jobs {
            guard let operation = job.operation else { continue }
            guard operation.isFinished else { return violate(.neverEnds, "\(job): \(queue.explain(operation))") }
            forbid(.executedTwice, job, when: job.executionCount > 1)
            // A cancel may keep one of Foundation's from its work.
            let mayCall = job.isForeign ? 0...1 : job.hasCallback ? 1...1 : 0...0
            forbid(.calledBackTwice, "\(job), \(job.callbackCount) times", when: !mayCall.contains(job.callbackCount))
            if job.isForeign { continue }
            forbid(.endedTwice, "\(job), \(job.completionCount) times", when: job.completionCount != 1)
            forbid(.waiterLost, job, when: job.plan.isAwaited && job.awaitedCount != 1)
            guard !job.isChild, job.isOwnCall else { continue }
            let free = job.messages.count { [401, 301, 302, 303, 307, 308, 304].contains($0.status) }
            let background = job.plan.caching == .none ? 0 : 4
            let paidCount = job.messages.count - free - background
            forbid(.tooManyRetries, "\(job), \(paidCount) messages", when: paidCount > 1 + job.plan.retries)
            forbid(.unsafeRequestTwice, job, when: job.messages.count(where: \.hasActed) > 1)
        }
        loads?.checkEnd()
        WorkQueue.task { [self, cache] in
            let entries = await cache?.entries.filter { $0.headers["Cache-Control"]?.contains("no-store") == true }
            forbid(.storedInSpite, "no-store", when: entries?.contains { $0.key.hasPrefix("HTTP") } == true)
        }
        for message in messages where message.isUnderWay {
            guard let job = message.job.map({ jobs[$0] }), job.source != .cache else { continue }
            forbid(.messageLeft, message, when: job.endedAt ?? .infinity < loop.now - 1)
        }
        let text = queue.description
        let isEmpty = queue.operationCount == 0 && (text.contains(" 0 of ") || text.contains(" 0 slots"))
        forbid(.countsLeft, text, when: !isEmpty)
    }
}
