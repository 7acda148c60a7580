import EasyNetwork
import Foundation

private typealias Method = NetworkService.Method

/// The body of a document, which says what it answers.
struct Answer: Decodable, Sendable {
    var message: Int
    var job: Int
    var path: String
    var user: Int
}

struct SimulatedRequest: APIRequest {
    typealias Item = Answer
    let api: String
    let method: NetworkService.Method
    let job: Int
    let options: RequestOptions
    var headers: [String: String]? { ["X-Job": "\(job)"] }
    var params: [String: Any]? { method == .post ? ["job": job] : nil }
}

private struct RefreshRequest: BaseAPIRequest {
    let credential: Tokens.Credential
    let api = "token"
    let method = NetworkService.Method.post
    var headers: [String: String]? { ["X-Refresh": "\(credential.refresh)", "X-Epoch": "\(credential.epoch)"] }
}

/// Puts tokens into requests. An epoch is the time from a sign-in to the next one, or to a sign-out.
struct Tokens: Authenticator {
    struct Credential: Sendable {
        var access: Int
        var refresh: Int
        let epoch: Int
    }

    private struct Fresh: Decodable {
        let access: Int
        let refresh: Int
    }

    unowned let world: World

    func apply(_ credential: Credential, to request: inout TransportRequest) {
        request.headers["Authorization"] = "Bearer \(credential.access)"
        request.headers["X-Epoch"] = "\(credential.epoch)"
        world.loop.interrupt()
    }

    func refresh(_ credential: Credential?, over service: EasyNetworkService) async throws -> Credential {
        guard let credential else { throw NetworkError(code: .unauthorized, message: "no user is signed in") }
        world.log("refreshes token \(credential.access)")
        world.loop.interrupt()
        let response = try await service.send(RefreshRequest(credential: credential))
        let fresh = try response.decode(Fresh.self)
        world.loop.interrupt()
        return Credential(access: fresh.access, refresh: fresh.refresh, epoch: credential.epoch)
    }
}

private final class PlainOperation: NetworkOperation, @unchecked Sendable {
    // Sendable because nothing changes.
    private let work: @Sendable (PlainOperation) -> Void

    init(_ work: @escaping @Sendable (PlainOperation) -> Void) {
        self.work = work
    }

    override func execute() { work(self) }
}

/// Makes a call in `start()`, the older way, or reads a body as it comes.
private final class CallOperation: ServiceOperation, @unchecked Sendable {
    // Sendable because nothing changes.
    private let request: SimulatedRequest
    private let heard: (@Sendable (Result<Answer?, NetworkError>) -> Void)?

    /// - Parameter heard: nil to read a body as it comes.
    init(
        _ request: SimulatedRequest,
        _ service: EasyNetworkService,
        heard: (@Sendable (Result<Answer?, NetworkError>) -> Void)? = nil
    ) {
        (self.request, self.heard) = (request, heard)
        super.init(service: service)
    }

    override func start() {
        super.start()
        guard let heard else { return }
        let success: @Sendable (Any?, NetworkResponse) -> Void = { _, response in
            let answer = try? response.decode(Answer.self)
            heard(answer.map { .success($0) } ?? .failure(NetworkError(code: .cannotParseResponse)))
            self.finish()
        }
        service.request(request, successWithResponse: success) { error in
            heard(.failure(error))
            self.finish(error)
        }
    }

    override func execute() {
        guard heard == nil else { return }
        WorkQueue.task { [self] in
            do {
                if request.api.hasPrefix("e") {
                    for try await _ in service.events(request) { break }
                } else {
                    for try await _ in try await service.stream(request) {}
                }
                finish()
            } catch {
                finish(error as? NetworkError ?? NetworkError(code: .cancelled))
            }
        }
    }
}

extension World {
    func makeJobs(_ services: [EasyNetworkService]) {
        for job in history.jobs {
            let operation = makeOperation(job, services[job.host])
            operation.name = "job \(job.number)"
            operation.queuePriority = Self.priority(job.priority)
            records[job.number].operation = operation
            numbers[ObjectIdentifier(operation)] = job.number
            for other in job.after {
                guard let dependency = records[other].operation else { continue }
                if let operation = operation as? NetworkOperation {
                    operation.addDependency(dependency, policy: job.allowsFailure ? .allowFailure : .requireSuccess)
                } else {
                    operation.addDependency(dependency)
                }
            }
            if let operation = operation as? NetworkOperation { finishMaking(operation, job) }
        }
        let children = Set(history.jobs.flatMap(\.children))
        for job in history.jobs where !children.contains(job.number) { after(job.at) { self.add(job.number) } }
    }

    private func add(_ number: Int) {
        guard let queue, let operation = records[number].operation else { return }
        log("user: adds job \(number), \(history.jobs[number].kind)")
        for job in [number] + history.members(of: number) {
            (records[job].isAdded, records[job].isChild) = (true, job != number)
            (records[job].addedAt, records[job].addedStep) = (loop.now, loop.stepCount)
        }
        records[number].deadline = (operation as? NetworkOperation)?.deadline
        queue.addOperation(operation)
    }

