import Dispatch
import EasyNetwork
import Foundation

/// A job, and what is known of it from outside.
final class Job: @unchecked Sendable {
    // Sendable because one thread uses it.
    let plan: History.Job
    var operation: Operation?
    /// The children of a group, and theirs; the groups that it is in; and what it waits for.
    var (members, groups, dependencies): ([Job], [Job], [Job]) = ([], [], [])
    /// The jobs that wait for it, whose priority it has as well until they end.
    var dependents: [Job] = []

    var (isAdded, isChild, addedAt, addedStep) = (false, false, 0.0, 0)
    /// Those of the resources when it was added.
    var oldestVersions: [Int] = []
    var endedAt: Double?
    var (callbackCount, completionCount, executionCount, awaitedCount) = (0, 0, 0, 0)
    var result: Result<Answer?, NetworkError>?
    /// Where the answer came from, and its age by itself.
    var (source, age): (NetworkResponse.Source?, Double?)
    /// Only a pair has calls.
    var (messages, calls): ([Message], [Task<Void, Never>]) = ([], [])
    /// Whether a cancel may have ended it, and when one has returned.
    var (mayBeCancelled, cancelledAt): (Bool, Double?) = (false, nil)
    /// The ones in force.
    var priority: Int
    var deadline: Double?
    var priorityChangedAt = -Double.infinity
    /// Since when it waits for nothing but one of all slots, and since when it waited for its first.
    var (waitsForSlotSince, readyAt): (Double?, Double?)
    /// Since when it is paused, and since when it runs and receives its body.
    var pausedAt, receivesSince: Double?
    /// Since when its slot is another one's, and how many slots had been given then.
    var absence: (since: Double, mostGrants: Int)?

    init(_ plan: History.Job) { (self.plan, priority) = (plan, plan.priority) }

    var number: Int { plan.number }
    var network: NetworkOperation? { operation as? NetworkOperation }
    var isGroup: Bool { plan.kind == .batch || plan.kind == .chain }
    var isForeign: Bool { plan.kind == .foreign }
    func isAwaited(at now: Double) -> Bool { dependents.contains { $0.endedAt.map { $0 >= now } ?? true } }
    var hasCallback: Bool { ![.plain, .stream, .events, .pair].contains(plan.kind) }
    var isFinished: Bool { operation?.isFinished ?? true }
    var hasFailed: Bool { network?.error != nil || operation?.isCancelled == true }
    /// Whether it may have started to work.
    var isRunning: Bool { operation?.isExecuting == true }
    var hasStarted: Bool { executionCount > 0 || !messages.isEmpty || isRunning || isFinished }
}

private final class PlainOperation: NetworkOperation, @unchecked Sendable {
    // Sendable because nothing changes.
    private let work: @Sendable (PlainOperation) -> Void

    init(_ work: @escaping @Sendable (PlainOperation) -> Void) { self.work = work }

    override func execute() { work(self) }
    override func cancel() { beInterrupted { super.cancel() } }
}

private final class OwnOperation: RequestOperation<SimulatedRequest>, @unchecked Sendable {
    // Sendable because nothing changes.
    override func cancel() { beInterrupted { super.cancel() } }
}

extension NetworkOperation {
    /// Lets other threads continue when a running job has been cancelled.
    fileprivate func beInterrupted(after cancel: () -> Void) {
        guard isExecuting, let loop = WorkQueue.loop as? Loop else { return cancel() }
        loop.willCancel()
        cancel()
        loop.interrupt(surely: true)
    }
}

/// Works in `execute()`, or, the older way, in `start()`.
private final class CallOperation: ServiceOperation, @unchecked Sendable {
    // Sendable because nothing changes.
    private let isOlder: Bool
    private let work: @Sendable (CallOperation) -> Void

    init(_ service: EasyNetworkService, isOlder: Bool = false, _ work: @escaping @Sendable (CallOperation) -> Void) {
        (self.isOlder, self.work) = (isOlder, work)
        super.init(service: service)
    }

    override func start() {
        super.start()
        if isOlder { work(self) }
    }

    override func execute() { if !isOlder { work(self) } }

    override func cancel() { beInterrupted { super.cancel() } }
}

