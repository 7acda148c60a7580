import Foundation

/// The rules of a resumable upload: which message follows, and what a response means. A value without I/O.
///
/// An empty message creates an upload. Parts are then appended, and a message requests the offset whenever it is not
/// certain. In tus, the last part completes it. In the IETF's protocol, an empty message completes it after the
/// last part. The response to that message can be lost and cannot be requested again, so the message is kept short.
///
/// Sources: tus 1.0.0 (https://tus.io/protocols/resumable-upload); draft-ietf-httpbis-resumable-upload, interop
/// version 8.
struct UploadPlan: Sendable {
    enum Message: Equatable, Sendable {
        /// Ask whether the server supports the protocol.
        case discover
        case create
        /// Ask for the offset.
        case ask
        /// Append these bytes.
        case append(Range<Int64>, completes: Bool)
    }

    /// A response, or a failure without one.
    struct Reply: Sendable {
        /// `nil` for a failure without a response.
        var status: Int?
        var headers = HTTPHeaders()
        /// The URL that responded.
        var url: URL?
        /// Whether the body of a response with status 2xx was cut off.
        var isCut = false
        /// Whether the server may have received the message of a failure without a response.
        var mayHaveArrived = true
        /// Whether the call sent no message before the one that this replies to. It sends several after a redirect, a
        /// refresh of the credential, or when an interceptor sends the message again.
        var isFirst = true
    }

    enum Verdict: Equatable, Sendable {
        /// Send the ``UploadPlan/next`` message.
        case proceed
        /// Send the next message if the retry policy allows it after this failure.
        case failed
        /// The response is the failure of the whole upload, and nothing is left to resume.
        case rejected
        case fail(NetworkError.Code, String)
        /// The upload begins again, for this reason.
        case startOver(String)
        /// The server does not support the protocol, and the body can be sent in one message.
        case unsupported
        /// The upload is complete, and this response is the last one.
        case complete
        /// The upload is complete, and the response to the last message was lost.
        case completeWithoutResponse
    }

    /// The number of times that one operation starts an upload over.
    static let startOverLimit = 3
    /// The number of times that the offset is requested at once without progress.
    static let conflictLimit = 3
    /// The smallest part after a response with status 413.
    static let leastPartSize: Int64 = 65_536

    let kind: ResumableUpload.Kind
    private(set) var length: Int64
    /// Whether the upload is created. If not, the URL of the request is the URL of the upload.
    let isCreated: Bool
    private(set) var partSize: Int64
    private var leastAppend: Int64 = 0
    private var mustDiscover: Bool
    /// The URL of the upload; `nil` until it is created.
    private(set) var address: URL?
    /// The offset that the server has confirmed; `nil` if the server must be asked.
    private(set) var offset: Int64?
    /// Whether a message was sent that completes the upload, so that the server could have acted on it. A new upload
    /// could then act twice.
    private(set) var mayBeComplete = false
    /// The value of ``mayBeComplete`` before the current message.
    private var couldBeComplete = false
    /// Whether a response has shown that the URL of the upload is one.
    private(set) var isProven: Bool
    private var farthest: Int64 = 0
    private var hasGained = false
    private var startOverCount = 0
    private var conflictCount = 0

    /// - Parameters:
    ///   - address: The URL of an upload that exists.
    ///   - mayBeComplete: Whether an earlier process has sent the message that completes it.
    init(
        _ kind: ResumableUpload.Kind,
        length: Int64,
        partSize: Int64,
        isCreated: Bool = true,
        isOptional: Bool = false,
        address: URL? = nil,
        mayBeComplete: Bool = false
    ) {
        (self.kind, self.length, self.isCreated) = (kind, length, isCreated)
        self.partSize = max(1, partSize)
        self.address = address
        self.mayBeComplete = mayBeComplete
        mustDiscover = isOptional && address == nil && isCreated
        isProven = address != nil && isCreated
    }

    // MARK: - The next message

    var next: Message {
        if mustDiscover { return .discover }
        guard address != nil else { return .create }
        guard let offset else { return .ask }
        let end = length - offset <= step ? length : offset + step
        guard end == length else { return .append(offset..<end, completes: false) }
        // The minimum does not apply to the message that completes the upload.
        let completes = kind == .tus || end == offset || end - offset < leastAppend
        return .append(offset..<end, completes: completes)
    }

    /// The length of a part.
    private var step: Int64 { max(partSize, leastAppend) }

    /// Whether a message can be interrupted and the upload resumed afterwards. A message that completes the upload is
    /// left to its end.
    func canStop(_ message: Message) -> Bool { message != .create && !completes(message) }

    /// Returns whether the message completes the upload.
    func completes(_ message: Message) -> Bool {
        switch message {
        case .append(_, let completes): completes
        case .create: kind == .tus && length == 0
        case .discover, .ask: false
        }
    }

    /// Notes that a message is about to be sent.
    mutating func willSend(_ message: Message) {
        couldBeComplete = mayBeComplete
        if completes(message) { mayBeComplete = true }
    }

    /// Notes that a message was interrupted.
    mutating func stopped() { offset = nil }

