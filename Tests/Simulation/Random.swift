/// Numbers from a seed: the same on every machine (SplitMix64). 0 is the simplest choice.
class Random {
    private var state: UInt64

    init(_ seed: UInt64) { state = seed }

    func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var word = state
        word = (word ^ word >> 30) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ word >> 27) &* 0x94D0_49BB_1331_11EB
        return word ^ word >> 31
    }

    /// From 0 up to, and without, `count`.
    func below(_ count: Int) -> Int { Int(next() % UInt64(count)) }

    func within(_ range: ClosedRange<Int>) -> Int { range.lowerBound + below(range.count) }

    func chance(_ share: Double) -> Bool { below(1_000) >= 1_000 - Int(share * 1_000) }

    /// Seconds, in whole milliseconds.
    func seconds(_ range: ClosedRange<Double>) -> Double {
        Double(within(Int(range.lowerBound * 1_000)...Int(range.upperBound * 1_000))) / 1_000
    }

    func pick<Element>(_ choices: [Element]) -> Element { choices[below(choices.count)] }

    /// An element of pairs of a weight and a choice.
    func pick<Element>(weighted choices: [(Int, Element)]) -> Element {
        var rest = below(choices.reduce(0) { $0 + $1.0 })
        return choices.first { weight, _ in
            rest -= weight
            return rest < 0
        }?.1 ?? choices[0].1
    }
}

/// The choices that make a history: from a seed, or given, such as those that made another one, with zeros behind them.
final class Choices: Random, @unchecked Sendable {
    // Sendable because one thread uses it.

    /// Those of the history that is being made.
    @TaskLocal static var current = Choices()

    private let given: [Int]?
    private(set) var taken: [Int] = []
    /// The places of those that make one part each.
    private(set) var parts: [Range<Int>] = []

    init(seed: UInt64 = 0, given: [Int]? = nil) {
        self.given = given
        super.init(seed)
    }

    /// Makes something by these choices.
    func make<Made>(_ make: () -> Made) -> Made { Self.$current.withValue(self, operation: make) }

    static func simplest<Made>(_ make: () -> Made) -> Made { Choices(given: []).make(make) }

    override func below(_ count: Int) -> Int {
        taken.append(given.map { taken.count < $0.count ? min($0[taken.count], count - 1) : 0 } ?? super.below(count))
        return taken[taken.count - 1]
    }

    /// None or one: a part of the history that may be left out. A 0 in its place makes none.
    func part<Part>(_ make: () -> Part) -> [Part] {
        let start = taken.count
        if given == nil { taken.append(1) } else if below(2) == 0 { return [] }
        defer { parts.append(start..<taken.count) }
        return [make()]
    }
}
