import Foundation

/// Prints figures at once, and collects those with a bar.
final class Report {
    private struct Bar {
        let name: String
        let value: Double
        let limit: Double
        let unit: String
        var isFloor = false

        // NaN misses every bar.
        var isMissed: Bool { isFloor ? !(value >= limit) : !(value <= limit) }
    }

    private var bars: [Bar] = []

    var misses: Int { bars.count { $0.isMissed } }

    /// Prints a line without buffering, also into a file.
    func line(_ text: String) {
        print(text)
        fflush(nil)
    }

    /// Prints a row or the head of a table: a subject, a contender, and figures.
    func row(_ cells: [String]) {
        line(cells[0].filled(10) + cells[1].filled(28) + cells.dropFirst(2).map { $0.aligned(12) }.joined())
    }

    /// Ends the program because a contender does not work and its figures would be meaningless.
    static func stop(_ reason: String) -> Never {
        print("Benchmark: \(reason)")
        exit(2)
    }

    /// Records a figure that must not be above `limit`.
    func bar(_ name: String, _ value: Double, atMost limit: Double, unit: String = "") {
        bars.append(Bar(name: name, value: value, limit: limit, unit: unit))
    }

    /// Records a figure that must not be below `limit`.
    func bar(_ name: String, _ value: Double, atLeast limit: Double, unit: String = "") {
        bars.append(Bar(name: name, value: value, limit: limit, unit: unit, isFloor: true))
    }

    func printBars() {
        guard !bars.isEmpty else { return }
        print("\nBars")
        for bar in bars {
            let verdict = bar.isMissed ? bar.isFloor ? "under" : "over" : "ok"
            let figures = Self.number(bar.value).aligned(10) + (bar.isFloor ? " >= " : " <= ") + Self.number(bar.limit)
            print("  " + verdict.filled(6) + bar.name.filled(74) + figures + bar.unit)
        }
        print(misses == 0 ? "All kept." : "\(misses) of \(bars.count) missed.")
    }

    static func number(_ value: Double, digits: Int = 2) -> String {
        String(format: "%.\(digits)f", value)
    }
}

extension String {
    /// The text with blanks after it up to this width.
    func filled(_ width: Int) -> String {
        self + String(repeating: " ", count: max(0, width - count))
    }

    /// The text with blanks before it up to this width.
    func aligned(_ width: Int) -> String {
        String(repeating: " ", count: max(0, width - count)) + self
    }
}
