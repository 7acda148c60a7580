import Foundation

/// Sends the messages of a resumable upload, one after the other. ``UploadPlan`` decides which.
struct UploadTransfer {
    enum End: Sendable {
        case response(NetworkResponse)
        /// The server does not support the protocol, and the body can be sent in one message.
        case unsupported
    }

    /// The message of an upload, before it is sent.
    private typealias Draft = (method: NetworkService.Method, headers: HTTPHeaders, body: TransportBody)

    /// An identifier of this process. Version numbers of users are comparable only within one process, so a user in a
    /// journal begins with it.
    private static let launch = UUID.make().uuidString

    private let settings: ResumableUpload
    private let snapshot: RequestSnapshot
    private let source: UploadSource
    private let identity: String
    private let journal: UploadJournal
    private let owner: ServiceOperation
    private let turn: UploadTurn
    private let meter: TransferMeter
    /// Returns the body with the limits of the bandwidth.
    private let limit: @Sendable (TransportBody) throws(NetworkError) -> TransportBody
    private var user: String?
    private var fingerprint: UploadSource.Fingerprint
    private var plan: UploadPlan
    /// The reason why the upload in the journal cannot be resumed.
    private var mismatch: String?
    /// The largest number of bytes that were shown as sent. It decreases only when the upload starts over.
    private let shown = Locked<Int64?>(nil)
    /// The response to the message that completes the upload, if it does not say that it is the last one.
    private var last: NetworkResponse?
    private var retriesSinceProgress = 0
    private var retries = 0
    /// The time before which no message is sent.
    private var notBefore = -TimeInterval.infinity
    /// The seconds that the messages and the delays have taken.
    private var used: TimeInterval = 0
    /// Whether nothing is left to resume.
    private(set) var isOver = false
    /// Whether the start of the request was posted, so that its end must be posted, too.
    private(set) var isAnnounced = false

    /// Begins an upload, or resumes the one in the journal.
    init(
        _ settings: ResumableUpload,
        _ snapshot: RequestSnapshot,
        _ source: UploadSource,
        _ fingerprint: UploadSource.Fingerprint,
        _ identity: String,
        _ journal: UploadJournal,
        owner: ServiceOperation,
        turn: UploadTurn,
        meter: TransferMeter,
        limit: @escaping @Sendable (TransportBody) throws(NetworkError) -> TransportBody
    ) {
        (self.settings, self.snapshot, self.source, self.journal) = (settings, snapshot, source, journal)
        (self.owner, self.turn, self.meter, self.fingerprint) = (owner, turn, meter, fingerprint)
        (self.identity, self.limit) = (identity, limit)
        user = Self.user(of: snapshot)
        var record = journal.record
        if let other = record?.user, other.hasPrefix(Self.launch), other != user {
            mismatch = "the user has signed out or in"
        } else if let known = record?.identity, known != identity {
            mismatch = "the request has changed since its upload began"
        } else if let known = record?.source, known != fingerprint {
            if record?.mayBeComplete == true, known.hasSameBytes(as: fingerprint) {
                // Ask the server first. If bytes are missing, the old date makes the upload begin again.
                self.fingerprint = known
            } else {
                mismatch = "the file has changed since its upload began"
            }
        }
        if mismatch != nil { record = nil }
        let isCreated = !(settings.kind == .tus && snapshot.message.method == .patch)
        plan = UploadPlan(
            settings.kind,
            length: fingerprint.length,
            partSize: Int64(settings.partSize),
            isCreated: isCreated,
            isOptional: settings.isOptional,
            address: record?.address ?? (isCreated ? nil : snapshot.message.url),
            mayBeComplete: record?.mayBeComplete ?? false
        )
    }

    private var host: HostConfiguration { snapshot.host }
    private var clock: any NetworkClock { owner.clock }

    private static func user(of snapshot: RequestSnapshot) -> String? {
        snapshot.host.userVersion(for: snapshot.message.url).map { "\(launch) \($0)" }
    }

    // MARK: - The messages

