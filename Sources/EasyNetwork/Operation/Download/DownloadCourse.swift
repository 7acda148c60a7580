import Foundation

/// What a download has, asks for next, and makes of the answers: a value.
///
/// A file comes in one segment, or in several at once. Each is asked for with what is there already: `Range`, and
/// `If-Range` with a strong validator, so that a file that has changed comes whole (RFC 9110, sections 13.1.5 and 14).
struct DownloadCourse: Sendable {
    /// What is asked for instead of the whole.
    struct Question: Equatable, Sendable {
        var lower: Int64
        /// Behind the last byte; nil for the rest.
        var upper: Int64?
        var validator: RangeValidator

        var range: String { "bytes=\(lower)-" + (upper.map { String($0 - 1) } ?? "") }
    }

    enum Answer: Equatable, Sendable {
        /// It is no part of the file.
        case gather
        /// The bytes come, from where the segment has come to.
        case take
        /// The file comes whole; what is there is given up.
        case takeAnew
        /// All is there already.
        case complete
        /// What is there has been given up; the file is to be asked for anew.
        case startOver
        case fail(NetworkError.Code, String)
    }

    /// What an answer has brought of a segment.
    private struct Arrival: Sendable {
        /// Bytes that have come; not all may have been written.
        var count: Int64
        /// The place behind the last byte of the range under way; nil for the whole.
        var end: Int64?
    }

    /// A segment is not made shorter than this, in bytes.
    static let segmentMinimum: Int64 = 1_048_576

    private(set) var segments: [PartRecord.Segment]
    private var arrivals: [Arrival]
    private(set) var total: Int64?
    /// The length that the file had under the same entity tag, where an answer says none.
    private var expectedTotal: Int64?
    private var validator: RangeValidator?
    private var segmentLimit: Int
    private let resource: String
    private let hasDigest: Bool
    /// Where the bytes come from, as ``PartRecord/resource`` and ``PartRecord/location``.
    private var origin: (resource: String?, location: String?)
    private let boot: String?

    /// - Parameters:
    ///   - record: what is there; nil for nothing.
    ///   - resource: the digest of the address that is asked for.
    ///   - hasDigest: whether the file will be compared with a digest.
    init(
        _ record: PartRecord? = nil,
        resource: String,
        boot: String?,
        segmentLimit: Int = 1,
        hasDigest: Bool = false
    ) {
        self.resource = resource
        self.boot = boot
        self.segmentLimit = segmentLimit
        self.hasDigest = hasDigest
        segments = record?.segments ?? [PartRecord.Segment(lower: 0)]
        arrivals = segments.map { Arrival(count: $0.count) }
        total = record?.total
        validator = record?.validator
        origin = (record?.resource, record?.location)
    }

    /// How many bytes are there.
    var count: Int64 { segments.reduce(0) { $0 + $1.count } }
    var isComplete: Bool { segments.allSatisfy(\.isComplete) }

    /// What the journal is to say; nil when what is there is of no use later.
    var record: PartRecord? {
        guard let validator else { return nil }
        return PartRecord(
            resource: origin.resource,
            location: origin.location,
            validator: validator,
            total: total,
            segments: segments,
            boot: boot
        )
    }

    // MARK: - Asking

    /// Begins to ask, for the first time or after a pause.
    ///
    /// - Returns: the segments to ask for.
    mutating func begin() -> [Int] {
        arrivals = segments.map { Arrival(count: $0.count) }
        let missing = segments.indices.filter { !segments[$0].isComplete }
        // When all is there, the server is still to say whether it is what it has now.
        return missing.isEmpty ? [0] : missing
    }

    /// - Parameter location: the digest of the address that is asked, which a redirect may have named.
    /// - Returns: nil for the whole file.
    func question(for index: Int, at location: String? = nil) -> Question? {
        guard let validator, segments.indices.contains(index), count > 0 || segments.count > 1,
            isOrigin(location, validator)
        else { return nil }
        // An attempt that broke off may have brought more than had been written when it began.
        let segment = segments[index]
        if segment.isComplete { return Question(lower: total ?? 0, validator: validator) }
        let isLast = index == segments.count - 1
        return Question(
            lower: segment.lower + arrivals[index].count,
            upper: isLast ? nil : segment.upper,
            validator: validator
        )
    }

