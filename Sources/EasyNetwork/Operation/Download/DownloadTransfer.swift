import Foundation

/// Brings one file from its answers into its part: the shell around ``DownloadCourse``.
///
/// Bytes are handed over on the transport's thread and written on a queue of the download's own; the sender is held back
/// when more wait than a bound, and when they come faster than they may.
final class DownloadTransfer: Sendable {
    /// What is to be done to the file.
    fileprivate enum Work {
        case write(Piece)
        case other(@Sendable () -> Void)
    }

    /// Bytes, and where they go.
    fileprivate struct Piece {
        let data: Data
        let offset: Int64
        let index: Int
        /// That of the question that it answers.
        let number: Int
        let generation: Int
        let valve: BodyValve
        /// Whether the sender is held back since.
        let isHeld: Bool
    }

    struct State {
        var course: DownloadCourse
        /// What waits, in order. Most of it is done in one go: to wake a thread for each piece costs more than writing it.
        fileprivate var works: [Work] = []
        fileprivate var isWorking = false
        /// Why the bytes do not go to the file any more.
        var failure: NetworkError?
        /// Bytes that wait to be written.
        var backlog = 0
        /// The senders that may be held back until there are fewer.
        var held: [ObjectIdentifier: BodyValve] = [:]
        /// Bytes that the journal does not know of yet.
        var unsavedCount = 0
        var savedAt: TimeInterval
        var syncedAt: TimeInterval
        /// Counts the files that were begun: bytes of one that was given up are not written.
        var generation = 0
        /// Counts what was asked for.
        var questionCount = 0
        /// How often all was asked for anew.
        var round = 0
        /// The question of each segment that counts: what others still bring is ignored.
        var questions: [Int: Int] = [:]

        func isCurrent(_ question: Int, of index: Int, _ generation: Int) -> Bool {
            self.generation == generation && questions[index] == question && !isClosed
        }

        /// - Returns: whether a segment has more bytes than it ever had.
        @discardableResult
        mutating func hasGained(_ count: Int64, of index: Int) -> Bool {
            let before = farthest[index] ?? 0
            farthest[index] = max(before, count)
            return count > before
        }
        /// The most bytes that each segment has had.
        var farthest: [Int: Int64] = [:]
        /// What the server calls the file, or else what its address ends with.
        var proposedName: String?
        /// A file of that name was there, and is to stay.
        var isKept = false
        var isClosed = false
    }

    /// Bytes that may wait to be written before the sender is held back.
    static let backlogLimit = 4_194_304
    /// The journal is written when it is behind by so many bytes or seconds.
    static let saveCount = 16_777_216
    static let saveInterval: TimeInterval = 1
    /// Seconds between two moments at which the disk is told to keep what it has been given.
    static let syncInterval: TimeInterval = 10

    let part: PartFile
    let queue: DispatchQueue
    let options: DownloadOptions
    let meter: TransferMeter
    let state: Locked<State>
    private let clock: any NetworkClock
    private let limits: @Sendable () -> [BandwidthLimit]
    /// Called on the queue when further segments are to be asked for.
    private let split: @Sendable ([Int]) -> Void
    /// Called on the queue when all is to be asked for anew, because the segments do not fit each other.
    private let startOver: @Sendable () -> Void

    init(
        _ part: PartFile,
        _ course: DownloadCourse,
        _ options: DownloadOptions,
        on queue: DispatchQueue,
        meter: TransferMeter,
        clock: any NetworkClock,
        limits: @escaping @Sendable () -> [BandwidthLimit],
        split: @escaping @Sendable ([Int]) -> Void,
        startOver: @escaping @Sendable () -> Void
    ) {
        self.part = part
        self.options = options
        self.queue = queue
        self.meter = meter
        self.clock = clock
        self.limits = limits
        self.split = split
        self.startOver = startOver
        state = Locked(State(course: course, savedAt: clock.now, syncedAt: clock.now))
    }

    // MARK: - Asking

    /// - Returns: the segments to ask for. On the queue, so that all that came before has been written.
    func begin() -> [Int] {
        let (segments, count, total) = state.withLock { state in
            state.round += 1
            state.questions = [:]
            for (index, segment) in state.course.segments.enumerated() { state.hasGained(segment.count, of: index) }
            return (state.course.begin(), state.course.count, state.course.total)
        }
        if count > 0 { meter.begin(completed: count, total: total) }
        return segments
    }

    /// How often ``begin()`` was called.
    var round: Int { state.withLock { $0.round } }