    /// Uploads all bytes.
    mutating func run() async throws(NetworkError) -> End {
        do throws(NetworkError) {
            return try await sendAll()
        } catch {
            guard plan.mayBeComplete, !error.mayHaveReachedServer else { throw error }
            // The last message did not reach the server, but an earlier one may have completed the upload.
            var error = error
            (error.phase, error.attempts) = (.firstByte, max(1, error.attempts))
            throw error
        }
    }

    private mutating func sendAll() async throws(NetworkError) -> End {
        if let mismatch {
            if journal.record?.mayBeComplete == true { throw cannotSendAgain(mismatch) }
            guard plan.isCreated else {
                isOver = true
                throw .invalidRequest("\(mismatch), and this URL has the bytes of the earlier upload")
            }
            begin(again: mismatch)
        } else if plan.address == nil, plan.mayBeComplete {
            // Only a message that both creates and completes the upload is recorded before its response.
            isOver = true
            throw NetworkError(
                code: .cannotSendAgain,
                message: "an earlier process ended during the upload of an empty body, which the server may have",
                attempts: 1
            )
        }
        while true {
            let message = plan.next
            // The slot can be given to an urgent job while a message can be interrupted.
            let mayYield = plan.canStop(message) && plan.address != nil
            try await owner.waitForTurn(until: notBefore, mayYield: mayYield) { turn.resumed }
            if let reason = change(before: message) {
                if plan.mayBeComplete { throw cannotSendAgain(reason) }
                fingerprint = try source.fingerprint()
                let verdict = plan.startOver(reason, length: fingerprint.length)
                _ = try await apply(verdict, .failure(NetworkError(code: .unacceptableStatus)))
                continue
            }
            if plan.address == nil { user = Self.user(of: snapshot) }
            if !isAnnounced, message != .discover {
                isAnnounced = true
                host.postStart(of: snapshot.request)
            }
            plan.willSend(message)
            try save()
            guard let result = await send(message) else {
                plan.stopped()
                continue
            }
            if let error = result.failure, error.code == .cancelled { throw error }
            if change(before: message) != nil, result.failure?.statusCode == nil, result.failure != nil {
                // The message failed because the file has changed while it was read.
                plan.stopped()
                continue
            }
            if case .success(let response) = result, plan.completes(message) { last = response }
            if let end = try await apply(plan.receive(Self.reply(result), to: message), result) { return end }
        }
    }

    /// Returns the reason why the upload must start over before this message; `nil` if it need not.
    private func change(before message: UploadPlan.Message) -> String? {
        guard plan.address != nil else { return nil }
        if Self.user(of: snapshot) != user { return "the user has signed out or in" }
        if case .append = message, !source.isUnchanged(since: fingerprint) { return "the file has changed" }
        return nil
    }

    /// Returns the error of an upload that cannot begin again, because the server may have acted on it.
    private mutating func cannotSendAgain(_ reason: String) -> NetworkError {
        isOver = true
        let message = "\(reason), after all bytes were sent; the server may have processed them"
        return NetworkError(code: .cannotSendAgain, message: message, attempts: 1)
    }

    private mutating func begin(again reason: String) {
        // The journal keeps the old upload until the new one exists. If that cannot be created because a credential has
        // expired, the old upload can still be resumed later.
        last = nil
        shown.exchange(nil)
        meter.begin(completed: 0, total: plan.length)
        owner.tell(.uploadStartedOver(reason))
    }

    /// Sends a message.
    ///
    /// - Returns: `nil` if it was stopped, because of a pause or an urgent job.
    private mutating func send(_ message: UploadPlan.Message) async -> Result<NetworkResponse, NetworkError>? {
        let begun = clock.now
        let request: CallRequest
        do throws(NetworkError) {
            request = try self.request(for: message)
        } catch {
            return .failure(error)
        }
        var watch: (@Sendable (BodyStream.Counts, Int64?) -> Void)?
        if case .append(let range, _) = message {
            watch = { [shown, meter] counts, _ in
                Self.show(range.lowerBound + Int64(counts.sent), of: shown, in: meter)
            }
        }
        let task = WorkQueue.task { [group = owner.callGroup, watch] in
            await group.result(of: request, created: { call in if let watch { call.watch(watch) } }, map: { $0 })
        }
        if plan.canStop(message) { turn.begin { task.cancel() } }
        let result = await withTaskCancellationHandler {
            await task.value
        } onCancel: {
            task.cancel()
        }
        used += clock.now - begun
        let isStopped = turn.end()
        if isStopped { meter.rest() }
        return isStopped && result.failure != nil && !owner.hasOutcome ? nil : result
    }

