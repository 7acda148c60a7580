/// The faults that the next requests are to meet, whatever they are; a queue.
struct RequestFaults: Sendable {
    private struct Entry: Sendable {
        var fault: MockResponse.Fault
        var left: Int
    }

    private var entries: [Entry] = []

    var isEmpty: Bool { entries.isEmpty }

    mutating func add(_ fault: MockResponse.Fault, count: Int) {
        if count > 0 { entries.append(Entry(fault: fault, left: count)) }
    }

    /// Takes the fault of the request that begins now.
    mutating func next() -> MockResponse.Fault? {
        guard let fault = entries.first?.fault else { return nil }
        entries[0].left -= 1
        if entries[0].left == 0 { entries.removeFirst() }
        return fault
    }
}