    private func finishMaking(_ operation: NetworkOperation, _ job: History.Job) {
        let number = job.number
        operation.tags = Set(job.tags.map { "t\($0)" })
        operation.deadline = job.deadline
        operation.completionBlock = { [unowned self] in
            records[number].completionCount += 1
            loop.interrupt()
        }
        operation.whenFinished { [unowned self] in
            records[number].endedAt = loop.now
            checkEnd(of: number)
        }
        let observe: @Sendable (NetworkOperation) -> Void = { [unowned self] _ in loop.interrupt() }
        if job.hasAccessory { operation.addAccessory(willStart: observe, didStop: observe) }
        if let kind = job.condition {
            let condition = OperationCondition("c\(kind)") { [unowned self] _ in
                if kind > 0 { await withCheckedContinuation { next in after(1) { next.resume() } } }
                return kind < 2
            }
            operation.addCondition(condition)
        }
        if job.isAwaited {
            WorkQueue.task { [unowned self, weak operation] in
                try? await operation?.finished()
                records[number].awaitedCount += 1
            }
        }
    }

    private func makeOperation(_ job: History.Job, _ service: EasyNetworkService) -> Operation {
        let number = job.number
        switch job.kind {
        case .get, .post, .upload: return makeRequest(job, service)
        case .download:
            let (file, method) = (URL(fileURLWithPath: folder + "/\(number)"), job.hasKey ? Method.post : .get)
            let download = DownloadOperation(request(job, "f", method), to: file, service: service)
            download.success = { [unowned self] _ in told(number, .success(nil)) }
            download.failure = { [unowned self] in told(number, .failure($0)) }
            return download
        case .older:
            let request = request(job, "r", job.hasKey ? .post : .get)
            return CallOperation(request, service) { [unowned self] in told(number, $0) }
        case .stream: return CallOperation(request(job, "r", .get), service)
        case .events: return CallOperation(request(job, "e", .get), service)
        case .plain:
            return PlainOperation { [unowned self] operation in
                executes(number)
                after(job.duration) { operation.finish() }
            }
        case .foreign:
            return BlockOperation { [unowned self] in
                executes(number)
                told(number, .success(nil))
            }
        case .batch, .chain:
            let children = job.children.compactMap { records[$0].operation as? NetworkOperation }
            let group: GroupOperation =
                job.kind == .chain
                ? ChainOperation(children)
                : BatchOperation(children, policy: job.endsAtFirstFailure ? .failFast : .collectAll)
            group.success = { [unowned self] _ in told(number, .success(nil)) }
            group.failure = { [unowned self] in told(number, .failure($1)) }
            return group
        }
    }

    private func makeRequest(_ job: History.Job, _ service: EasyNetworkService) -> Operation {
        let number = job.number
        let request = job.kind == .get ? request(job, "r", .get) : request(job, "w", .post)
        let isUpload = job.kind == .upload
        let operation =
            isUpload ? UploadOperation(request, service: service) : RequestOperation(request, service: service)
        operation.successWithResponse = { [unowned self] answer, response in
            records[number].source = response.source
            told(number, .success(answer))
        }
        operation.failure = { [unowned self] in told(number, .failure($0)) }
        return operation
    }

    private func request(_ job: History.Job, _ kind: String, _ method: NetworkService.Method) -> SimulatedRequest {
        var options = RequestOptions(retry: RetryPolicy(maximumRetryCount: job.retries))
        if job.hasKey, job.kind != .older, job.kind != .download { options.idempotencyKey = "key \(job.number)" }
        if method == .get, kind == "r" {
            switch job.caching {
            case .none: break
            case .http: options.cache = .http
            case .cacheElseNetwork:
                options.cache = CachePolicy(.cacheElseNetwork, maximumAge: 30, extraKey: "\(job.host)")
            case .cacheThenNetwork: options.cache = CachePolicy(.cacheThenNetwork, extraKey: "\(job.host)")
            }
        }
        if job.joins { (options.repeatPolicy, options.repeatKey) = (.join, "\(kind) \(job.host) \(job.resource)") }
        return SimulatedRequest(api: "\(kind)/\(job.resource)", method: method, job: job.number, options: options)
    }

    /// A callback of a job.
    private func told(_ number: Int, _ result: Result<Answer?, NetworkError>) {
        records[number].callbackCount += 1
        records[number].result = result
        log("job \(number) ends: \(Self.text(of: result))")
        covered.insert("\(history.jobs[number].kind) \(result.code.map { "\($0)" } ?? "well")")
        loop.interrupt()
        happens(.callback(number))
        loop.interrupt()
    }

    private func executes(_ number: Int) {
        records[number].executionCount += 1
        log("job \(number) executes")
        willStart(number)
        loop.interrupt()
        happens(.callback(number))
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
    var code: NetworkError.Code? {
        if case .failure(let error) = self { error.code } else { nil }
    }
}