extension World {
    func makeJobs(_ services: [EasyNetworkService]) {
        for job in jobs where !job.plan.isRemoved {
            let service = services[job.plan.host == 0 && isOther(job.plan) ? 2 : job.plan.host]
            let operation = makeOperation(job, service)
            operation.name = "job \(job.number)"
            operation.queuePriority = Self.priority(job.priority)
            job.operation = operation
            jobsByOperation[ObjectIdentifier(operation)] = job
            job.members = job.plan.children.flatMap { [jobs[$0]] + jobs[$0].members }
            for member in job.members { member.groups.append(job) }
            for other in job.plan.after { addDependency(jobs[other], of: job) }
            if let operation = operation as? NetworkOperation { finishMaking(operation, job) }
        }
        for job in jobs where !job.plan.isRemoved && job.groups.isEmpty { after(job.plan.at) { self.add(job) } }
    }

    func addDependency(_ other: Job, of job: Job) {
        guard let dependency = other.operation, let operation = job.operation else { return }
        job.dependencies.append(other)
        other.dependents.append(job)
        guard let network = job.network else { return operation.addDependency(dependency) }
        network.addDependency(dependency, policy: job.plan.allowsFailure ? .allowFailure : .requireSuccess)
    }

    private func add(_ job: Job) {
        guard let queue, let operation = job.operation else { return }
        log("user: adds job \(job.number), \(job.plan.kind)")
        let all = [job] + job.members
        for added in all {
            (added.isAdded, added.isChild) = (true, added !== job)
            (added.addedAt, added.addedStep, added.oldestVersions) = (loop.now, loop.stepCount, server.versions)
        }
        openJobs += all
        job.deadline = job.network?.deadline
        queue.addOperation(operation)
        for added in all where added.plan.isAwaited {
            WorkQueue.task { [weak operation = added.network] in
                try? await operation?.finished()
                added.awaitedCount += 1
            }
        }
    }

    private func finishMaking(_ operation: NetworkOperation, _ job: Job) {
        operation.tags = Set(job.plan.tags.map { "t\($0)" })
        operation.deadline = job.plan.deadline
        if job.plan.hasOwnQueue {
            let queue = DispatchQueue(label: "callbacks")
            (operation as? ServiceOperation)?.callbackQueue = queue
            (operation as? GroupOperation)?.callbackQueue = queue
        }
        operation.completionBlock = { [unowned self] in
            job.completionCount += 1
            loop.interrupt()
        }
        operation.whenFinished { [unowned self] in
            job.endedAt = loop.now
            checkEnd(of: job)
        }
        let observe: @Sendable (NetworkOperation) -> Void = { [unowned self] _ in loop.interrupt() }
        if job.plan.hasAccessory { operation.addAccessory(willStart: observe, didStop: observe) }
        if let kind = job.plan.condition {
            let condition = OperationCondition("c\(kind)") { [unowned self] _ in
                if kind > 0 { await withCheckedContinuation { next in after(1) { next.resume() } } }
                return kind < 2
            }
            operation.addCondition(condition)
        }
    }

    private func makeOperation(_ job: Job, _ service: EasyNetworkService) -> Operation {
        let plan = job.plan
        let request = request(plan)
        switch plan.kind {
        case .get, .post, .upload:
            let first = plan.after.first.map { jobs[$0] }
            let isPrepared =
                plan.isPrepared && !plan.allowsFailure && plan.host == first?.plan.host
                && first.map { isOther($0.plan) } == isOther(plan)
            let source = isPrepared ? first?.operation as? RequestOperation<SimulatedRequest> : nil
            let operation =
                plan.kind == .upload
                ? UploadOperation(request, service: service)
                : source.map { $0.then { _ in request } }
                    ?? (plan.isOfOwnClass
                        ? OwnOperation(request, service: service) : RequestOperation(request, service: service))
            operation.successWithResponse = { [unowned self] answer, response in
                (job.source, job.age) = (response.source, response.headers["Age"].flatMap { Double($0) })
                told(job, .success(answer))
            }
            operation.failure = { [unowned self] in told(job, .failure($0)) }
            return operation
        case .download:
            let file = URL(fileURLWithPath: file(of: job))
            let download = DownloadOperation(request, to: file, service: service)
            download.success = { [unowned self] _ in told(job, .success(nil)) }
            download.failure = { [unowned self] in told(job, .failure($0)) }
            return download
        case .older:
            return CallOperation(service, isOlder: true) { [unowned self] operation in
                let success: @Sendable (Any?, NetworkResponse) -> Void = { [unowned self] _, response in
                    (job.source, job.age) = (response.source, response.headers["Age"].flatMap { Double($0) })
                    let result = Result { try response.decode(Answer.self) as Answer? }
                    told(job, result.mapError { _ in NetworkError(code: .cannotParseResponse) })
                    operation.finish()
                }
                operation.service.request(request, successWithResponse: success) { [unowned self] error in
                    told(job, .failure(error))
                    operation.finish(error)
                }
            }
        case .stream, .events:
            return CallOperation(service) { operation in
                WorkQueue.task {
                    do {
                        if plan.kind == .events {
                            for try await _ in operation.service.events(request) { break }
                        } else {
                            for try await _ in try await operation.service.stream(request) {}
                        }
                        operation.finish()
                    } catch {
                        operation.finish(error as? NetworkError ?? NetworkError(code: .cancelled))
                    }
                }
            }
        case .pair:
            return CallOperation(service) { operation in
                job.calls = (0..<2).map { _ in WorkQueue.task { _ = try? await operation.service.send(request) } }
                WorkQueue.task {
                    for call in job.calls { await call.value }
                    operation.finish()
                }
            }
        case .plain:
            return PlainOperation { [unowned self] operation in
                executes(job)
                after(plan.duration) { operation.finish() }
            }
        case .foreign:
            return BlockOperation { [unowned self] in
                executes(job)
                told(job, .success(nil))
            }
        case .batch, .chain:
            let children = plan.children.compactMap { jobs[$0].network }
            let group: GroupOperation =
                plan.kind == .chain
                ? ChainOperation(children)
                : BatchOperation(
                    children,
                    policy: plan.endsAtFirstFailure ? .failFast : .collectAll,
                    maxConcurrentOperationCount: childLimit(of: job)
                )
            group.success = { [unowned self] _ in told(job, .success(nil)) }
            group.failure = { [unowned self] in told(job, .failure($1)) }
            return group
        }
    }

