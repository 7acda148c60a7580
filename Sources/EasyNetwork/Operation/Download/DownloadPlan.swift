import Foundation

/// The rules of a download: which bytes it has, which ranges it requests, and how it uses a response. A value without
/// I/O.
///
/// A file is fetched in one segment, or in several at once. The missing rest of each segment is requested with `Range`.
/// `If-Range` with a strong validator makes the server send a changed file whole (RFC 9110, sections 13.1.5 and 14).
struct DownloadPlan: Sendable {
    typealias Segment = ResumeJournal.Segment

    /// A range of the file to request.
    struct RangeRequest: Equatable, Sendable {
        var lower: Int64
        /// The offset after the last byte; `nil` for the rest of the file.
        var upper: Int64?
        var validator: RangeValidator

        var range: String { "bytes=\(lower)-" + (upper.map { String($0 - 1) } ?? "") }
    }

    enum Answer: Equatable, Sendable {
        /// The response is not a part of the file.
        case collect
        /// The response has the next bytes of the segment, up to this offset.
        case range(upTo: Int64)
        /// The response has the whole file. The bytes fetched before no longer count.
        case whole
        /// All bytes have already been fetched.
        case complete
        /// The response does not match the bytes fetched before, which no longer count. Request the whole file.
        case startOver
        case fail(NetworkError.Code, String)
    }

    /// The minimum length of a segment, in bytes.
    static let segmentMinimum: Int64 = 1_048_576

    private var state: ResumeJournal
    /// The number of times that the file was begun or given up.
    private(set) var beginningCount = 0
    /// The length that the file had under the same entity tag, if the response has no length.
    private var expectedTotal: Int64?
    private var segmentLimit: Int
    /// Whether the server has declared that it supports ranges, or has sent one.
    private var hasRanges = false
    /// Whether the server has sent the whole file although its rest was requested.
    private var hasFailedToResume = false
    private let resource: String
    private let hasDigest: Bool
    /// The largest number of bytes that each segment ever had.
    private var farthest: [Int: Int64] = [:]

    /// - Parameters:
    ///   - journal: the bytes of an earlier download; `nil` if there are none.
    ///   - resource: the digest of the requested URL.
    ///   - hasDigest: whether the file will be compared with a digest.
    init(
        _ journal: ResumeJournal? = nil,
        resource: String,
        boot: String?,
        segmentLimit: Int = 1,
        hasDigest: Bool = false
    ) {
        self.resource = resource
        self.segmentLimit = segmentLimit
        self.hasDigest = hasDigest
        state = journal ?? ResumeJournal()
        state.boot = boot
        for index in segments.indices { _ = hasGained(index) }
    }

    var segments: [Segment] { state.segments }
    var total: Int64? { state.total }
    /// The number of bytes that have been fetched.
    var count: Int64 { segments.reduce(0) { $0 + $1.count } }
    var isComplete: Bool { segments.allSatisfy(\.isComplete) }

    /// Whether a fetch that stops now can be resumed. It is `false` if the server has not declared ranges, or has
    /// failed to send one.
    var canResume: Bool { state.validator != nil && hasRanges && !hasFailedToResume }

    /// The journal of the part; `nil` if a later download could not use it.
    var journal: ResumeJournal? { state.validator == nil ? nil : state }

    // MARK: - Asking

    /// The segments to request. If all are complete, the first one, so that the server can confirm that the file has
    /// not changed.
    var missing: [Int] {
        let missing = segments.indices.filter { !segments[$0].isComplete }
        return missing.isEmpty ? [0] : missing
    }

    /// Returns the range to request for a segment.
    ///
    /// - Parameter location: the digest of the URL of the request, which can be the target of a redirect.
    /// - Returns: the range; `nil` for the whole file.
    func question(for index: Int, at location: String? = nil) -> RangeRequest? {
        guard let validator = state.validator, segments.indices.contains(index), count > 0 || segments.count > 1,
            isOrigin(location, validator)
        else { return nil }
        let segment = segments[index]
        if segment.isComplete { return RangeRequest(lower: total ?? 0, validator: validator) }
        let upper = index == segments.count - 1 ? nil : segment.upper
        return RangeRequest(lower: segment.lower + segment.count, upper: upper, validator: validator)
    }

    /// Returns whether the validator applies to the URL. A validator distinguishes states of one resource, not
    /// resources (RFC 9110, section 8.8). An entity tag can apply to another URL if a digest will check the file.
    private func isOrigin(_ location: String?, _ validator: RangeValidator) -> Bool {
        if state.resource == resource { return true }
        if let location, location == state.location { return true }
        if case .entityTag = validator { return hasDigest }
        return false
    }

