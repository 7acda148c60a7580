import EasyNetwork
import Foundation

/// An attempt to send an entry: whether it can be sent now, its job, and what the job's end means.
extension Outbox {
    /// The bounds of the delay after a failure, and the longest `Retry-After` that is respected, in seconds.
    private static let delays = RetryPolicy(
        maximumRetryCount: .max,
        baseDelay: 2,
        maximumDelay: 600,
        maximumRetryAfter: 86_400
    )

    func send(_ name: OutboxName) {
        let (request, operation): (any APIRequest, ServiceOperation)
        // The wait is counted from before the date is read on which it depends, so that it does not end late.
        let begin = clock.now
        do throws(NetworkError) {
            let record = try folder.read(name)
            guard name.isInOrder else {
                let message = "the entry's sequence number \(name.sequence) is damaged"
                throw NetworkError(code: .cannotParseResponse, message: message)
            }
            if let wait = wait(of: name, record) { return postpone(name, wait, at: begin, record.options?.conditions) }
            (request, operation) = try job(for: name, record)
        } catch {
            // `.timedOut` is thrown here only for an entry older than the maximum age, which is final.
            return ended(name, error, isFinal: error.code == .timedOut || Self.isFinal(error))
        }
        operation.queuePriority = name.priority.operationPriority
        let isWanted = state.withLock { state in
            guard state.logic.wants(name.id) else { return false }
            state.entries[name.id, default: Entry()].phase = .sending(operation, request)
            return true
        }
        guard isWanted else { return ended(name, NetworkError(code: .cancelled), isFinal: false) }
        operation.whenFinished { [weak operation] in
            // The queue keeps the operation alive while it runs.
            let error = operation.map { $0.error } ?? NetworkError(code: .cancelled)
            WorkQueue.shared.add { self.ended(name, error, isFinal: error.map(Self.isFinal) ?? false) }
        }
        queue.addOperation(operation)
    }

    /// Returns why an entry is not sent now, or `nil` if it is. Records the start of an attempt.
    private func wait(of name: OutboxName, _ record: OutboxRecord) -> OutboxIndex.Wait? {
        let (options, now) = (record.options ?? OutboxOptions(), clock.date)
        if let due = record.due(at: now), due > now {
            state.withLock { $0.entries[name.id, default: Entry()].options = options }
            return OutboxIndex.Wait(delay: min(due.timeIntervalSince(now), Self.longWait), reason: .early, isFirm: true)
        }
        let isNew = state.withLock { $0.entries[name.id]?.triedAt == nil }
        let tries = isNew ? folder.tries(of: name.id) : nil
        let count = state.withLock { state in
            var entry = state.entries[name.id] ?? Entry()
            if let tries { (entry.attemptCount, entry.error) = (tries.count, tries.failure.error) }
            (entry.options, entry.triedAt) = (options, now)
            state.entries[name.id] = entry
            return entry.attemptCount
        }
        // An earlier process has stored this failure.
        if let delay = tries?.wait(at: now), delay > 0 {
            return OutboxIndex.Wait(delay: delay, reason: .oldFailure, leavesLane: count >= options.yieldsAfter ?? .max)
        }
        guard let conditions = options.conditions, !areMet(conditions) else { return nil }
        return OutboxIndex.Wait(delay: Self.longInterval, reason: .early)
    }

    private func postpone(
        _ name: OutboxName,
        _ wait: OutboxIndex.Wait,
        at begin: TimeInterval,
        _ conditions: Set<OutboxOptions.Condition>?
    ) {
        if conditions != nil { observe(network) }
        post(.ended(name.id, .postponed(wait)), at: begin)
        // The network may have changed before it was observed.
        if let conditions, wait.reason == .early, !wait.isFirm, areMet(conditions) {
            post(.retryRequested(name.id))
        }
    }

    /// The host's reachability. Without it, the system's network is observed once an entry has conditions.
    var network: NetworkReachability { service.configuration.settings.reachability ?? .system }

    private func areMet(_ conditions: Set<OutboxOptions.Condition>) -> Bool {
        let network = network
        return conditions.allSatisfy { condition in
            switch condition {
            case .reachable: network.status != .unreachable
            case .unmetered: network.status != .unreachable && !network.isExpensive
            case .unconstrained: network.status != .unreachable && !network.isConstrained
            }
        }
    }