    /// Shows the number of bytes that were sent, unless a larger number was shown before.
    static func show(_ count: Int64, of shown: Locked<Int64?>, in meter: TransferMeter) {
        let count = shown.withLock { shown in
            let most = max(shown ?? 0, count)
            shown = most
            return most
        }
        meter.set(completed: count)
    }

    private static func reply(_ result: Result<NetworkResponse, NetworkError>) -> UploadPlan.Reply {
        switch result {
        case .success(let response):
            UploadPlan.Reply(status: response.statusCode, headers: response.headers, url: response.url)
        case .failure(let error):
            UploadPlan.Reply(
                // With this code, the status is a proxy's.
                status: error.code == .cannotConnect ? nil : error.statusCode,
                headers: error.headers,
                isCut: 200..<300 ~= error.statusCode ?? 0 && cuts.contains(error.code),
                mayHaveArrived: error.mayHaveReachedServer,
                isFirst: error.history.count <= 1
            )
        }
    }

    /// The codes of failures that cut off a response. The others are verdicts on the response.
    private static let cuts: Set<NetworkError.Code> = [
        .connectionLost, .timedOut, .notConnected, .tls, .badServerResponse,
    ]

    // MARK: - What follows

    private mutating func apply(
        _ verdict: UploadPlan.Verdict,
        _ result: Result<NetworkResponse, NetworkError>
    ) async throws(NetworkError) -> End? {
        switch verdict {
        case .proceed:
            try save()
            if let offset = plan.offset { showConfirmed(offset) }
            return nil
        case .failed:
            // The message that completes the upload may not have reached the server.
            try save()
            try scheduleRetry(after: Self.error(of: result))
            return nil
        case .rejected:
            isOver = true
            throw Self.error(of: result)
        case .fail(let code, let message): throw failed(code, message, result)
        case .startOver(let reason):
            begin(again: reason)
            return nil
        case .unsupported:
            isOver = true
            return .unsupported
        case .complete:
            showConfirmed(plan.length)
            if settings.kind == .tus, settings.item != nil { return try await item() }
            return finished(try result.get())
        case .completeWithoutResponse:
            showConfirmed(plan.length)
            if let last { return finished(last) }
            if settings.item != nil { return try await item() }
            let message = "the server has all bytes, but its last response was lost and cannot be requested again"
            throw failed(.cannotParseResponse, message, result)
        }
    }

    private mutating func failed(
        _ code: NetworkError.Code,
        _ message: String,
        _ result: Result<NetworkResponse, NetworkError>
    ) -> NetworkError {
        isOver = true
        var error = Self.error(of: result)
        (error.code, error.message) = (code, message)
        return error
    }

    private mutating func finished(_ response: NetworkResponse) -> End {
        isOver = true
        return .response(response)
    }

    private static func error(of result: Result<NetworkResponse, NetworkError>) -> NetworkError {
        switch result {
        case .success(let response): response.error(.badServerResponse)
        case .failure(let error): error
        }
    }

    /// Shows the offset that the server has confirmed, unless more bytes were shown before.
    private func showConfirmed(_ offset: Int64) {
        if shown.withLock({ $0 }) == nil { meter.begin(completed: offset, total: plan.length) }
        Self.show(offset, of: shown, in: meter)
    }