    // MARK: - Answers

    /// Decides how a response is used.
    ///
    /// - Parameters:
    ///   - question: the requested range; `nil` for the whole file.
    ///   - location: the digest of the URL that responded.
    ///   - isAccepted: whether the response is a success.
    ///   - mayContinue: whether the download can be resumed later. Only a GET request without the user's own range can.
    mutating func answer(
        _ head: TransportHead,
        to question: RangeRequest?,
        of index: Int,
        at location: String? = nil,
        isAccepted: Bool,
        mayContinue: Bool = true
    ) -> Answer {
        if let question, head.statusCode == 416 { return unsatisfied(head, question, of: index) }
        // Handle a range before checking `isAccepted`. The whole file was accepted, and a range need not repeat its
        // type (section 15.3.7).
        if let question, head.statusCode == 206 {
            guard let range = fittingRange(head, question) else { return giveUp() }
            join(location)
            hasRanges = true
            return .range(upTo: range.upperBound)
        }
        guard isAccepted else { return .collect }
        // Responses with these statuses have no content (sections 15.3.5, 15.3.6 and 15.4.5).
        guard ![204, 205, 304].contains(head.statusCode) else {
            let message = "a response with status \(head.statusCode) has no content, so it is not a file"
            return .fail(.unacceptableStatus, message)
        }
        guard let question else {
            // A whole file, such as the response to a POST request, cannot fill a later segment.
            guard index == 0 else { return giveUp() }
            guard head.statusCode != 206 || !mayContinue else {
                return .fail(.badServerResponse, "the server sent a range that was not requested")
            }
            begin(head, at: location, mayContinue: mayContinue)
            return .whole
        }
        // The response has the whole file (section 15.3.1), whatever its Content-Range is (section 14.4). Under the
        // same tag, its length must be the same as before.
        var expected: Int64?
        if case .entityTag = question.validator, RangeValidator(head.headers) == question.validator,
            !Self.isCoded(head.headers)
        {
            let (known, least) = (total, count)
            if let length = head.headers.contentLength, known.map({ $0 != length }) ?? (length < least) {
                drop()
                let earlier = known.map { "\($0)" } ?? "at least \(least)"
                let message = "the whole file has \(length) bytes, but had \(earlier) with the same ETag"
                return .fail(.badServerResponse, message)
            }
            expected = known
        }
        guard segments.count == 1 else { return giveUp() }
        hasFailedToResume = true
        begin(head, at: location, mayContinue: true)
        if total == nil { expectedTotal = expected }
        return .whole
    }

    /// - Returns: the range of a response if it is the requested one, of the same file.
    private mutating func fittingRange(_ head: TransportHead, _ question: RangeRequest) -> Range<Int64>? {
        guard !Self.isCoded(head.headers),
            // A response with several ranges has a head before each (RFC 9110, section 14.6).
            MediaType(head.headers)?.essence != "multipart/byteranges",
            let content = ContentRange(head.headers),
            let range = content.range, range.lowerBound == question.lower,
            // Without a total length, the file might continue after the range.
            let found = content.total ?? total
        else { return nil }
        if let upper = question.upper, range.upperBound > upper { return nil }
        if let total = total ?? expectedTotal, found != total { return nil }
        if let length = head.headers.contentLength, length != range.upperBound - range.lowerBound { return nil }
        // Some servers don't support `If-Range`.
        guard !Self.isOtherState(head.headers, question.validator) else { return nil }
        // A 206 repeats the tag (section 15.3.7); ranges without one must not be combined (section 15.3.7.3).
        if case .entityTag = question.validator, head.headers["ETag"] == nil { return nil }
        if total == nil {
            state.total = found
            state.segments[segments.count - 1].upper = found
        }
        return range
    }

    /// Returns whether a response is of another state of the file. A response need not repeat the validator, but then
    /// it has no validator of the other kind.
    private static func isOtherState(_ headers: HTTPHeaders, _ validator: RangeValidator) -> Bool {
        let (hasTag, hasDate) = (headers["ETag"] != nil, headers["Last-Modified"] != nil)
        return switch validator {
        case .entityTag(let text): hasTag ? EntityTag(headers)?.text != text : hasDate
        case .date(let text):
            hasDate ? headers.single("Last-Modified", .unanimous, \.trimmed) != text : hasTag
        }
    }

    /// Notes that a range of another URL is added to the bytes fetched before.
    private mutating func join(_ location: String?) {
        guard state.location != location || location == nil else { return }
        state.location = nil
        if state.resource != resource { state.resource = nil }
    }

