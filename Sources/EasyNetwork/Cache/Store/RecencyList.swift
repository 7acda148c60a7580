/// Values by key, in the order of their last use, with the sum of their costs. Every step takes constant time.
///
/// A doubly linked list in an array, whose free places are linked too.
struct RecencyList<Value: Sendable>: Sendable {
    private struct Place: Sendable {
        var key: String
        /// Nil in a free place.
        var value: Value?
        var cost: Int
        var older: Int?
        var newer: Int?
    }

    private var places: [Place] = []
    private var indices: [String: Int] = [:]
    private var oldestIndex: Int?
    private var newestIndex: Int?
    private var freeIndex: Int?
    private(set) var cost: Int64 = 0

    var count: Int { indices.count }
    var keys: some Collection<String> { indices.keys }

    /// The one that was used before all others.
    var oldest: (key: String, value: Value)? {
        guard let oldestIndex, let value = places[oldestIndex].value else { return nil }
        return (places[oldestIndex].key, value)
    }

    /// Looks without using.
    subscript(key: String) -> Value? {
        indices[key].flatMap { places[$0].value }
    }

    /// The value, which is now the last used.
    mutating func use(_ key: String) -> Value? {
        guard let index = indices[key] else { return nil }
        unlink(index)
        linkAsNewest(index)
        return places[index].value
    }

    /// Puts a value in as the last used.
    ///
    /// - Returns: the one that was there.
    mutating func insert(_ value: Value, cost: Int, for key: String) -> Value? {
        let old = remove(key)
        let place = Place(key: key, value: value, cost: cost)
        let index: Int
        if let free = freeIndex {
            index = free
            freeIndex = places[free].newer
            places[free] = place
        } else {
            index = places.count
            places.append(place)
        }
        indices[key] = index
        linkAsNewest(index)
        self.cost += Int64(cost)
        return old
    }

    mutating func remove(_ key: String) -> Value? {
        guard let index = indices.removeValue(forKey: key) else { return nil }
        unlink(index)
        let old = places[index]
        cost -= Int64(old.cost)
        places[index] = Place(key: "", value: nil, cost: 0, newer: freeIndex)
        freeIndex = index
        return old.value
    }

    private mutating func unlink(_ index: Int) {
        let (older, newer) = (places[index].older, places[index].newer)
        if let older { places[older].newer = newer } else { oldestIndex = newer }
        if let newer { places[newer].older = older } else { newestIndex = older }
        places[index].older = nil
        places[index].newer = nil
    }

    private mutating func linkAsNewest(_ index: Int) {
        places[index].older = newestIndex
        if let newestIndex { places[newestIndex].newer = index } else { oldestIndex = index }
        newestIndex = index
    }
}
