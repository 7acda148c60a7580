/// Numbers from a seed: the same on every machine (SplitMix64).
struct Random: RandomNumberGenerator {
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

    /// From 0 up to, and without, `count`.
    mutating func below(_ count: Int) -> Int {
        Int(next() % UInt64(count))
    }

    mutating func within(_ range: ClosedRange<Int>) -> Int {
        range.lowerBound + below(range.count)
    }

    mutating func chance(_ share: Double) -> Bool {
        Double(next() >> 11) < share * 0x1p53
    }

    /// Seconds, in whole milliseconds.
    mutating func seconds(_ range: ClosedRange<Double>) -> Double {
        Double(within(Int(range.lowerBound * 1_000)...Int(range.upperBound * 1_000))) / 1_000
    }

    mutating func pick<Element>(_ choices: [Element]) -> Element {
        choices[below(choices.count)]
    }

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
