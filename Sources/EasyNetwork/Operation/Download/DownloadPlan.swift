import Foundation

/// The rules of a download: which bytes it has, which it asks for, and how an answer is used. A value without I/O.
///
/// A file comes in one segment, or in several at once. The missing rest of each is asked for with `Range`, and with
/// `If-Range` and a strong validator, so that a file that has changed comes whole (RFC 9110, sections 13.1.5 and 14).
struct DownloadPlan: Sendable {
    typealias Segment = ResumeJournal.Segment

    /// The range to ask for.
    struct Question: Equatable, Sendable {
        var lower: Int64
        /// The offset after the last byte; nil for the rest of the file.
        var upper: Int64?
        var validator: RangeValidator

        var range: String { "bytes=\(lower)-" + (upper.map { String($0 - 1) } ?? "") }
    }

    enum Answer: Equatable, Sendable {
        /// It is no part of the file.
        case collect
        /// It has the next bytes of the segment, up to this offset.
        case range(upTo: Int64)
        /// It has the whole file; what was there counts no more.
        case whole
        /// All is there already.
        case complete
        /// It does not fit what was there, which counts no more: ask for the whole file.
        case startOver
        case fail(NetworkError.Code, String)
    }

    /// The least length of a segment, in bytes.
    static let segmentMinimum: Int64 = 1_048_576

    private var state: ResumeJournal
    /// Counts how often the file was begun, or given up.
    private(set) var beginningCount = 0
    /// The length that the file had under the same entity tag, if the answer says none.
    private var expectedTotal: Int64?
    private var segmentLimit: Int
    /// Whether the server has said that it has ranges, or has sent one.
    private var hasRanges = false
    /// Whether the file has come from its beginning although its rest was asked for.
    private var hasFailedToResume = false
    private let resource: String
    private let hasDigest: Bool
    /// The most bytes that each segment ever had.
    private var farthest: [Int: Int64] = [:]

    /// - Parameters:
    ///   - journal: what is there; nil for nothing.
    ///   - resource: the digest of the address that is asked for.
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
    /// The number of bytes that are there.
    var count: Int64 { segments.reduce(0) { $0 + $1.count } }
    var isComplete: Bool { segments.allSatisfy(\.isComplete) }

    /// Whether a fetch that stops now can go on where it stopped. Without a promise of the server it counts as false, and
    /// after a broken one.
    var canResume: Bool { state.validator != nil && hasRanges && !hasFailedToResume }

    /// The journal of the part; nil when a later download could not use it.
    var journal: ResumeJournal? { state.validator == nil ? nil : state }

    // MARK: - Asking

    /// The segments to ask for. If all is there, the first: the server has yet to say that the file has not changed.
    var missing: [Int] {
        let missing = segments.indices.filter { !segments[$0].isComplete }
        return missing.isEmpty ? [0] : missing
    }

    /// - Parameter location: the digest of the address that is asked, which a redirect may have named.
    /// - Returns: nil for the whole file.
    func question(for index: Int, at location: String? = nil) -> Question? {
        guard let validator = state.validator, segments.indices.contains(index), count > 0 || segments.count > 1,
            isOrigin(location, validator)
        else { return nil }
        let segment = segments[index]
        if segment.isComplete { return Question(lower: total ?? 0, validator: validator) }
        let isLast = index == segments.count - 1
        return Question(
            lower: segment.lower + segment.count,
            upper: isLast ? nil : segment.upper,
            validator: validator
        )
    }

    /// A validator tells states of one resource apart, not resources (RFC 9110, section 8.8). An entity tag may count
    /// for another address when a digest will check the file.
    private func isOrigin(_ location: String?, _ validator: RangeValidator) -> Bool {
        if state.resource == resource { return true }
        if let location, location == state.location { return true }
        if case .entityTag = validator { return hasDigest }
        return false
    }

    // MARK: - Answers

    /// - Parameters:
    ///   - question: what was asked for; nil for the whole file.
    ///   - location: the digest of the address that answers.
    ///   - isAccepted: whether the answer is a success.
    ///   - mayContinue: whether it can be resumed later: it answers a GET without a range of the user's own.
    mutating func answer(
        _ head: TransportHead,
        to question: Question?,
        of index: Int,
        at location: String? = nil,
        isAccepted: Bool,
        mayContinue: Bool = true
    ) -> Answer {
        if let question, head.statusCode == 416 { return unsatisfied(head, question, of: index) }
        // Before `isAccepted` is looked at: the whole was accepted, and a range need not repeat its type (section
        // 15.3.7).
        if let question, head.statusCode == 206 {
            guard let range = fittingRange(head, question) else { return giveUp() }
            join(location)
            hasRanges = true
            return .range(upTo: range.upperBound)
        }
        guard isAccepted else { return .collect }
        // These have no content (sections 15.3.5, 15.3.6 and 15.4.5).
        guard ![204, 205, 304].contains(head.statusCode) else {
            return .fail(
                .unacceptableStatus,
                "an answer with status \(head.statusCode) has no content, so it is no file"
            )
        }
        guard let question else {
            // The whole file is not a segment, for instance the answer to a POST.
            guard index == 0 else { return giveUp() }
            guard head.statusCode != 206 || !mayContinue else {
                return .fail(.badServerResponse, "the server sent a range that was not asked for")
            }
            begin(head, at: location, mayContinue: mayContinue)
            return .whole
        }
        // The whole (section 15.3.1), whatever its Content-Range says (section 14.4). Its length is the same as before
        // under the same tag.
        var expected: Int64?
        if case .entityTag = question.validator, RangeValidator(head.headers) == question.validator,
            !Self.isCoded(head.headers)
        {
            let (known, least) = (total, count)
            if let length = head.headers.contentLength, known.map({ $0 != length }) ?? (length < least) {
                drop()
                let earlier = known.map { "\($0)" } ?? "at least \(least)"
                return .fail(
                    .badServerResponse,
                    "the whole file has \(length) bytes, and had \(earlier) with the same ETag"
                )
            }
            expected = known
        }
        guard segments.count == 1 else { return giveUp() }
        hasFailedToResume = true
        begin(head, at: location, mayContinue: true)
        if total == nil { expectedTotal = expected }
        return .whole
    }

