import EasyNetwork
import Foundation

/// The resumable uploads of a ``MockServer``, with tus 1.0.0 or the IETF's protocol.
///
/// ```swift
/// let server = try MockServer()
/// let uploads = server.routeUploads("/files", .tus)
/// uploads.failNextResponses(with: .reset)     // the server stores a part, and its response is lost
/// ```
///
/// The server stores only parts that arrive whole. The bodies of the requests are not kept in ``MockServer/requests``.
public final class MockUploads: Sendable {
    struct Upload: Sendable {
        let number: Int
        let length: Int
        var count = 0
        var bytes = Data()
        var isComplete = false
        let request: MockRequest
    }

    private struct State: Sendable {
        var uploads: [Int: Upload] = [:]
        var lastNumber = 0
        var completed: [Data] = []
        var faults = RequestFaults()
        var requestCount = 0
        /// The number of the request whose response is lost, from 0.
        var lostResponse: Int?
        /// The number of bytes of an upload after which a response never comes.
        var holdCount: Int?
        var conflictCount = 0
        var limits: String?
    }

    private let path: String
    private let kind: ResumableUpload.Kind
    private let answer: @Sendable (MockRequest, Data) -> MockResponse
    /// Gets the number of the upload, the offset and the bytes of each part, instead of keeping them.
    private let take: (@Sendable (Int, Int, Data) -> Void)?
    private let state = Watched(State())

    init(
        _ path: String,
        _ kind: ResumableUpload.Kind,
        limits: String?,
        take: (@Sendable (Int, Int, Data) -> Void)?,
        answer: @escaping @Sendable (MockRequest, Data) -> MockResponse
    ) {
        (self.path, self.kind, self.take, self.answer) = (path, kind, take, answer)
        state.update { $0.limits = limits }
    }

    /// The bytes of the complete uploads, in the order of their ends.
    public var completed: [Data] { state.value.completed }

    /// The number of bytes of each unfinished upload that the server has stored, in the order of their creation.
    public var offsets: [Int] {
        state.value.uploads.sorted { $0.key < $1.key }.filter { !$0.value.isComplete }.map(\.value.count)
    }

    /// Waits until the unfinished uploads together have at least `count` bytes, or an upload is complete.
    ///
    /// - Parameters:
    ///   - count: The number of bytes.
    ///   - timeout: The longest wait in seconds, so that a broken test ends. Defaults to 300.
    /// - Returns: `false` if the wait timed out or the task was cancelled.
    @discardableResult
    public func waitForBytes(_ count: Int, timeout: TimeInterval = 300) async -> Bool {
        await state.wait(timeout: timeout) { state in
            !state.completed.isEmpty || state.uploads.values.reduce(0) { $0 + $1.count } >= count
        }
    }

    /// Makes the next responses fail, after the server has acted on their requests.
    ///
    /// - Parameters:
    ///   - count: The number of responses. Defaults to 1.
    ///   - fault: The fault. Defaults to a reset connection.
    public func failNextResponses(_ count: Int = 1, with fault: MockResponse.Fault = .reset) {
        state.update { $0.faults.add(fault, count: count) }
    }

    /// Makes one response fail after the server has acted on its request, counted from 0.
    func failResponse(number: Int) {
        state.update { $0.lostResponse = number }
    }

    /// Never sends the response to the part after which an upload has that many bytes.
    func hold(after count: Int) {
        state.update { $0.holdCount = count }
    }

    /// Rejects the next parts with 409, as if their offsets were wrong.
    public func rejectNextOffsets(_ count: Int = 1) {
        state.update { $0.conflictCount += count }
    }

    /// Forgets all uploads. Requests to their URLs receive a 404.
    public func expire() {
        state.update { $0.uploads = [:] }
    }

    // MARK: - Requests

    func respond(to request: MockRequest) -> MockResponse {
        var response = request.path == path ? created(request) : existing(request)
        if kind == .tus { response.headers["Tus-Resumable"] = "1.0.0" }
        let fault = state.update { state -> MockResponse.Fault? in
            defer { state.requestCount += 1 }
            if let count = state.holdCount, state.uploads.values.contains(where: { $0.count >= count }) {
                state.holdCount = nil
                return .stall
            }
            return state.requestCount == state.lostResponse ? .reset : state.faults.next()
        }
        response.fault = response.fault ?? fault
        return response
    }

    private func created(_ request: MockRequest) -> MockResponse {
        if request.method == "OPTIONS" {
            let headers: HTTPHeaders =
                kind == .tus
                ? ["Tus-Version": "1.0.0", "Tus-Extension": "creation,termination"]
                : ["Upload-Limit": state.value.limits ?? "min-size=0"]
            return .status(204, headers: headers)
        }
        guard isValid(request), let length = number(request.headers["Upload-Length"]), request.body.isEmpty,
            kind == .tus ? request.method == "POST" : request.headers["Upload-Complete"] == "?0"
        else { return .status(400) }
        let (upload, limits) = state.update { state in
            state.lastNumber += 1
            let upload = Upload(
                number: state.lastNumber,
                length: length,
                isComplete: kind == .tus && length == 0,
                request: request
            )
            state.uploads[upload.number] = upload
            if upload.isComplete { state.completed.append(Data()) }
            return (upload, state.limits)
        }
        var headers: HTTPHeaders = ["Location": "\(path)/\(upload.number)"]
        if kind == .http {
            headers["Upload-Complete"] = "?0"
            headers["Upload-Limit"] = limits
        }
        return .status(201, headers: headers)
    }