    /// A validator tells states of one resource apart, and not resources (RFC 9110, section 8.8). A tag may be taken for
    /// that of another address when a digest will show what it was.
    private func isOrigin(_ location: String?, _ validator: RangeValidator) -> Bool {
        if origin.resource == resource { return true }
        if let location, location == origin.location { return true }
        if case .entityTag = validator { return hasDigest }
        return false
    }

    /// A range from here joins what is there.
    private mutating func join(_ location: String?) {
        guard origin.location != location || location == nil else { return }
        origin.location = nil
        if origin.resource != resource { origin.resource = nil }
    }

    // MARK: - Answers

    /// - Parameters:
    ///   - question: what was asked for; nil for the whole file.
    ///   - location: the digest of the address that answers.
    ///   - isAccepted: whether the answer is a success.
    ///   - mayContinue: whether it can be continued: it answers a GET that asked for no range of its own.
    mutating func answer(
        _ head: TransportHead,
        to question: Question?,
        of index: Int,
        at location: String? = nil,
        isAccepted: Bool,
        mayContinue: Bool = true
    ) -> Answer {
        if let question, head.statusCode == 416 { return unsatisfied(head, question, of: index) }
        // Before it is asked whether the answer is accepted: the whole was, and a range need not repeat its type
        // (section 15.3.7).
        if let question, head.statusCode == 206 {
            guard let range = fittingRange(head, question) else { return giveUp() }
            arrivals[index].end = range.upperBound
            join(location)
            return .take
        }
        guard isAccepted else { return .gather }
        // To these there is no content, so they are no file (sections 15.3.5, 15.3.6 and 15.4.5).
        guard ![204, 205, 304].contains(head.statusCode) else {
            return .fail(.unacceptableStatus, "an answer with status \(head.statusCode) has no content, and is no file")
        }
        guard let question else {
            // The whole is no segment, also where what is there cannot be gone on with: to a POST, say.
            guard index == 0 else { return giveUp() }
            guard head.statusCode != 206 || !mayContinue else {
                return .fail(.badServerResponse, "the answer is a range that nobody asked for")
            }
            beginAnew(head, at: location, mayContinue: mayContinue)
            return .takeAnew
        }
        // The whole (section 15.3.1), whatever its Content-Range says (section 14.4). It cannot be another one under the
        // same tag; a part may be what it is.
        var expected: Int64?
        if case .entityTag = question.validator, RangeValidator(head.headers) == question.validator,
            !Self.isCoded(head.headers)
        {
            let (known, least) = (total, count)
            if let length = Self.length(head.headers), known.map({ $0 != length }) ?? (length < least) {
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
        beginAnew(head, at: location, mayContinue: true)
        if total == nil { expectedTotal = expected }
        return .takeAnew
    }

    /// - Returns: the range of an answer, when it is what was asked for, of the same file.
    private mutating func fittingRange(_ head: TransportHead, _ question: Question) -> Range<Int64>? {
        guard !Self.isCoded(head.headers), !Self.hasSeveralRanges(head.headers),
            let content = head.headers["Content-Range"].flatMap(ContentRange.init),
            let range = content.range, range.lowerBound == question.lower,
            // Or else nobody knows whether the file ends where the range does.
            let found = content.total ?? total
        else { return nil }
        if let upper = question.upper, range.upperBound > upper { return nil }
        if let total = total ?? expectedTotal, found != total { return nil }
        if let length = Self.length(head.headers), length != range.upperBound - range.lowerBound { return nil }
        // Also where a server knows no If-Range.
        switch question.validator {
        case .entityTag:
            // A 206 repeats it (section 15.3.7), and ranges without one must not be combined (section 15.3.7.3).
            guard head.headers["ETag"]?.trimmed == question.validator.fieldValue else { return nil }
        case .date:
            // It need not be repeated.
            guard
                head.headers["Last-Modified"]?.trimmed ?? question.validator.fieldValue == question.validator.fieldValue
            else { return nil }
        }
        if total == nil {
            total = found
            segments[segments.count - 1].upper = found
        }
        return range
    }

    /// RFC 9110, section 15.5.17: the file ends before the place that was asked for.
    private mutating func unsatisfied(_ head: TransportHead, _ question: Question, of index: Int) -> Answer {
        let found = head.headers["Content-Range"].flatMap(ContentRange.init)?.total
        guard let found, found == question.lower, total ?? found == found else { return giveUp() }
        // It need not repeat the tag; another one is that of another state of the file.
        if case .entityTag(let tag) = question.validator, let other = head.headers["ETag"], other.trimmed != tag {
            return giveUp()
        }
        total = found
        if segments.count == 1 { segments[0].upper = found }
        // A segment that has all is asked about when its connection broke off behind its last byte.
        return segments[index].isComplete ? .complete : giveUp()
    }

    private mutating func beginAnew(_ head: TransportHead, at location: String?, mayContinue: Bool) {
        let isCoded = Self.isCoded(head.headers)
        total = isCoded ? nil : Self.length(head.headers)
        expectedTotal = nil
        validator = isCoded || !mayContinue ? nil : RangeValidator(head.headers)
        origin = (resource, location)
        var count: Int64 = 1
        let units = head.headers.values(for: "Accept-Ranges").joined(separator: ",").lowercased()
        if let total, validator != nil, units.contains("bytes") {
            count = max(1, min(Int64(segmentLimit), total / Self.segmentMinimum))
        }
        segments = (0..<count).map { index in
            guard let total else { return PartRecord.Segment(lower: 0) }
            let bound = { (index: Int64) in total / count * index + total % count * index / count }
            return PartRecord.Segment(lower: bound(index), upper: bound(index + 1))
        }
        arrivals = segments.map { _ in Arrival(count: 0) }
    }

    private mutating func giveUp() -> Answer {
        drop()
        return .startOver
    }

    /// Nothing is there any more; from now on the file comes in one.
    mutating func drop() {
        segments = [PartRecord.Segment(lower: 0)]
        arrivals = [Arrival(count: 0)]
        total = nil
        expectedTotal = nil
        validator = nil
        segmentLimit = 1
    }

    /// Whether the bytes are not those of the file (RFC 9110, section 8.4): a range of them is not one of it.
    private static func isCoded(_ headers: HTTPHeaders) -> Bool {
        guard let coding = headers["Content-Encoding"] else { return false }
        return !coding.trimmed.isEqualIgnoringASCIICase(to: "identity")
    }

    /// Several ranges come with heads between them (RFC 9110, section 14.6).
    private static func hasSeveralRanges(_ headers: HTTPHeaders) -> Bool {
        headers["Content-Type"].flatMap(MediaType.init)?.essence == "multipart/byteranges"
    }

    private static func length(_ headers: HTTPHeaders) -> Int64? {
        headers["Content-Length"].flatMap { $0.trimmed.utf8.allSatisfy(\.isDigit) ? Int64($0.trimmed) : nil }
    }

    // MARK: - Bytes

    /// Bytes have come.
    ///
    /// - Returns: where they go, how many of them are of the segment and of the range that was named, and whether that is
    ///   enough, though the server would send on.
    mutating func receive(_ count: Int, of index: Int) -> (offset: Int64, count: Int, isEnough: Bool) {
        let segment = segments[index]
        let offset = segment.lower + arrivals[index].count
        let end = min(segment.upper ?? .max, arrivals[index].end ?? .max)
        let wanted = min(Int64(count), max(0, end - offset))
        arrivals[index].count += wanted
        let isFull = segment.upper == offset + wanted
        return (offset, Int(wanted), wanted < count || (isFull && segment.upper != total))
    }

    mutating func wrote(_ count: Int, of index: Int) {
        segments[index].count += Int64(count)
    }

    /// The answer has come to its end.
    ///
    /// - Returns: what is wrong with that; nil when nothing is.
    mutating func end(of index: Int) -> NetworkError? {
        let reached = segments[index].lower + arrivals[index].count
        guard let upper = segments[index].upper else {
            if let expectedTotal, reached != expectedTotal {
                drop()
                return NetworkError(
                    code: .badServerResponse,
                    message: "the whole file has \(reached) bytes, and had \(expectedTotal) with the same ETag"
                )
            }
            segments[index].upper = reached
            total = reached
            return nil
        }
        guard reached != upper else { return nil }
        return NetworkError(code: .connectionLost, message: "the file broke off at byte \(reached) of \(upper)")
    }

    /// The disk has what had been written when it was asked.
    mutating func synced(_ counts: [Int64]) {
        guard counts.count == segments.count else { return }
        for (index, count) in counts.enumerated() where count <= segments[index].count {
            segments[index].safeCount = count
        }
    }
}