    /// Returns whether the server has confirmed more bytes than before, and forgets it.
    mutating func takeProgress() -> Bool {
        defer { hasGained = false }
        return hasGained
    }

    // MARK: - Responses

    mutating func receive(_ reply: Reply, to message: Message) -> Verdict {
        // The head of a response that was cut off does not count if the message can be repeated.
        let reply = reply.isCut && !(completes(message) && isEnd(reply)) ? Reply() : reply
        if reply.status == nil, !reply.mayHaveArrived { mayBeComplete = couldBeComplete }
        return switch message {
        case .discover: discovered(reply)
        case .create: created(reply)
        case .ask: asked(reply)
        case .append(let range, let completes): appended(reply, range, completes)
        }
    }

    private mutating func discovered(_ reply: Reply) -> Verdict {
        guard let status = reply.status, status < 500 || status == 501, status != 429, status != 408 else {
            return .failed
        }
        let isSupported =
            switch kind {
            case .tus:
                Self.list(reply.headers, "Tus-Version").contains("1.0.0")
                    && Self.list(reply.headers, "Tus-Extension").contains("creation")
            case .http:
                // A server without limits sends `min-size=0`.
                reply.headers["Upload-Limit"] != nil && (limits(reply)["min-size"] ?? 0) <= length
            }
        guard isSupported, 200..<300 ~= status else { return .unsupported }
        mustDiscover = false
        return noteLimits(reply) ?? .proceed
    }

    private mutating func created(_ reply: Reply) -> Verdict {
        if reply.status == 412, kind == .tus, let versions = reply.headers["Tus-Version"] {
            return .fail(.unacceptableStatus, "the server supports tus \(versions), but not 1.0.0")
        }
        guard let status = reply.status, 200..<300 ~= status else { return mayBeComplete ? .rejected : .failed }
        let isKnown = kind == .http || reply.headers["Tus-Resumable"] != nil
        guard isKnown, let location = reply.headers["Location"], let base = reply.url else {
            return .fail(
                .badServerResponse,
                "the server does not support \(name), because its response has no "
                    + (isKnown ? "Location" : "Tus-Resumable") + "; add .ifSupported to send the body in one message"
            )
        }
        do throws(NetworkError) {
            let address = try URLBuilder.url(resolving: location, against: base, what: "the Location of the upload")
            guard base.scheme?.lowercased() != "https" || address.scheme?.lowercased() == "https" else {
                return .fail(.badServerResponse, "the Location of the upload leads from https to http")
            }
            self.address = address
        } catch {
            return .fail(.badServerResponse, error.message ?? "the Location of the upload is invalid")
        }
        if let failure = noteLimits(reply) { return failure }
        // A server that ignores the protocol can send a Location too. Request the offset first, which shows that.
        isProven = kind == .tus || Self.isComplete(reply.headers) == false
        offset = isProven ? 0 : nil
        return completes(.create) ? .complete : .proceed
    }

    private mutating func asked(_ reply: Reply) -> Verdict {
        guard let status = reply.status else { return .failed }
        if !isProven, isCreated, 400..<500 ~= status {
            let message = "the server does not support \(name): the URL that it sent is not an upload"
            return .fail(.badServerResponse, message)
        }
        // In tus, 403 is also the status of an upload that does not exist.
        if [403, 404, 410].contains(status) { return startOver("the server no longer has the upload") }
        guard 200..<300 ~= status else { return .failed }
        let count = Self.number(reply.headers, "Upload-Offset")
        if isEnd(reply) {
            guard mayBeComplete || count == length else {
                return .fail(.badServerResponse, "the server ended the upload at \(count ?? 0) of \(length) bytes")
            }
            return .completeWithoutResponse
        }
        guard let found = count else {
            return .fail(.badServerResponse, "the server does not support \(name): it sends no Upload-Offset")
        }
        let other = Self.number(reply.headers, "Upload-Length").flatMap { $0 == length ? nil : $0 }
        guard found <= length, other == nil else {
            return startOver("the server's upload has \(other ?? found) bytes instead of \(length)")
        }
        if let failure = noteLimits(reply) { return failure }
        isProven = true
        if kind == .tus, found == length { return .complete }
        // A server that has all bytes can still be busy with the message that completes the upload.
        if found < length { mayBeComplete = false }
        confirm(found)
        return .proceed
    }

