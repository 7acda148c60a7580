/// Chooses by numbers: 0 is the simplest choice.
protocol Chooser {
    /// From 0 up to, and without, `count`.
    mutating func below(_ count: Int) -> Int
}

extension Chooser {
    mutating func within(_ range: ClosedRange<Int>) -> Int { range.lowerBound + below(range.count) }

    mutating func chance(_ share: Double) -> Bool { below(1_000) >= 1_000 - Int(share * 1_000) }

    /// Seconds, in whole milliseconds.
    mutating func seconds(_ range: ClosedRange<Double>) -> Double {
        Double(within(Int(range.lowerBound * 1_000)...Int(range.upperBound * 1_000))) / 1_000
    }

    mutating func pick<Element>(_ choices: [Element]) -> Element { choices[below(choices.count)] }

    /// An element of pairs of a weight and a choice.
    mutating func pick<Element>(weighted choices: [(Int, Element)]) -> Element {
        var rest = below(choices.reduce(0) { $0 + $1.0 })
        for (weight, choice) in choices {
            rest -= weight
            if rest < 0 { return choice }
        }
        return choices[choices.count - 1].1
    }
}

/// Numbers from a seed: the same on every machine (SplitMix64).
struct Random: Chooser {
    private var state: UInt64

    init(_ seed: UInt64) {
        state = seed
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var word = state
        word = (word ^ word >> 30) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ word >> 27) &* 0x94D0_49BB_1331_11EB
        return word ^ word >> 31
    }

    mutating func below(_ count: Int) -> Int { Int(next() % UInt64(count)) }
}

/// The choices that make a history: from a seed, or given, such as those that made another one, with zeros behind them.
struct Choices: Chooser {
    private var random: Random?
    private var given: [Int]
    private(set) var taken: [Int] = []
    /// The places of those that make one part each.
    private(set) var parts: [Range<Int>] = []

    init(seed: UInt64) {
        (random, given) = (Random(seed), [])
    }

    init(_ given: [Int]) {
        self.given = given
    }

    mutating func below(_ count: Int) -> Int {
        let next = taken.count < given.count ? given[taken.count] : 0
        taken.append(random?.below(count) ?? min(next, count - 1))
        return taken[taken.count - 1]
    }

    /// A part of the history that may be left out: a 0 in its place makes none.
    mutating func part<Part>(_ make: (inout Choices) -> Part) -> Part? {
        let start = taken.count
        guard random == nil else {
            taken.append(1)
            defer { parts.append(start..<taken.count) }
            return make(&self)
        }
        guard below(2) == 1 else { return nil }
        defer { parts.append(start..<taken.count) }
        return make(&self)
    }
}
