import Foundation

/// What a download has, asks for next, and makes of the answers: a value.
///
/// A file comes in one segment, or in several at once. Each is asked for with what is there already: `Range`, and
/// `If-Range` with a strong validator, so that a file that has changed comes whole (RFC 9110, sections 13.1.5 and 14).
struct DownloadCourse: Sendable {
    /// What is asked for instead of the whole.
    struct Question: Equatable, Sendable {
        var lower: Int
        /// Behind the last byte; nil for the rest.
        var upper: Int?
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

    /// A segment is not made shorter than this, in bytes.
    static let segmentMinimum = 1_048_576

    private(set) var segments: [PartRecord.Segment]
    /// Bytes that have come, of each segment; not all may have been written.
    private var received: [Int]
    private(set) var total: Int?
    private var validator: RangeValidator?
    private var segmentLimit: Int
    private let resource: String
    private let boot: String?

    /// - Parameter record: what is there; nil for nothing.
    init(_ record: PartRecord? = nil, resource: String, boot: String?, segmentLimit: Int = 1) {
        self.resource = resource
        self.boot = boot
        self.segmentLimit = segmentLimit
        segments = record?.segments ?? [PartRecord.Segment(lower: 0)]
        received = segments.map(\.count)
        total = record?.total
        validator = record?.validator
    }

    /// How many bytes are there.
    var count: Int { segments.reduce(0) { $0 + $1.count } }
    var isComplete: Bool { segments.allSatisfy(\.isComplete) }

    /// What the journal is to say; nil when what is there is of no use later.
    var record: PartRecord? {
        guard let validator else { return nil }
        return PartRecord(resource: resource, validator: validator, total: total, segments: segments, boot: boot)
    }

    // MARK: - Asking

    /// Begins to ask, for the first time or after a pause.
    ///
    /// - Returns: the segments to ask for.
    mutating func begin() -> [Int] {
        received = segments.map(\.count)
        let missing = segments.indices.filter { !segments[$0].isComplete }
        // When all is there, the server is still to say whether it is what it has now.
        return missing.isEmpty ? [0] : missing
    }

    /// - Returns: nil for the whole file.
    mutating func question(for index: Int) -> Question? {
        guard let validator, segments.indices.contains(index), count > 0 || segments.count > 1 else { return nil }
        // An attempt that broke off may have brought more than had been written when it began.
        let segment = segments[index]
        if segment.isComplete { return Question(lower: total ?? 0, validator: validator) }
        let isLast = index == segments.count - 1
        return Question(
            lower: segment.lower + received[index],
            upper: isLast ? nil : segment.upper,
            validator: validator
        )
    }

    // MARK: - Answers

    /// - Parameters:
    ///   - question: what was asked for; nil for the whole file.
    ///   - isAccepted: whether the answer is a success.
    ///   - mayContinue: whether it can be continued: it answers a GET that asked for no range of its own.
    mutating func answer(
        _ head: TransportHead,
        to question: Question?,
        of index: Int,
        isAccepted: Bool,
        mayContinue: Bool = true
    ) -> Answer {
        if let question, head.statusCode == 416 { return unsatisfied(head, question, of: index) }
        // Before it is asked whether the answer is accepted: the whole was, and a range need not repeat its type
        // (section 15.3.7).
        if let question, head.statusCode == 206 { return fits(head, question) ? .take : giveUp() }
        guard isAccepted else { return .gather }
        guard question != nil else {
            // The whole is no segment, also where what is there cannot be gone on with: to a POST, say.
            guard index == 0 else { return giveUp() }
            guard head.statusCode != 206 || !mayContinue else {
                return .fail(.badServerResponse, "the answer is a range that nobody asked for")
            }
            beginAnew(head, mayContinue: mayContinue)
            return .takeAnew
        }
        guard segments.count == 1 else { return giveUp() }
        beginAnew(head, mayContinue: true)
        return .takeAnew
    }