    /// Handles status 416: the file ends before the first requested byte (RFC 9110, section 15.5.17).
    private mutating func unsatisfied(_ head: TransportHead, _ question: RangeRequest, of index: Int) -> Answer {
        guard let found = ContentRange(head.headers)?.total, found == question.lower, total ?? found == found,
            !Self.isOtherState(head.headers, question.validator)
        else { return giveUp() }
        state.total = found
        if segments.count == 1 { state.segments[0].upper = found }
        return segments.indices.contains(index) && segments[index].isComplete ? .complete : giveUp()
    }

    private mutating func begin(_ head: TransportHead, at location: String?, mayContinue: Bool) {
        let isCoded = Self.isCoded(head.headers)
        beginningCount += 1
        state.total = isCoded ? nil : head.headers.contentLength
        expectedTotal = nil
        state.validator = isCoded || !mayContinue ? nil : RangeValidator(head.headers)
        (state.resource, state.location) = (resource, location)
        var count: Int64 = 1
        let units = head.headers.values(for: "Accept-Ranges").joined(separator: ",").lowercased()
        hasRanges = units.contains("bytes")
        if let total, state.validator != nil, hasRanges {
            count = max(1, min(Int64(segmentLimit), total / Self.segmentMinimum))
        }
        state.segments = (0..<count).map { index in
            guard let total else { return Segment(lower: 0) }
            let bound = { (index: Int64) in total / count * index + total % count * index / count }
            return Segment(lower: bound(index), upper: bound(index + 1))
        }
    }

    private mutating func giveUp() -> Answer {
        hasFailedToResume = true
        drop()
        return .startOver
    }

    /// Discards the bytes fetched before. The file is then fetched in one segment.
    mutating func drop() {
        beginningCount += 1
        state = ResumeJournal(boot: state.boot)
        expectedTotal = nil
        segmentLimit = 1
    }

    /// Whether the body is encoded (RFC 9110, section 8.4), so that its ranges are not ranges of the file.
    private static func isCoded(_ headers: HTTPHeaders) -> Bool {
        !headers.contentCodings.isEmpty
    }

    // MARK: - Bytes

    /// Returns where the next bytes of a segment are written.
    ///
    /// - Parameter end: the offset after the range that the server sends; `nil` for the whole file.
    /// - Returns: the offset, the number of bytes to write, and whether that is enough although the server would send
    ///   more.
    func place(_ count: Int, of index: Int, upTo end: Int64?) -> (offset: Int64, count: Int, isEnough: Bool) {
        let segment = segments[index]
        let offset = segment.lower + segment.count
        let bound = min(segment.upper ?? .max, end ?? .max)
        let wanted = min(Int64(count), max(0, bound - offset))
        let isFull = segment.upper == offset + wanted
        return (offset, Int(wanted), wanted < count || (isFull && segment.upper != total))
    }

    mutating func wrote(_ count: Int, of index: Int) {
        state.segments[index].count += Int64(count)
    }

    /// Notes that the response has ended.
    ///
    /// - Throws: the error if the response must not end at this offset.
    mutating func end(of index: Int) throws(NetworkError) {
        let reached = segments[index].lower + segments[index].count
        guard let upper = segments[index].upper else {
            if let expectedTotal, reached != expectedTotal {
                drop()
                let message = "the whole file has \(reached) bytes, but had \(expectedTotal) with the same ETag"
                throw NetworkError(code: .badServerResponse, message: message)
            }
            state.segments[index].upper = reached
            state.total = reached
            return
        }
        guard reached == upper else {
            let message = "the response ended at byte \(reached) of \(upper) of the file"
            throw NetworkError(code: .connectionLost, message: message)
        }
    }

    /// Returns whether a segment has more bytes than it ever had, which need not be fetched again. The first bytes of a
    /// file that is fetched from the beginning each time don't count.
    mutating func hasGained(_ index: Int) -> Bool {
        guard state.validator != nil, segments.indices.contains(index) else { return false }
        let before = farthest[index] ?? 0
        farthest[index] = max(before, segments[index].count)
        return segments[index].count > before
    }

    /// Notes that the disk has stored the bytes that had been written in an earlier state of the plan.
    mutating func synced(_ earlier: DownloadPlan) {
        guard earlier.beginningCount == beginningCount, earlier.segments.count == segments.count else { return }
        for (index, segment) in earlier.segments.enumerated() where segment.count <= segments[index].count {
            state.segments[index].safeCount = segment.count
        }
    }
}