    /// - Parameters:
    ///   - round: in which the segment was asked for; a question of an earlier one counts no more.
    ///   - location: the digest of the address that is asked.
    /// - Returns: also the question's number; an earlier one of the segment counts no more.
    func question(for index: Int, round: Int, at location: String) -> (
        DownloadCourse.Question?, number: Int, generation: Int
    ) {
        state.withLock { state in
            state.questionCount += 1
            if round == state.round { state.questions[index] = state.questionCount }
            return (state.course.question(for: index, at: location), state.questionCount, state.generation)
        }
    }

    // MARK: - On the transport's thread

    /// - Parameters:
    ///   - number: the question's.
    ///   - generation: that of the question.
    func answer(
        _ head: TransportHead,
        to question: DownloadCourse.Question?,
        _ number: Int,
        _ generation: Int,
        of index: Int,
        url: URL,
        isAccepted: Bool,
        mayContinue: Bool
    ) -> (BodyDecision, generation: Int) {
        let location = url.downloadDigest
        let (answer, generation, isSplit) = state.withLock { state -> (DownloadCourse.Answer?, Int, Bool) in
            guard state.isCurrent(number, of: index, generation) else { return (nil, generation, false) }
            // Also when one alone is missing: it can take nothing but its range.
            let isSplit = state.course.segments.count > 1
            let answer = state.course.answer(
                head,
                to: question,
                of: index,
                at: location,
                isAccepted: isAccepted,
                mayContinue: mayContinue
            )
            switch answer {
            // What is there may have been given up.
            case .takeAnew, .startOver, .fail: state.generation += 1
            case .gather, .take, .complete: break
            }
            switch answer {
            case .takeAnew: state.proposedName = Self.fileName(head.headers) ?? SafeFileName.name(for: url)
            case .take, .complete:
                // A range need not repeat what the whole said.
                state.proposedName = Self.fileName(head.headers) ?? state.proposedName ?? SafeFileName.name(for: url)
            default: break
            }
            return (answer, state.generation, isSplit)
        }
        switch answer {
        case nil: return (.enough, generation)
        case .gather: return (.gather, generation)
        case .complete: return (.enough, generation)
        case .fail(let code, let message):
            var error = NetworkError(code: code, message: message)
            error.statusCode = head.statusCode
            error.headers = head.headers
            return (.fail(error), generation)
        case .take, .takeAnew:
            add(.other { self.prepare(isAnew: answer == .takeAnew, generation) })
            return (.take, generation)
        case .startOver:
            add(.other { self.giveUp(generation) })
            guard isSplit else { return (.again, generation) }
            add(.other { self.startOver() })
            let error = NetworkError(code: .badServerResponse, message: "the ranges do not fit each other")
            return (.fail(error), generation)
        }
    }

    func take(_ data: Data, of index: Int, _ number: Int, _ generation: Int, valve: BodyValve) -> BodyDecision {
        let step = state.withLock { state -> (decision: BodyDecision, offset: Int64, count: Int, isFull: Bool) in
            if let failure = state.failure { return (.fail(failure), 0, 0, false) }
            guard !state.isKept, state.isCurrent(number, of: index, generation) else { return (.enough, 0, 0, false) }
            let (offset, count, isEnough) = state.course.receive(data.count, of: index)
            state.backlog += count
            return (isEnough ? .enough : .take, offset, count, state.backlog > Self.backlogLimit)
        }
        guard step.count > 0 else { return step.decision }
        if step.isFull { valve.hold(.backlog) }
        add(
            .write(
                Piece(
                    data: data.prefix(step.count),
                    offset: step.offset,
                    index: index,
                    number: number,
                    generation: generation,
                    valve: valve,
                    isHeld: step.isFull
                )
            )
        )
        let delay = limits().map { $0.delay(after: data.count) }.max() ?? 0
        if delay > 0 {
            valve.hold(.rate)
            _ = clock.schedule(after: delay) { valve.release(.rate) }
        }
        return step.decision
    }

    // MARK: - On the queue

    /// The answer has begun whose bytes will be written.
    private func prepare(isAnew: Bool, _ generation: Int) {
        let (isCurrent, name, rest, count, total, segmentCount) = state.withLock { state in
            let total = state.course.total
            return (
                state.generation == generation && !state.isClosed, state.proposedName,
                max(0, (total ?? 0) - state.course.count), state.course.count, total, state.course.segments.count
            )
        }
        guard isCurrent else { return }
        if options.existingFile == .keep, part.place.name == nil, let name,
            access(part.place.path(named: name), F_OK) == 0
        {
            return state.withLock { $0.isKept = true }
        }
        do throws(NetworkError) {
            if isAnew {
                part.place.removeJournal()
                try part.truncate()
            }
            try part.check(room: rest)
        } catch {
            return state.withLock { $0.failure = $0.failure ?? error }
        }
        meter.begin(completed: count, total: total)
        guard isAnew, segmentCount > 1 else { return }
        split(Array(1..<segmentCount))
    }

