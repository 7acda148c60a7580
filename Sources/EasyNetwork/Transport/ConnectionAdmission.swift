/// Limits how many exchanges are under way to one origin, and in all.
///
/// The others wait in order, first for a place with their origin, then for a place among all. Inside libcurl or a
/// URLSession their deadlines would already run.
struct ConnectionAdmission<Exchange: AnyObject> {
    private struct Origin {
        var underWay = 0
        var waiting = ArraySlice<Exchange>()

        mutating func enter(_ exchange: Exchange, limit: Int) -> Bool {
            guard underWay < limit else {
                waiting.append(exchange)
                return false
            }
            underWay += 1
            return true
        }

        mutating func next(limit: Int) -> Exchange? {
            guard underWay < limit, let next = waiting.popFirst() else { return nil }
            underWay += 1
            return next
        }
    }

    private let originLimit: Int
    private let totalLimit: Int
    private var origins: [String: Origin] = [:]
    /// The limits of origins that differ from the rest.
    private var originLimits: [String: Int] = [:]
    private var underWay = 0
    /// Exchanges that have a place with their origin.
    private var waiting = ArraySlice<Exchange>()

    /// The most origins with a limit of their own; beyond that all are forgotten, and may be learned again.
    private static var originLimitCount: Int { 1_000 }

    /// - Parameters:
    ///   - perOrigin: Exchanges under way to one origin; at least one.
    ///   - total: Exchanges under way in all; at least one.
    init(perOrigin: Int, total: Int = .max) {
        originLimit = max(perOrigin, 1)
        totalLimit = max(total, 1)
    }

    /// - Returns: whether the exchange may begin now; if not, it waits until one of the others returns it.
    mutating func enter(_ exchange: Exchange, origin: String) -> Bool {
        let limit = limit(of: origin)
        let hasPlace = origins[origin, default: Origin()].enter(exchange, limit: limit)
        return hasPlace && enter(exchange)
    }

    /// Frees the place of an exchange that had begun.
    ///
    /// - Returns: those that begin now.
    mutating func end(origin: String) -> [Exchange] {
        underWay -= 1
        var begun: [Exchange] = []
        if let next = waiting.popFirst() {
            underWay += 1
            begun = [next]
        }
        guard let index = origins.index(forKey: origin) else { return begun }
        origins.values[index].underWay -= 1
        begun += fill(index, limit: limit(of: origin))
        if origins.values[index].underWay == 0 { origins.remove(at: index) }
        return begun
    }

    /// Sets how many may be under way to one origin. Exchanges under way go on.
    ///
    /// - Returns: those that begin now.
    mutating func setLimit(_ limit: Int, origin: String) -> [Exchange] {
        let limit = max(limit, 1)
        guard self.limit(of: origin) != limit else { return [] }
        if originLimits.count >= Self.originLimitCount { originLimits = [:] }
        originLimits[origin] = limit == originLimit ? nil : limit
        return origins.index(forKey: origin).map { fill($0, limit: limit) } ?? []
    }

    /// Whether an origin's limit differs from that of the rest.
    func hasOwnLimit(origin: String) -> Bool {
        !originLimits.isEmpty && originLimits[origin] != nil
    }

    private func limit(of origin: String) -> Int {
        originLimits.isEmpty ? originLimit : originLimits[origin] ?? originLimit
    }

    private mutating func fill(_ index: Dictionary<String, Origin>.Index, limit: Int) -> [Exchange] {
        var begun: [Exchange] = []
        while let next = origins.values[index].next(limit: limit) {
            if enter(next) { begun.append(next) }
        }
        return begun
    }

    private mutating func enter(_ exchange: Exchange) -> Bool {
        guard underWay < totalLimit else {
            waiting.append(exchange)
            return false
        }
        underWay += 1
        return true
    }
}