    private mutating func scheduleRetry(after error: NetworkError) throws(NetworkError) {
        let hasGained = plan.takeProgress()
        if hasGained { retriesSinceProgress = 0 }
        var policy = snapshot.retry
        // A server can still be busy with the message whose connection was lost.
        policy.statusCodes.formUnion([409, 423])
        guard policy.mayGoOn(totalCount: retries),
            let delay = policy.delay(
                after: error,
                of: snapshot.message,
                retryCount: retriesSinceProgress,
                date: clock.date,
                random: host.settings.random(),
                mayHaveActed: false
            ),
            host.takeRetry(afterProgress: hasGained)
        else { throw error }
        (retriesSinceProgress, retries) = (retriesSinceProgress + 1, retries + 1)
        used += delay
        notBefore = clock.now + delay
        meter.rest()
        owner.tell(.retryScheduled(delay: delay, after: error))
    }

    private func save() throws(NetworkError) {
        guard plan.isProven || plan.mayBeComplete || journal.record?.mayBeComplete == true else { return }
        try journal.save(
            UploadRecord(
                identity: identity,
                source: fingerprint,
                address: plan.address,
                mayBeComplete: plan.mayBeComplete,
                user: user
            )
        )
    }

    /// Requests the item of the complete upload.
    private mutating func item() async throws(NetworkError) -> End {
        guard let api = settings.item, let address = plan.address else { throw NetworkError(code: .invalidRequest) }
        let path = WorkQueue.userCode { api(address) }
        let url = try URLBuilder.url(api: path, base: RequestBuilder.base(snapshot.options, host), query: nil)
        let request = Self.derived(
            snapshot,
            url,
            (.get, HTTPHeaders(), .none),
            snapshot.validation,
            retry: snapshot.retry,
            overallTimeout: try timeLeft()
        )
        return finished(try await owner.callGroup.result(of: request) { $0 }.get())
    }

    private func timeLeft() throws(NetworkError) -> TimeInterval? {
        guard let total = snapshot.overallTimeout else { return nil }
        guard total > used else {
            throw NetworkError(code: .timedOut, message: "all messages of the upload together took \(total) seconds")
        }
        return total - used
    }

    // MARK: - The wire

    private func request(for message: UploadPlan.Message) throws(NetworkError) -> CallRequest {
        let validation: ResponseValidation
        switch message {
        // The last response becomes the item.
        case .append(_, completes: true) where settings.kind == .http: validation = snapshot.validation
        default: validation = ResponseValidation()
        }
        let isForRequest = message == .discover || message == .create
        let url = isForRequest ? snapshot.message.url : plan.address ?? snapshot.message.url
        var beginBody: (@Sendable (TransportBody) throws(NetworkError) -> TransportBody)?
        if case .append = message { beginBody = limit }
        return Self.derived(
            snapshot,
            url,
            try draft(of: message),
            validation,
            overallTimeout: try timeLeft(),
            beginBody: beginBody
        )
    }

    /// Returns the field with the version of the protocol.
    private static func version(_ kind: ResumableUpload.Kind) -> HTTPHeaders {
        kind == .tus ? ["Tus-Resumable": "1.0.0"] : ["Upload-Draft-Interop-Version": "8"]
    }

    private func draft(of message: UploadPlan.Message) throws(NetworkError) -> Draft {
        let isTus = settings.kind == .tus
        var headers = Self.version(settings.kind)
        switch message {
        case .discover:
            headers["Tus-Resumable"] = nil
            return (NetworkService.Method(rawValue: "OPTIONS"), headers, .none)
        case .create:
            headers["Upload-Length"] = "\(plan.length)"
            if isTus {
                let own = snapshot.message.headers["Upload-Metadata"]
                headers["Upload-Metadata"] = if let own { own } else { try metadata() }
                headers["Idempotency-Key"] = creationKey
                return (.post, headers, .data(Data()))
            }
            headers["Upload-Complete"] = "?0"
            for field in snapshot.message.headers where Self.contentFields.contains(field.name.lowercased()) {
                headers.add(field.value, for: field.name)
            }
            headers["Idempotency-Key"] = creationKey
            return (snapshot.message.method, headers, .data(Data()))
        case .ask: return (.head, headers, .none)
        case .append(let range, let completes):
            headers["Upload-Offset"] = "\(range.lowerBound)"
            headers["Content-Type"] = isTus ? "application/offset+octet-stream" : "application/partial-upload"
            if !isTus { headers["Upload-Complete"] = completes ? "?1" : "?0" }
            return (.patch, headers, source.body(range))
        }
    }