    /// Whether a part is the one that was asked for, of the same file.
    private mutating func fits(_ head: TransportHead, _ question: Question) -> Bool {
        guard !Self.isCoded(head.headers), let content = head.headers["Content-Range"].flatMap(ContentRange.init),
            let range = content.range, range.lowerBound == question.lower
        else { return false }
        if let upper = question.upper, range.upperBound > upper { return false }
        if let total, let found = content.total, found != total { return false }
        // Also where a server knows no If-Range. What it does not repeat (section 15.3.7) says nothing.
        let field =
            switch question.validator {
            case .entityTag: "ETag"
            case .date: "Last-Modified"
            }
        if let found = head.headers[field], found.trimmed != question.validator.fieldValue { return false }
        if total == nil, let found = content.total {
            total = found
            segments[segments.count - 1].upper = found
        }
        return true
    }

    /// RFC 9110, section 15.5.17: the file ends before the place that was asked for.
    private mutating func unsatisfied(_ head: TransportHead, _ question: Question, of index: Int) -> Answer {
        let found = head.headers["Content-Range"].flatMap(ContentRange.init)?.total
        guard let found, found == question.lower, total ?? found == found else { return giveUp() }
        total = found
        if segments.count == 1 { segments[0].upper = found }
        // A segment that has all is asked about when its connection broke off behind its last byte.
        return segments[index].isComplete ? .complete : giveUp()
    }

    private mutating func beginAnew(_ head: TransportHead, mayContinue: Bool) {
        let isCoded = Self.isCoded(head.headers)
        total = isCoded ? nil : head.headers["Content-Length"].flatMap { Int($0.trimmed) }.flatMap { $0 < 0 ? nil : $0 }
        validator = isCoded || !mayContinue ? nil : RangeValidator(head.headers)
        var count = 1
        let units = head.headers.values(for: "Accept-Ranges").joined(separator: ",").lowercased()
        if let total, validator != nil, units.contains("bytes") {
            count = max(1, min(segmentLimit, total / Self.segmentMinimum))
        }
        segments = (0..<count).map { index in
            guard let total else { return PartRecord.Segment(lower: 0) }
            let bound = { (index: Int) in total / count * index + total % count * index / count }
            return PartRecord.Segment(lower: bound(index), upper: bound(index + 1))
        }
        received = segments.map { _ in 0 }
    }

    private mutating func giveUp() -> Answer {
        drop()
        return .startOver
    }

    /// Nothing is there any more; from now on the file comes in one.
    mutating func drop() {
        segments = [PartRecord.Segment(lower: 0)]
        received = [0]
        total = nil
        validator = nil
        segmentLimit = 1
    }

    /// Whether the bytes are not those of the file (RFC 9110, section 8.4): a range of them is not one of it.
    private static func isCoded(_ headers: HTTPHeaders) -> Bool {
        guard let coding = headers["Content-Encoding"] else { return false }
        return !coding.trimmed.isEqualIgnoringASCIICase(to: "identity")
    }

    // MARK: - Bytes

    /// Bytes have come.
    ///
    /// - Returns: where they go, how many of them are of the segment, and whether it has all then, though the server would
    ///   send on.
    mutating func receive(_ count: Int, of index: Int) -> (offset: Int, count: Int, isEnough: Bool) {
        let segment = segments[index]
        let offset = segment.lower + received[index]
        let wanted = segment.upper.map { min(count, $0 - offset) } ?? count
        received[index] += wanted
        let isFull = segment.upper == offset + wanted
        return (offset, wanted, wanted < count || (isFull && segment.upper != total))
    }

    mutating func wrote(_ count: Int, of index: Int) {
        segments[index].count += count
    }

    /// The answer has come to its end.
    ///
    /// - Returns: what is wrong with that; nil when nothing is.
    mutating func end(of index: Int) -> String? {
        let reached = segments[index].lower + received[index]
        guard let upper = segments[index].upper else {
            segments[index].upper = reached
            total = reached
            return nil
        }
        return reached == upper ? nil : "the file broke off at byte \(reached) of \(upper)"
    }

    /// The disk has what had been written when it was asked.
    mutating func synced(_ counts: [Int]) {
        guard counts.count == segments.count else { return }
        for (index, count) in counts.enumerated() where count <= segments[index].count {
            segments[index].safeCount = count
        }
    }
}