    private mutating func appended(_ reply: Reply, _ range: Range<Int64>, _ completes: Bool) -> Verdict {
        offset = nil
        guard let status = reply.status else { return .failed }
        let isFinal = isEnd(reply)
        guard 200..<300 ~= status else {
            // The server has processed the upload, and this is the result.
            if isFinal { return .rejected }
            switch status {
            case 404, 410:
                // The server has not taken this message. It may have taken an earlier one of the call.
                if reply.isFirst { mayBeComplete = couldBeComplete }
                return startOver("the server no longer has the upload")
            case 409: return conflict(or: .failed)
            case 413 where range.count > max(Self.leastPartSize, leastAppend):
                partSize = max(Self.leastPartSize, Int64(range.count) / 2)
                if let failure = noteLimits(reply) { return failure }
                return .proceed
            default: return .failed
            }
        }
        if isFinal {
            guard completes else {
                let message = "the server ended the upload at \(range.upperBound) of \(length) bytes"
                return .fail(.badServerResponse, message)
            }
            return reply.isCut ? .completeWithoutResponse : .complete
        }
        let known = kind == .http ? range.upperBound : nil
        guard let found = Self.number(reply.headers, "Upload-Offset") ?? known, found > range.lowerBound,
            found <= range.upperBound, !(kind == .http && completes)
        else {
            let message = "the server does not take the bytes from \(range.lowerBound) on"
            return conflict(or: .fail(.badServerResponse, message))
        }
        confirm(found)
        if kind == .tus, found == length { return .complete }
        guard found == range.upperBound || Self.isGain(found - range.lowerBound, of: Int64(range.count)) else {
            return conflict(or: .fail(.badServerResponse, "the server takes only a few bytes of each part"))
        }
        return .proceed
    }

    /// Returns whether so many bytes of a part are enough progress. A server that takes one byte of each part would
    /// otherwise receive each byte as often as a part has bytes.
    private static func isGain(_ count: Int64, of part: Int64) -> Bool { count >= part / 16 }

    /// Asks for the offset, unless that was done too often without progress.
    private mutating func conflict(or verdict: Verdict) -> Verdict {
        conflictCount += 1
        return conflictCount > Self.conflictLimit ? verdict : .proceed
    }

    private mutating func confirm(_ found: Int64) {
        offset = found
        guard found > farthest else { return }
        if found == length || Self.isGain(found - farthest, of: step) { conflictCount = 0 }
        (farthest, hasGained) = (found, true)
    }

    /// Returns the message of an upload that cannot begin again.
    static func tooLate(_ reason: String) -> String {
        "\(reason), after all bytes were sent; the server may have processed them"
    }

    /// Begins again, unless the server could have acted on the upload.
    ///
    /// - Parameter length: The new length of the bytes. Defaults to `nil`: the same.
    mutating func startOver(_ reason: String, length: Int64? = nil) -> Verdict {
        startOverCount += 1
        guard !mayBeComplete else { return .fail(.unacceptableStatus, Self.tooLate(reason)) }
        guard isCreated, startOverCount <= Self.startOverLimit else { return .fail(.unacceptableStatus, reason) }
        if let length { self.length = length }
        (address, offset, isProven, farthest, hasGained, conflictCount) = (nil, nil, false, 0, false, 0)
        return .startOver(reason)
    }

    // MARK: - Fields

    /// The name of the protocol for messages.
    private var name: String { kind == .tus ? "tus" : "resumable uploads" }

    /// Applies the server's limits.
    ///
    /// - Returns: the failure if the upload is too long, or if no part fits the limits; otherwise `nil`.
    private mutating func noteLimits(_ reply: Reply) -> Verdict? {
        let limits = limits(reply)
        if let most = limits["max-size"], most < length {
            return .fail(.unacceptableStatus, "the server takes at most \(most) bytes, but the upload has \(length)")
        }
        let (least, most) = (limits["min-append-size"] ?? 0, limits["max-append-size"] ?? .max)
        guard most > 0, least <= most else {
            let message = "the server's limits allow no part: max-append-size=\(most), min-append-size=\(least)"
            return .fail(.badServerResponse, message)
        }
        partSize = min(partSize, most)
        if least > 0 { leastAppend = min(least, length) }
        return nil
    }

    private func limits(_ reply: Reply) -> [String: Int64] {
        guard kind == .http else {
            return Self.number(reply.headers, "Tus-Max-Size").map { ["max-size": $0] } ?? [:]
        }
        var limits: [String: Int64] = [:]
        for member in Self.list(reply.headers, "Upload-Limit") {
            let parts = member.split(separator: ";", maxSplits: 1)[0].split(separator: "=", maxSplits: 1)
            if parts.count == 2, let value = Self.number(String(parts[1])) { limits[String(parts[0])] = value }
        }
        return limits
    }

    private static func list(_ headers: HTTPHeaders, _ name: String) -> [String] {
        (headers[name] ?? "").split(separator: ",").map(\.trimmed).filter { !$0.isEmpty }
    }

    /// Returns whether a response says that the upload has ended. Only the IETF's protocol has a field for that.
    private func isEnd(_ reply: Reply) -> Bool { kind == .http && Self.isComplete(reply.headers) == true }

    private static func isComplete(_ headers: HTTPHeaders) -> Bool? {
        headers.single("Upload-Complete", .unanimous) { ["?1": true, "?0": false][$0.trimmed] ?? false }
    }

    private static func number(_ headers: HTTPHeaders, _ name: String) -> Int64? {
        headers.single(name, .unanimous) { number($0.trimmed) }
    }

    private static func number(_ text: String) -> Int64? {
        guard !text.isEmpty, text.utf8.allSatisfy(\.isDigit) else { return nil }
        return Int64(text)
    }
}