    func file(of job: Job) -> String { folder + (job.plan.sharesFile ? "/shared" : "/\(job.number)") }

    /// None with a group in the group, which would count although only its children run.
    func childLimit(of job: Job) -> Int { job.plan.children.contains { jobs[$0].isGroup } ? -1 : job.plan.childLimit }

    private func request(_ job: History.Job) -> SimulatedRequest {
        let place = [.post: "w", .upload: "w", .download: "f", .events: "e"][job.kind] ?? "r"
        let sendsKey = job.hasKey && job.kind != .older && job.kind != .download
        let method: NetworkService.Method = place == "w" || job.hasKey && !sendsKey ? .post : .get
        var options = RequestOptions(retry: RetryPolicy(maximumRetryCount: job.retries))
        // A sequence of events has this time for each connection.
        if job.kind != .events { options.overallTimeout = job.timeout }
        if sendsKey { options.idempotencyKey = "key \(job.number)" }
        let reader = "\(job.host) \(job.language) \(isOther(job))"
        if method == .get, place == "r" {
            switch job.caching {
            case .none: break
            case .http: options.cache = .http
            case .cacheElseNetwork:
                options.cache = CachePolicy(.cacheElseNetwork, maximumAge: 30, extraKey: reader)
            case .cacheThenNetwork: options.cache = CachePolicy(.cacheThenNetwork, extraKey: reader)
            }
        }
        if job.joins { (options.repeatPolicy, options.repeatKey) = (.join, "\(place) \(job.resource) \(reader)") }
        let api = "\(place)/\(job.resource)"
        return SimulatedRequest(api: api, method: method, job: job.number, language: job.language, options: options)
    }

    /// A callback of a job.
    private func told(_ job: Job, _ result: Result<Answer?, NetworkError>) {
        job.callbackCount += 1
        job.result = result
        if let child = job.members.first(where: { !$0.isFinished }) {
            violate(.groupEndedEarly, "group \(job.number) before job \(child.number)")
        }
        log("job \(job.number) ends: \(Self.text(of: result))")
        outcome.covered.insert("\(job.plan.kind) \(result.code.map { "\($0)" } ?? "well")")
        loop.interrupt()
        happens(.callback(job.number))
        loop.interrupt()
    }

    private func executes(_ job: Job) {
        job.executionCount += 1
        log("job \(job.number) executes")
        willStart(job)
        checkRate(job)
        loop.interrupt()
        happens(.callback(job.number))
    }

    static func text(of result: Result<Answer?, NetworkError>) -> String {
        switch result {
        case .success(let answer?): "answer of message \(answer.message)"
        case .success(nil): "well"
        case .failure(let error):
            "\(error.code)\(error.statusCode.map { " \($0)" } ?? "")\(error.message.map { ": \($0)" } ?? "")"
        }
    }
}

extension Result where Failure == NetworkError {
    var code: NetworkError.Code? { if case .failure(let error) = self { error.code } else { nil } }
}
