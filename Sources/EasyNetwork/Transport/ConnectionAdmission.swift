/// Limits the number of exchanges in progress, per origin and in total.
///
/// The other exchanges wait in order, first for a place of their origin, then for a place in total. They do not wait
/// inside libcurl or a URLSession, where their deadlines would already be running.
struct ConnectionAdmission<Exchange: AnyObject> {
    /// The exchanges in progress under one limit, and those that wait for it.
    private struct Places {
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
            // A slice keeps the elements that it has given up.
            if waiting.isEmpty { waiting = [] }
            underWay += 1
            return next
        }
    }

    private let originLimit: Int
    private let totalLimit: Int
    private var origins: [String: Places] = [:]
    /// The limits of origins that differ from the rest.
    private var originLimits: [String: Int] = [:]
    /// The places in total. Waiting exchanges have a place of their origin.
    private var total = Places()

    /// The maximum number of origins with their own limit. When it is reached, all of them are forgotten, and can be
    /// learned again.
    private static var originLimitCount: Int { 1_000 }

    /// Creates an admission without exchanges.
    ///
    /// - Parameters:
    ///   - perOrigin: The maximum number of exchanges in progress per origin; at least one.
    ///   - total: The maximum number of exchanges in progress in total; at least one. Unlimited by default.
    init(perOrigin: Int, total: Int = .max) {
        originLimit = max(perOrigin, 1)
        totalLimit = max(total, 1)
    }

    /// Admits an exchange, or lets it wait.
    ///
    /// - Returns: Whether the exchange can begin now. If not, it waits until ``end(origin:)`` or
    ///   ``setLimit(_:origin:)`` returns it.
    mutating func enter(_ exchange: Exchange, origin: String) -> Bool {
        let hasPlace = origins[origin, default: Places()].enter(exchange, limit: limit(of: origin))
        return hasPlace && total.enter(exchange, limit: totalLimit)
    }

    /// Frees the place of an exchange that had begun.
    ///
    /// - Returns: The exchanges that begin now.
    mutating func end(origin: String) -> [Exchange] {
        total.underWay -= 1
        var begun = total.next(limit: totalLimit).map { [$0] } ?? []
        guard let index = origins.index(forKey: origin) else { return begun }
        origins.values[index].underWay -= 1
        if !origins.values[index].waiting.isEmpty { begun += fill(index, limit: limit(of: origin)) }
        if origins.values[index].underWay == 0 { origins.remove(at: index) }
        return begun
    }

    /// Sets the maximum number of exchanges in progress to one origin. Exchanges in progress continue.
    ///
    /// - Returns: The exchanges that begin now.
    mutating func setLimit(_ limit: Int, origin: String) -> [Exchange] {
        let limit = max(limit, 1)
        guard self.limit(of: origin) != limit else { return [] }
        if originLimits.count >= Self.originLimitCount { originLimits = [:] }
        originLimits[origin] = limit == originLimit ? nil : limit
        return origins.index(forKey: origin).map { fill($0, limit: limit) } ?? []
    }

    /// Returns whether the limit of an origin differs from the common one.
    func hasOwnLimit(origin: String) -> Bool {
        originLimits[origin] != nil
    }

    private func limit(of origin: String) -> Int {
        originLimits[origin] ?? originLimit
    }

    private mutating func fill(_ index: Dictionary<String, Places>.Index, limit: Int) -> [Exchange] {
        var begun: [Exchange] = []
        while let next = origins.values[index].next(limit: limit) {
            if total.enter(next, limit: totalLimit) { begun.append(next) }
        }
        return begun
    }
}
