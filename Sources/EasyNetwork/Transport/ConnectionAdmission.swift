/// Which exchanges may begin, so that no more than a number of them are under way to one origin: a value.
///
/// The others wait in the order in which they came. Started at once they would wait inside the transport, where their
/// deadlines already run.
struct ConnectionAdmission<Exchange: AnyObject> {
    private struct Origin {
        var underWay = 0
        var waiting: [Exchange] = []
        /// Where the row begins: taking the first of an array away would move all others.
        var next = 0
    }

    private let limit: Int
    private var origins: [String: Origin] = [:]

    /// - Parameter limit: exchanges under way to one origin; less than one counts as one.
    init(limit: Int) {
        self.limit = max(limit, 1)
    }

    /// - Returns: whether the exchange may begin now; else it waits until ``end(_:)`` returns it.
    mutating func enter(_ exchange: Exchange, origin key: String) -> Bool {
        var origin = origins.removeValue(forKey: key) ?? Origin()
        defer { origins[key] = origin }
        if origin.underWay < limit {
            origin.underWay += 1
            return true
        }
        origin.waiting.append(exchange)
        return false
    }

    /// One that had begun is over.
    ///
    /// - Returns: the next one of that origin, which begins now.
    mutating func end(origin key: String) -> Exchange? {
        guard var origin = origins.removeValue(forKey: key) else { return nil }
        if origin.next < origin.waiting.count {
            let exchange = origin.waiting[origin.next]
            origin.next += 1
            if origin.next * 2 >= origin.waiting.count {
                origin.waiting.removeFirst(origin.next)
                origin.next = 0
            }
            origins[key] = origin
            return exchange
        }
        origin.underWay -= 1
        if origin.underWay > 0 { origins[key] = origin }
        return nil
    }
}
