import Foundation

/// Sends the messages of a resumable upload, one after the other. ``UploadPlan`` decides which.
struct UploadTransfer {
    enum End: Sendable {
        case response(NetworkResponse)
        /// The server does not support the protocol, and the body can be sent in one message.
        case unsupported
    }

    private typealias Outcome = Result<NetworkResponse, NetworkError>

    /// An identifier of this process. Version numbers of users are comparable only within one process, so a user in a
    /// journal begins with it.
    private static let launch = UUID.make().uuidString

    private let upload: ResumableRequest
    private let journal: UploadJournal
    private let owner: ServiceOperation
    private let turn: UploadTurn
    private let meter: TransferMeter
    /// The record of this upload. The plan has its last values of the URL and ``UploadPlan/mayBeComplete``.
    private var record: UploadRecord
    private var plan: UploadPlan
    /// The reason why the upload in the journal cannot be resumed.
    private var mismatch: String?
    /// Whether the number of bytes that the server has was shown since the upload began, or began again.
    private var isShown = false
    /// The response to the message that completes the upload, if it does not say that it is the last one.
    private var last: NetworkResponse?
    private var retriesSinceProgress = 0
    private var retries = 0
    /// The time before which no message is sent.
    private var notBefore = -TimeInterval.infinity
    /// The seconds that the messages and the delays have taken.
    private var used: TimeInterval = 0
    /// Whether nothing is left to resume after an error.
    private(set) var isOver = false
    /// Whether the start of the request was posted, so that its end must be posted, too.
    private(set) var isAnnounced = false

    /// Begins an upload, or resumes the one in the journal.
    init(
        _ upload: ResumableRequest,
        _ journal: UploadJournal,
        owner: ServiceOperation,
        turn: UploadTurn,
        meter: TransferMeter
    ) {
        (self.upload, self.journal, self.owner, self.turn, self.meter) = (upload, journal, owner, turn, meter)
        record = UploadRecord(identity: upload.identity, source: upload.fingerprint, user: Self.user(of: upload))
        var earlier = journal.record
        if let other = earlier?.user, other.hasPrefix(Self.launch), other != record.user {
            mismatch = "the user has signed out or in"
        } else if let known = earlier?.identity, known != record.identity {
            mismatch = "the request has changed since its upload began"
        } else if let known = earlier?.source, known != record.source {
            if earlier?.mayBeComplete == true, known.hasSameBytes(as: record.source) {
                // Ask the server first. If bytes are missing, the old date makes the upload begin again.
                record.source = known
            } else {
                mismatch = "the file has changed since its upload began"
            }
        }
        if mismatch != nil { earlier = nil }
        plan = UploadPlan(
            upload.settings.kind,
            length: upload.fingerprint.length,
            partSize: Int64(upload.settings.partSize),
            isCreated: upload.isCreated,
            isOptional: upload.settings.isOptional,
            address: earlier?.address ?? (upload.isCreated ? nil : upload.message.url),
            mayBeComplete: earlier?.mayBeComplete ?? false
        )
    }

    private var host: HostConfiguration { upload.snapshot.host }
    private var clock: any NetworkClock { owner.clock }