    private func giveUp(_ generation: Int) {
        // Once it is closed, the journal is another one's.
        guard state.withLock({ $0.generation == generation && !$0.isClosed }) else { return }
        part.place.removeJournal()
        do throws(NetworkError) {
            try part.truncate()
        } catch {
            state.withLock { $0.failure = $0.failure ?? error }
        }
        meter.begin(completed: 0, total: nil)
    }

    /// Does something when all that came before has been written.
    func afterwards(_ action: @escaping @Sendable () -> Void) {
        add(.other(action))
    }

    private func add(_ work: Work) {
        let isFirst = state.withLock { state in
            state.works.append(work)
            defer { state.isWorking = true }
            return !state.isWorking
        }
        if isFirst { queue.async { self.work() } }
    }

    /// Does what waits, and what comes meanwhile.
    private func work() {
        while true {
            let works = state.withLock { state in
                state.isWorking = !state.works.isEmpty
                return state.works.take()
            }
            if works.isEmpty { return }
            for work in works {
                switch work {
                case .write(let piece): write(piece)
                case .other(let action): action()
                }
            }
        }
    }

    private func write(_ piece: Piece) {
        // Of an exchange that has been asked anew meanwhile nothing counts: its bytes will come again.
        let isWanted = state.withLock { state in
            state.failure == nil && !state.isKept
                && state.isCurrent(piece.number, of: piece.index, piece.generation)
        }
        var failure: NetworkError?
        if isWanted {
            do throws(NetworkError) {
                try part.write(piece.data, at: piece.offset)
            } catch {
                failure = error
            }
        }
        let now = clock.now
        let (released, record, mustSync) = state.withLock { state -> ([BodyValve], PartRecord?, Bool) in
            state.backlog -= piece.data.count
            // All of them: the bytes that made room need not be of the one that was held.
            if piece.isHeld { state.held[ObjectIdentifier(piece.valve)] = piece.valve }
            let isRoomy = state.backlog <= Self.backlogLimit / 2
            let released = isRoomy ? Array(state.held.values) : []
            if !released.isEmpty { state.held = [:] }
            if let failure { state.failure = state.failure ?? failure }
            guard isWanted, failure == nil else { return (released, nil, false) }
            state.course.wrote(piece.data.count, of: piece.index)
            state.unsavedCount += piece.data.count
            guard state.unsavedCount >= Self.saveCount || now - state.savedAt >= Self.saveInterval else {
                return (released, nil, false)
            }
            state.unsavedCount = 0
            state.savedAt = now
            let mustSync = now - state.syncedAt >= Self.syncInterval
            if mustSync { state.syncedAt = now }
            return (released, state.course.record, mustSync)
        }
        if isWanted, failure == nil { meter.add(piece.data.count) }
        // Beside a part that has vanished it would be the journal of another one.
        if let record, part.isInPlace { part.place.write(record) }
        if mustSync { sync() }
        for valve in released { valve.release(.backlog) }
    }

    /// Has the disk keep what it has been given, beside what is written meanwhile.
    private func sync() {
        guard let sync = part.makeSync() else { return }
        let (counts, generation) = state.withLock { ($0.course.segments.map(\.count), $0.generation) }
        DispatchQueue.global(qos: .utility).async {
            guard sync() else { return }
            self.state.withLock { if $0.generation == generation { $0.course.synced(counts) } }
        }
    }

    /// An exchange is over, and all its bytes have been written.
    func end(_ error: NetworkError?, of index: Int, _ number: Int, _ generation: Int) -> NetworkError? {
        state.withLock { state in
            if let failure = state.failure { return failure }
            guard error == nil, !state.isKept, state.isCurrent(number, of: index, generation),
                state.course.segments.indices.contains(index)
            else { return nil }
            return state.course.end(of: index)
        }
    }

    /// Whether a segment has bytes that it never had, and that need not come again. Of a file that comes anew each time
    /// those at its beginning are none.
    func hasGained(for index: Int, _ generation: Int) -> Bool {
        state.withLock { state in
            guard state.generation == generation, state.course.record != nil,
                state.course.segments.indices.contains(index)
            else { return false }
            return state.hasGained(state.course.segments[index].count, of: index)
        }
    }

    /// What the server calls the file (RFC 6266).
    private static func fileName(_ headers: HTTPHeaders) -> String? {
        headers["Content-Disposition"].flatMap(ContentDisposition.init)?.fileName.flatMap(SafeFileName.name)
    }
}
