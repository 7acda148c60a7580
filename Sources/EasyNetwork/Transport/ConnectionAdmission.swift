/// Which exchanges may begin, so that no more than a number of them are under way to one origin, and in all: a value.
///
/// The others wait in the order in which they came, first for a place with their origin, then for one among all. Started
/// at once they would wait inside the transport, where their deadlines already run.
struct ConnectionAdmission<Exchange: AnyObject> {
    private struct Origin {
        var underWay = 0
        var waiting = Row()
    }

    /// First in, first out.
    private struct Row {
        private var exchanges: [Exchange] = []
        /// Where the row begins: taking the first of an array away would move all others.
        private var first = 0

        var isEmpty: Bool { first == exchanges.count }

        mutating func add(_ exchange: Exchange) {
            exchanges.append(exchange)
        }

        mutating func next() -> Exchange? {
            guard !isEmpty else { return nil }
            let exchange = exchanges[first]
            first += 1
            if first * 2 >= exchanges.count {
                exchanges.removeFirst(first)
                first = 0
            }
            return exchange
        }
    }

    private let originLimit: Int
    private let totalLimit: Int
    private var origins: [String: Origin] = [:]
    /// Of origins that have another limit than the rest.
    private var originLimits: [String: Int] = [:]
    private var underWay = 0
    /// Those that have a place with their origin.
    private var waiting = Row()

    /// How many origins may have a limit of their own; beyond that all lose theirs, and may get it anew.
    private static var originLimitCount: Int { 1_000 }

    /// - Parameters:
    ///   - perOrigin: exchanges under way to one origin; less than one counts as one.
    ///   - total: exchanges under way in all; less than one counts as one.
    init(perOrigin: Int, total: Int = .max) {
        originLimit = max(perOrigin, 1)
        totalLimit = max(total, 1)
    }

    /// - Returns: whether the exchange may begin now; else it waits until one of the others returns it.
    mutating func enter(_ exchange: Exchange, origin key: String) -> Bool {
        var origin = origins.removeValue(forKey: key) ?? Origin()
        defer { origins[key] = origin }
        guard origin.underWay < limit(of: key) else {
            origin.waiting.add(exchange)
            return false
        }
        origin.underWay += 1
        return enter(exchange)
    }

    /// One that had begun is over.
    ///
    /// - Returns: those that begin now.
    mutating func end(origin key: String) -> [Exchange] {
        underWay -= 1
        var begun = waiting.next().map { [$0] } ?? []
        underWay += begun.count
        guard var origin = origins.removeValue(forKey: key) else { return begun }
        origin.underWay -= 1
        begun += fill(&origin, upTo: limit(of: key))
        if origin.underWay > 0 { origins[key] = origin }
        return begun
    }

    /// Sets how many may be under way to one origin; those that are go on.
    ///
    /// - Returns: those that begin now.
    mutating func setLimit(_ limit: Int, origin key: String) -> [Exchange] {
        let limit = max(limit, 1)
        guard self.limit(of: key) != limit else { return [] }
        if originLimits.count >= Self.originLimitCount { originLimits = [:] }
        originLimits[key] = limit == originLimit ? nil : limit
        guard var origin = origins.removeValue(forKey: key) else { return [] }
        defer { origins[key] = origin }
        return fill(&origin, upTo: limit)
    }

    /// Whether another limit than that of the rest was set for an origin last.
    func hasOwnLimit(origin key: String) -> Bool {
        originLimits[key] != nil
    }

    private func limit(of origin: String) -> Int {
        originLimits[origin] ?? originLimit
    }

    private mutating func fill(_ origin: inout Origin, upTo limit: Int) -> [Exchange] {
        var begun: [Exchange] = []
        while origin.underWay < limit, let next = origin.waiting.next() {
            origin.underWay += 1
            if enter(next) { begun.append(next) }
        }
        return begun
    }

    private mutating func enter(_ exchange: Exchange) -> Bool {
        guard underWay < totalLimit else {
            waiting.add(exchange)
            return false
        }
        underWay += 1
        return true
    }
}