    private func job(
        for name: OutboxName,
        _ record: OutboxRecord
    ) throws(NetworkError) -> (any APIRequest, ServiceOperation) {
        if record.isOlder(than: maximumAge, at: clock.date) {
            throw NetworkError(
                code: .timedOut,
                message: "the entry was not delivered within \(maximumAge) seconds, its maximum age"
            )
        }
        // An entry of a later period depends on the entry before it, which has no output for it.
        let after = record.after.filter { Self.id(after: $0) != name.id }
        let inputs = after.isEmpty ? [] : try folder.outputs(of: after)
        let request = try request(in: record, of: name.type, inputs: inputs)
        var options = request.options
        options.setKey(name.id.uuidString)
        // Two entries can have the same request, and both must be delivered.
        options.repeatPolicy = .allow
        if record.fileCount > 0, let body = try RequestBuilder.body(of: request.body) {
            let files = try folder.attachments(of: body, name)
            if !files.isEmpty { options.body = body.placed { url in files[url.path] ?? url } }
        }
        return (request, operation(request, options, name))
    }

    private func operation<Request: APIRequest>(
        _ request: Request,
        _ options: RequestOptions,
        _ name: OutboxName
    ) -> ServiceOperation {
        let willSend: @Sendable () -> Bool = { [weak self] in
            guard let self else { return true }
            // Another process may have removed the entry while the job waited for its slot.
            guard folder.has(name), !isOvertaken(name.id) else { return false }
            tell(.sending(name.id))
            return true
        }
        if options.resuming != nil {
            var options = options
            options.resuming?.journal = URL(fileURLWithPath: folder.upload(name.id))
            let upload = UploadOperation(request, options, of: service)
            upload.isWanted = willSend
            return upload
        }
        let operation = EntryOperation(request, options, of: service)
        operation.willSend = willSend
        // A response from the cache would mean that the request has not reached the server.
        operation.ignoresCache = true
        return operation
    }

    private func isOvertaken(_ id: UUID) -> Bool { state.withLock { $0.logic.index.isOvertaken(id) } }

    /// - Parameter inputs: the outputs of the entry's dependencies. Defaults to `nil`: the request as it was added.
    func request(
        in record: OutboxRecord,
        of type: String,
        inputs: [Data?]? = nil
    ) throws(NetworkError) -> any APIRequest {
        guard let registered = state.withLock({ $0.types[type] }) else {
            let message = "no type is registered as \"\(type)\"; register it before start()"
            throw NetworkError(code: .invalidRequest, message: message)
        }
        do {
            return try WorkQueue.userCode { try registered.decode(record.request, record.version, inputs) }
        } catch {
            // A `NetworkError` of `prepare` keeps its own message.
            let message = (error as? NetworkError)?.message ?? "the entry cannot be decoded: \(error)"
            throw NetworkError(code: .invalidRequest, message: message, underlying: error)
        }
    }

    private func ended(_ name: OutboxName, _ error: NetworkError?, isFinal: Bool) {
        let (phase, deliver) = state.withLock { state in
            (exchange(&state.entries[name.id, default: Entry()].phase, with: .waiting), state.types[name.type]?.deliver)
        }
        guard let error else {
            guard case .sending(let job, let request) = phase, let deliver else {
                return post(.ended(name.id, .verdict(.delivered)))
            }
            WorkQueue.task {
                let output = await deliver(request, job)
                WorkQueue.shared.add {
                    if let output { self.state.withLock { $0.entries[name.id]?.phase = .delivered(output) } }
                    self.post(.ended(name.id, .verdict(.delivered)))
                }
            }
            return
        }
        withExtendedLifetime(phase) {}
        // A response that cannot be decoded is still a response: the server has accepted the request.
        if error.code == .cannotParseResponse, 200..<300 ~= error.statusCode ?? 0 {
            return post(.ended(name.id, .verdict(.delivered)))
        }
        if error.code == .cancelled, !folder.has(name) {
            withExtendedLifetime(state.withLock { $0.entries.removeValue(forKey: name.id) }) {}
            // The upload can have begun its journal after the entry had left.
            folder.discardUpload(of: name)
            return post(.ended(name.id, .gone))
        }
        if error.code == .cancelled, isOvertaken(name.id) { return post(.ended(name.id, .overtaken)) }
        let entry = state.withLock { $0.entries[name.id] } ?? Entry()
        // A cancellation by the queue, or by its end, is not a failure.
        let isLast =
            ![.cancelled, .refused, .circuitOpen].contains(error.code)
            && entry.attemptCount + 1 >= entry.options.maximumAttemptCount ?? .max
        guard !isFinal, !isLast else {
            state.withLock { $0.entries[name.id, default: Entry()].phase = .dead(error) }
            return post(.ended(name.id, .verdict(.dead)))
        }
        let wait = OutboxIndex.Wait(
            delay: delay(of: name.id, after: error),
            isFirm: asked(error) > 0,
            leavesLane: entry.attemptCount + 1 >= entry.options.yieldsAfter ?? .max
        )
        post(.ended(name.id, .postponed(wait)), after: error)
    }