    private func existing(_ request: MockRequest) -> MockResponse {
        guard isValid(request) else { return .status(kind == .tus ? 412 : 400) }
        let id = Int(request.path.dropFirst(path.utf8.count + 1)) ?? 0
        guard let upload = state.value.uploads[id] else { return .status(404) }
        switch request.method {
        case "HEAD":
            var headers: HTTPHeaders = [
                "Upload-Offset": "\(upload.count)", "Upload-Length": "\(upload.length)", "Cache-Control": "no-store",
            ]
            if kind == .http { headers["Upload-Complete"] = upload.isComplete ? "?1" : "?0" }
            return .status(kind == .tus ? 200 : 204, headers: headers)
        case "PATCH": return appended(request, id)
        case "DELETE":
            state.update { _ = $0.uploads.removeValue(forKey: id) }
            return .status(204)
        default: return .status(405)
        }
    }

    private func appended(_ request: MockRequest, _ id: Int) -> MockResponse {
        let type = kind == .tus ? "application/offset+octet-stream" : "application/partial-upload"
        guard request.headers["Content-Type"] == type, let offset = number(request.headers["Upload-Offset"]) else {
            return .status(415)
        }
        let isLast = request.headers["Upload-Complete"] == "?1"
        // A part is stored in one step, so that two requests at once cannot both append it.
        let (upload, isStored) = state.update { state -> (Upload?, Bool) in
            guard var upload = state.uploads[id], !upload.isComplete else { return (state.uploads[id], false) }
            if state.conflictCount > 0 {
                state.conflictCount -= 1
                return (upload, false)
            }
            guard offset == upload.count, offset + request.body.count <= upload.length else { return (upload, false) }
            upload.count += request.body.count
            if take == nil { upload.bytes.append(request.body) }
            upload.isComplete = upload.count == upload.length && (kind == .tus || isLast)
            if upload.isComplete { state.completed.append(upload.bytes) }
            state.uploads[id] = upload
            return (upload, true)
        }
        guard let upload else { return .status(404) }
        guard isStored else {
            var headers: HTTPHeaders = [:]
            if kind == .http { headers = ["Upload-Offset": "\(upload.count)", "Upload-Complete": "?0"] }
            return .status(409, headers: headers)
        }
        take?(id, offset, request.body)
        if upload.isComplete, kind == .http {
            var response = answer(upload.request, upload.bytes)
            response.headers["Upload-Complete"] = "?1"
            return response
        }
        if upload.isComplete { _ = answer(upload.request, upload.bytes) }
        var headers: HTTPHeaders = ["Upload-Offset": "\(upload.count)"]
        if kind == .http { headers["Upload-Complete"] = "?0" }
        return .status(204, headers: headers)
    }

    private func isValid(_ request: MockRequest) -> Bool {
        kind == .tus
            ? request.headers["Tus-Resumable"] == "1.0.0" : request.headers["Upload-Draft-Interop-Version"] == "8"
    }

    private func number(_ text: String?) -> Int? {
        text.flatMap { Int($0) }.flatMap { $0 >= 0 ? $0 : nil }
    }
}

extension MockServer {
    /// Accepts resumable uploads. Their URLs are below `path`.
    ///
    /// ```swift
    /// let uploads = server.routeUploads("/files", .http(), limits: "max-append-size=1000000")
    /// ```
    ///
    /// - Parameters:
    ///   - path: The path to which an upload is sent, without a trailing slash.
    ///   - protocol: `.tus` or `.http`. Its settings have no effect.
    ///   - limits: The field `Upload-Limit` of the IETF's protocol. Defaults to `nil`: no limits.
    ///   - answer: Called once for each complete upload, with the request that created it and all bytes. In the IETF's
    ///     protocol, it returns the last response. Defaults to an empty 200.
    @discardableResult
    public func routeUploads(
        _ path: String,
        _ protocol: ResumableUpload,
        limits: String? = nil,
        answer: @escaping @Sendable (MockRequest, Data) -> MockResponse = { _, _ in .status(200) }
    ) -> MockUploads {
        routeUploads(path, `protocol`, limits: limits, take: nil, answer: answer)
    }

    func routeUploads(
        _ path: String,
        _ protocol: ResumableUpload,
        limits: String? = nil,
        take: (@Sendable (Int, Int, Data) -> Void)?,
        answer: @escaping @Sendable (MockRequest, Data) -> MockResponse = { _, _ in .status(200) }
    ) -> MockUploads {
        let uploads = MockUploads(path, `protocol`.kind, limits: limits, take: take, answer: answer)
        for path in [path, path + "/*"] {
            addRoute("*", path, fault: nil, keepsBody: false) { uploads.respond(to: $0) }
        }
        return uploads
    }
}