    private static func user(of upload: ResumableRequest) -> String? {
        upload.snapshot.host.userVersion(for: upload.message.url).map { "\(launch) \($0)" }
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
            if journal.record?.mayBeComplete == true { throw cannotSendAgain(UploadPlan.tooLate(mismatch)) }
            guard plan.isCreated else {
                isOver = true
                throw .invalidRequest("\(mismatch), and this URL has the bytes of the earlier upload")
            }
            begin(again: mismatch)
        } else if plan.address == nil, plan.mayBeComplete {
            // Only a message that both creates and completes the upload is recorded before its response.
            let reason = "an earlier process ended during the upload of an empty body, which the server may have"
            throw cannotSendAgain(reason)
        }
        while true {
            let message = plan.next
            // The slot can be given to an urgent job while a message can be interrupted.
            let mayYield = plan.canStop(message) && plan.address != nil
            try await owner.waitForTurn(until: notBefore, mayYield: mayYield) { turn.resumed }
            if let reason = change(before: message) {
                // A file that cannot be read has not changed: this throws, and the journal stays.
                let source = try upload.source.fingerprint()
                if plan.mayBeComplete { throw cannotSendAgain(UploadPlan.tooLate(reason)) }
                record.source = source
                let verdict = plan.startOver(reason, length: record.source.length)
                _ = try await apply(verdict, .failure(NetworkError(code: .unacceptableStatus)))
                continue
            }
            if plan.address == nil { record.user = Self.user(of: upload) }
            if !isAnnounced, message != .discover {
                isAnnounced = true
                host.postStart(of: upload.snapshot.request)
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
        if Self.user(of: upload) != record.user { return "the user has signed out or in" }
        if case .append = message, !upload.source.isUnchanged(since: record.source) { return "the file has changed" }
        return nil
    }

    /// Returns the error of an upload that cannot begin again, because the server may have acted on it.
    private mutating func cannotSendAgain(_ message: String) -> NetworkError {
        isOver = true
        return NetworkError(code: .cannotSendAgain, message: message, attempts: 1)
    }

    private mutating func begin(again reason: String) {
        // The journal keeps the old upload until the new one exists. If that cannot be created because a credential has
        // expired, the old upload can still be resumed later.
        (last, isShown) = (nil, false)
        meter.begin(completed: 0, total: plan.length)
        owner.tell(.uploadStartedOver(reason))
    }

    /// Sends a message.
    ///
    /// - Returns: `nil` if it was stopped, because of a pause or an urgent job.
    private mutating func send(_ message: UploadPlan.Message) async -> Outcome? {
        let begun = clock.now
        let request: CallRequest
        do throws(NetworkError) {
            request = try self.request(for: message)
        } catch {
            return .failure(error)
        }
        let task = WorkQueue.task { [group = owner.callGroup, meter] in
            await group.result(of: request) { call in
                guard case .append(let range, _) = message else { return }
                call.watch { counts, _ in meter.raise(to: range.lowerBound + Int64(counts.sent)) }
            } map: {
                $0
            }
        }
        if plan.canStop(message) { turn.begin { task.cancel() } }
        let result = await task.joined()
        used += clock.now - begun
        turn.end()
        if task.isCancelled { meter.rest() }
        return task.isCancelled && result.failure != nil && !owner.hasOutcome ? nil : result
    }

    private static func reply(_ result: Outcome) -> UploadPlan.Reply {
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

    private mutating func apply(_ verdict: UploadPlan.Verdict, _ result: Outcome) async throws(NetworkError) -> End? {
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
        case .rejected: throw failed(after: result)
        case .fail(let code, let message): throw failed(after: result, code, message)
        case .startOver(let reason):
            begin(again: reason)
            return nil
        case .unsupported: return .unsupported
        case .complete:
            showConfirmed(plan.length)
            if upload.isTus, let item = try await item() { return .response(item) }
            return .response(try result.get())
        case .completeWithoutResponse:
            showConfirmed(plan.length)
            if let last { return .response(last) }
            if let item = try await item() { return .response(item) }
            let message = "the server has all bytes, but its last response was lost and cannot be requested again"
            throw failed(after: result, .cannotParseResponse, message)
        }
    }

    /// Returns the failure of the upload, of which nothing is left to resume.
    ///
    /// - Parameter code: The code of the failure. Defaults to `nil`: the result is the failure.
    private mutating func failed(
        after result: Outcome,
        _ code: NetworkError.Code? = nil,
        _ message: String? = nil
    ) -> NetworkError {
        isOver = true
        var error = Self.error(of: result)
        if let code { (error.code, error.message) = (code, message) }
        return error
    }

    private static func error(of result: Outcome) -> NetworkError {
        switch result {
        case .success(let response): response.error(.badServerResponse)
        case .failure(let error): error
        }
    }

    /// Shows the offset that the server has confirmed, unless more bytes were shown before.
    private mutating func showConfirmed(_ offset: Int64) {
        if !isShown { meter.begin(completed: offset, total: plan.length) }
        isShown = true
        meter.raise(to: offset)
    }

    private mutating func scheduleRetry(after error: NetworkError) throws(NetworkError) {
        let hasGained = plan.takeProgress()
        if hasGained { retriesSinceProgress = 0 }
        var policy = upload.snapshot.retry
        // A server can still be busy with the message whose connection was lost.
        policy.statusCodes.formUnion([409, 423])
        guard policy.mayGoOn(totalCount: retries),
            let delay = policy.delay(
                after: error,
                of: upload.snapshot.message,
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

    private mutating func save() throws(NetworkError) {
        guard plan.isProven || plan.mayBeComplete || journal.record?.mayBeComplete == true else { return }
        (record.address, record.mayBeComplete) = (plan.address, plan.mayBeComplete)
        try journal.save(record)
    }

    /// Requests the item of the complete upload; `nil` if the settings do not name its address.
    private func item() async throws(NetworkError) -> NetworkResponse? {
        guard let api = upload.settings.item, let address = plan.address else { return nil }
        let path = WorkQueue.userCode { api(address) }
        let base = try RequestBuilder.base(upload.snapshot.options, host)
        let url = try URLBuilder.url(api: path, base: base, query: nil)
        let request = upload.call(.get, url, [:], validation: nil, retry: nil, overallTimeout: try timeLeft())
        return try await owner.callGroup.result(of: request) { $0 }.get()
    }

    private func timeLeft() throws(NetworkError) -> TimeInterval? {
        guard let total = upload.snapshot.overallTimeout else { return nil }
        guard total > used else {
            throw NetworkError(code: .timedOut, message: "all messages of the upload together took \(total) seconds")
        }
        return total - used
    }

    // MARK: - The wire

    private func request(for message: UploadPlan.Message) throws(NetworkError) -> CallRequest {
        let (sent, isTus) = (upload.message, upload.isTus)
        let address = plan.address ?? sent.url
        let time = try timeLeft()
        var fields = upload.version
        switch message {
        case .discover:
            fields["Tus-Resumable"] = nil
            return upload.call(NetworkService.Method(rawValue: "OPTIONS"), sent.url, fields, overallTimeout: time)
        case .create:
            fields["Upload-Length"] = "\(plan.length)"
            if isTus {
                fields["Upload-Metadata"] = try upload.metadata()
            } else {
                fields["Upload-Complete"] = "?0"
                for field in sent.headers where ResumableRequest.contentFields.contains(field.name.lowercased()) {
                    fields.add(field.value, for: field.name)
                }
            }
            fields["Idempotency-Key"] = creationKey
            let method = isTus ? NetworkService.Method.post : sent.method
            return upload.call(method, sent.url, fields, .data(Data()), overallTimeout: time)
        case .ask: return upload.call(.head, address, fields, overallTimeout: time)
        case .append(let range, let completes):
            fields["Upload-Offset"] = "\(range.lowerBound)"
            fields["Content-Type"] = isTus ? "application/offset+octet-stream" : "application/partial-upload"
            if !isTus { fields["Upload-Complete"] = completes ? "?1" : "?0" }
            return upload.call(
                .patch,
                address,
                fields,
                upload.source.body(range),
                // The last response becomes the item.
                validation: completes && !isTus ? nil : ResponseValidation(),
                overallTimeout: time,
                beginBody: { [weak owner] body throws(NetworkError) in try owner?.limited(body) ?? body }
            )
        }
    }

    /// The `Idempotency-Key` of the creation. If it replaces an upload that the server has forgotten, the key differs:
    /// with the same key, a server may return the old upload again.
    private var creationKey: String? {
        let key = upload.message.headers["Idempotency-Key"]
        guard let key, let old = journal.record?.address else { return key }
        let suffix = "-" + SHA256.digest(of: Data(old.absoluteString.utf8)).prefix(8).hexadecimal
        // Some keys are quoted strings (RFC 9651, section 3.3.3).
        return key.hasSuffix("\"") ? key.dropLast() + suffix + "\"" : key + suffix
    }
}