    /// Returns the delay in seconds that the server has requested, or 0.
    private func asked(_ error: NetworkError) -> TimeInterval {
        min(RetryPolicy.retryAfter(error.headers, now: clock.date) ?? 0, Self.delays.maximumRetryAfter)
    }

    func delay(of id: UUID, after error: NetworkError) -> TimeInterval {
        let entry = state.withLock { $0.entries[id] } ?? Entry()
        var delays = Self.delays
        if let bounds = entry.options.retryDelays {
            (delays.baseDelay, delays.maximumDelay) = (bounds.lowerBound, bounds.upperBound)
        }
        let random = service.configuration.settings.random()
        return max(delays.backoff.delay(after: entry.attemptCount, random: random), asked(error))
    }

    func tellFailure(_ id: UUID, _ error: NetworkError, _ delay: TimeInterval) {
        let (tries, old) = state.withLock { state in
            var entry = state.entries[id] ?? Entry()
            // A cancellation by the queue, or by its end, is not a failure.
            if ![.cancelled, .refused, .circuitOpen].contains(error.code) { entry.attemptCount += 1 }
            let old = exchange(&entry.error, with: error)
            state.entries[id] = entry
            return (entry.attemptCount, old)
        }
        // The old error is released outside the lock, because it can contain user objects.
        withExtendedLifetime(old) {}
        folder.note(
            OutboxTries(count: tries, next: clock.date + delay, delay: delay, failure: OutboxFailure(error)),
            of: id
        )
        // Another process may have removed the entry before this was written.
        if let name = state.withLock({ $0.logic.index.name(of: id) }), !folder.has(name) { folder.forgetTries(of: id) }
        // A listener can advance its clock by the delay as soon as it gets the event.
        schedule()
        tell(.failed(id, error, retryDelay: delay))
    }

    /// Posts how an entry ended, before the next entry of its lane is sent.
    func tellEnd(_ id: UUID, _ verdict: OutboxState.Verdict) {
        let entry = state.withLock { $0.entries.removeValue(forKey: id) }
        switch verdict {
        case .delivered: tell(.delivered(id), entry?.options)
        case .dead: tell(.died(id, Self.reason(entry?.phase)), entry?.options)
        }
    }

    /// Why an entry is a dead letter.
    static func reason(_ phase: Entry.Phase?) -> NetworkError {
        if case .dead(let error) = phase { error } else { NetworkError(code: .refused) }
    }

    /// Returns whether the same request would fail again.
    static func isFinal(_ error: NetworkError) -> Bool {
        switch error.code {
        case .unacceptableStatus:
            guard let status = error.statusCode else { return true }
            return status < 500 && !delays.statusCodes.contains(status)
        case .invalidRequest, .cannotParseResponse, .redirectFailed, .cannotSendAgain, .bodyTooLong, .dependencyFailed,
            .notCached:
            return true
        default: return error.code.rawValue >= 10_000
        }
    }

    static func dependencyFailed(_ id: UUID, _ error: NetworkError?) -> NetworkError {
        let reason = error.map { ": \($0.message ?? $0.code.summary)" } ?? ""
        let message = "the entry \(id), which must be delivered first, has failed\(reason)"
        return NetworkError(code: .dependencyFailed, message: message)
    }
}

/// The job of an entry. It checks whether the entry may still be sent.
private final class EntryOperation<Request: APIRequest>: RequestOperation<Request>, @unchecked Sendable {
    // Sendable because its property is written before it is added to a queue.
    var willSend: (@Sendable () -> Bool)?

    override func execute() {
        guard willSend?() ?? true else {
            return finish(NetworkError(code: .cancelled, message: "the entry has left, or an older one comes first"))
        }
        super.execute()
    }
}