    /// The `Idempotency-Key` of the creation. If it replaces an upload that the server has forgotten, the key differs:
    /// with the same key, a server may return the old upload again.
    private var creationKey: String? {
        guard let key = snapshot.message.headers["Idempotency-Key"], let old = journal.record?.address else {
            return snapshot.message.headers["Idempotency-Key"]
        }
        let suffix = "-" + SHA256.digest(of: Data(old.absoluteString.utf8)).prefix(8).hexadecimal
        // Some keys are quoted strings (RFC 9651, section 3.3.3).
        return key.hasSuffix("\"") ? key.dropLast() + suffix + "\"" : key + suffix
    }

    /// The fields of the request that describe its body, or belong to its creation alone.
    private static let contentFields: Set<String> = [
        "content-type", "content-encoding", "content-language", "content-disposition", "idempotency-key",
    ]

    private func metadata() throws(NetworkError) -> String? {
        var metadata: [String: String] = [:]
        metadata["filename"] = source.name
        metadata["filetype"] = snapshot.message.headers["Content-Type"]
        metadata.merge(settings.metadata) { $1 }
        let isValid = { (name: String) in
            !name.isEmpty && name.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != UInt8(ascii: ",") }
        }
        for name in metadata.keys where !isValid(name) {
            throw .invalidRequest("the name \"\(name)\" of tus metadata must be ASCII without spaces and commas")
        }
        let pairs = metadata.sorted { $0.key < $1.key }
            .map { $0.value.isEmpty ? $0.key : "\($0.key) \(Data($0.value.utf8).base64EncodedString())" }
        return pairs.isEmpty ? nil : pairs.joined(separator: ",")
    }

    /// Returns a message of the upload, with the request's headers. Only the origin of the request gets its credentials.
    private static func derived(
        _ snapshot: RequestSnapshot,
        _ url: URL,
        _ draft: Draft,
        _ validation: ResponseValidation,
        retry: RetryPolicy = .never,
        overallTimeout: TimeInterval? = nil,
        beginBody: (@Sendable (TransportBody) throws(NetworkError) -> TransportBody)? = nil
    ) -> CallRequest {
        var message = snapshot.message
        var options = snapshot.options
        var headers = HTTPHeaders(
            snapshot.message.headers.filter {
                !contentFields.contains($0.name.lowercased())
                    && !$0.name.isEqualIgnoringASCIICase(to: "Upload-Metadata")
            }
        )
        let isElsewhere = url.origin != snapshot.message.url.origin
        if isElsewhere {
            headers = snapshot.redirects.headersElsewhere(headers)
            (options.isAuthenticated, options.usesCookies, options.sendsTraceContext) = (false, false, false)
        }
        for field in draft.headers { headers[field.name] = field.value }
        (message.url, message.method, message.headers, message.body) = (url, draft.method, headers, draft.body)
        options.beginBody = beginBody
        (options.validation, options.retry, options.overallTimeout) = (validation, retry, overallTimeout)
        let home = isElsewhere ? snapshot.message.url : nil
        var request = CallRequest(RequestSnapshot(snapshot, message, options, home: home))
        request.isAnnounced = false
        return request
    }

    // MARK: - The end of an upload that is not wanted

    /// Deletes the upload of a journal on the server, which may no longer have it.
    static func delete(
        _ address: URL,
        _ settings: ResumableUpload,
        _ snapshot: RequestSnapshot
    ) async throws(NetworkError) {
        // Servers without the extension for termination respond with 405 or 501.
        let validation = ResponseValidation(statusCodes: ResponseValidation.success.union([404, 405, 410, 501]))
        let draft = Draft(.delete, version(settings.kind), .none)
        let request = derived(snapshot, address, draft, validation, retry: snapshot.retry)
        _ = try await CallGroup(snapshot.host).result(of: request) { $0 }.get()
    }
}
