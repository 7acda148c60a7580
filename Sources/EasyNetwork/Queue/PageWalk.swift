/// Where somebody is who reads page after page, as a value.
struct PageWalk<Request: Sendable>: Sendable {
    /// One page being loaded.
    struct Load: Sendable {
        let request: Request
        /// The start from the first page that it belongs to.
        let round: UInt64
        fileprivate let number: UInt64
        fileprivate let isFirst: Bool
    }

    /// What happens when the next page is asked for.
    enum Start {
        case load(Load)
        /// A page is being loaded.
        case busy
        /// The last page has arrived.
        case end
        /// The walk has been begun anew since.
        case startedOver
    }

    private let first: Request
    /// What comes after the page that arrived last; nil when nothing does.
    private var next: Request?
    private var lastNumber: UInt64 = 0
    private var loading: UInt64?

    /// How many pages have arrived since the first one did.
    private(set) var pageCount = 0
    private var round: UInt64 = 0

    init(first: Request) {
        self.first = first
    }

    var isLoading: Bool { loading != nil }
    var isFirstPage: Bool { pageCount == 1 }
    var isLastPage: Bool { pageCount > 0 && next == nil }

    /// Begins anew. What is being loaded counts no more; it is to be cancelled.
    mutating func beginFirst() -> Load {
        round += 1
        return begin(first, isFirst: true)
    }

    /// Begins with the page after the one that arrived last; with the first if none has.
    ///
    /// - Parameter round: the start from the first page that is meant; nil, the default, for whichever.
    mutating func beginNext(in round: UInt64? = nil) -> Start {
        if let round, round != self.round { return .startedOver }
        if isLoading { return .busy }
        guard pageCount > 0 else { return .load(beginFirst()) }
        return next.map { .load(begin($0, isFirst: false)) } ?? .end
    }

    /// Whether the page is being loaded still.
    func isCurrent(_ load: Load) -> Bool {
        loading == load.number
    }

    /// What is being loaded counts no more.
    mutating func cancel() {
        loading = nil
    }

    /// A page is there.
    ///
    /// - Parameter next: what comes after it; nil when it is the last.
    /// - Returns: false when it counts no more, because it was cancelled or the walk was begun anew.
    mutating func arrived(_ load: Load, next: Request?) -> Bool {
        guard isCurrent(load) else { return false }
        loading = nil
        pageCount = load.isFirst ? 1 : pageCount + 1
        self.next = next
        return true
    }

    /// The page did not come. It may be asked for again: nothing has moved.
    ///
    /// - Returns: false when it counts no more.
    mutating func failed(_ load: Load) -> Bool {
        guard isCurrent(load) else { return false }
        loading = nil
        return true
    }

    private mutating func begin(_ request: Request, isFirst: Bool) -> Load {
        lastNumber += 1
        loading = lastNumber
        return Load(request: request, round: round, number: lastNumber, isFirst: isFirst)
    }
}