    /// - Returns: the range of an answer when it is the one that was asked for, of the same file.
    private mutating func fittingRange(_ head: TransportHead, _ question: Question) -> Range<Int64>? {
        guard !Self.isCoded(head.headers), !Self.hasSeveralRanges(head.headers),
            let content = ContentRange(head.headers),
            let range = content.range, range.lowerBound == question.lower,
            // Without it, the file might go on after the range.
            let found = content.total ?? total
        else { return nil }
        if let upper = question.upper, range.upperBound > upper { return nil }
        if let total = total ?? expectedTotal, found != total { return nil }
        if let length = head.headers.contentLength, length != range.upperBound - range.lowerBound { return nil }
        // A server may not know If-Range.
        guard !Self.isOtherState(head.headers, question.validator) else { return nil }
        // A 206 repeats the tag (section 15.3.7); ranges without one must not be combined (section 15.3.7.3).
        if case .entityTag = question.validator, head.headers["ETag"] == nil { return nil }
        if total == nil {
            state.total = found
            state.segments[segments.count - 1].upper = found
        }
        return range
    }

    /// Whether a response is of another state of the file. It need not repeat the validator, but then it has no
    /// validator of the other kind.
    private static func isOtherState(_ headers: HTTPHeaders, _ validator: RangeValidator) -> Bool {
        let (hasTag, hasDate) = (headers["ETag"] != nil, headers["Last-Modified"] != nil)
        return switch validator {
        case .entityTag(let text): hasTag ? EntityTag(headers)?.text != text : hasDate
        case .date(let text):
            hasDate ? headers.single("Last-Modified", .unanimous, \.trimmed) != text : hasTag
        }
    }

    /// The range of another address joins what is there.
    private mutating func join(_ location: String?) {
        guard state.location != location || location == nil else { return }
        state.location = nil
        if state.resource != resource { state.resource = nil }
    }

    /// RFC 9110, section 15.5.17: the file ends before the first byte that was asked for.
    private mutating func unsatisfied(_ head: TransportHead, _ question: Question, of index: Int) -> Answer {
        let found = ContentRange(head.headers)?.total
        guard let found, found == question.lower, total ?? found == found else { return giveUp() }
        guard !Self.isOtherState(head.headers, question.validator) else { return giveUp() }
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

    /// Forgets what is there. From now on the file comes in one segment.
    mutating func drop() {
        beginningCount += 1
        state = ResumeJournal(boot: state.boot)
        expectedTotal = nil
        segmentLimit = 1
    }

    /// Whether the bytes are not those of the file (RFC 9110, section 8.4): their ranges are not ranges of it.
    private static func isCoded(_ headers: HTTPHeaders) -> Bool {
        !headers.contentCodings.isEmpty
    }

    /// Several ranges come with heads between them (RFC 9110, section 14.6).
    private static func hasSeveralRanges(_ headers: HTTPHeaders) -> Bool {
        MediaType(headers)?.essence == "multipart/byteranges"
    }

    // MARK: - Bytes

    /// Where the next bytes of a segment go.
    ///
    /// - Parameter end: the offset after the range that the server sends; nil for the whole file.
    /// - Returns: how many of the bytes are to be written, and whether that is enough although the server would send
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

    /// The answer has ended.
    ///
    /// - Throws: what is wrong with an end there.
    mutating func end(of index: Int) throws(NetworkError) {
        let reached = segments[index].lower + segments[index].count
        guard let upper = segments[index].upper else {
            if let expectedTotal, reached != expectedTotal {
                drop()
                throw NetworkError(
                    code: .badServerResponse,
                    message: "the whole file has \(reached) bytes, and had \(expectedTotal) with the same ETag"
                )
            }
            state.segments[index].upper = reached
            state.total = reached
            return
        }
        guard reached == upper else {
            throw NetworkError(code: .connectionLost, message: "the file broke off at byte \(reached) of \(upper)")
        }
    }

    /// Whether a segment has more bytes than it ever had, which need not come again. The first bytes of a file that
    /// comes from its beginning each time are no gain.
    mutating func hasGained(_ index: Int) -> Bool {
        guard state.validator != nil, segments.indices.contains(index) else { return false }
        let before = farthest[index] ?? 0
        farthest[index] = max(before, segments[index].count)
        return segments[index].count > before
    }

    /// The disk has what was written when it was asked.
    mutating func synced(_ counts: [Int64], beginning: Int) {
        guard beginning == beginningCount, counts.count == segments.count else { return }
        for (index, count) in counts.enumerated() where count <= segments[index].count {
            state.segments[index].safeCount = count
        }
    }
}
