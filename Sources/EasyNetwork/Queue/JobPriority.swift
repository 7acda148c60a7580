import Foundation

/// The priorities of jobs, the lowest first.
package enum JobPriority: UInt8, CaseIterable, Comparable {
    case veryLow, low, normal, high, veryHigh

    package static let count = 5

    package init(_ priority: Operation.QueuePriority) {
        switch priority.rawValue {
        case ...Operation.QueuePriority.veryLow.rawValue: self = .veryLow
        case ...Operation.QueuePriority.low.rawValue: self = .low
        case Operation.QueuePriority.veryHigh.rawValue...: self = .veryHigh
        case Operation.QueuePriority.high.rawValue...: self = .high
        default: self = .normal
        }
    }

    package var operationPriority: Operation.QueuePriority {
        switch self {
        case .veryLow: .veryLow
        case .low: .low
        case .normal: .normal
        case .high: .high
        case .veryHigh: .veryHigh
        }
    }

    package static func < (one: JobPriority, other: JobPriority) -> Bool {
        one.rawValue < other.rawValue
    }
}

/// The number of dependents of each priority above the lowest.
struct PriorityCounts {
    private var counts = SIMD4<Int32>()

    mutating func add(_ change: Int32, _ priority: JobPriority) {
        if priority != .veryLow { counts[Int(priority.rawValue) - 1] += change }
    }

    /// The highest priority of a dependent; the lowest priority if there are none.
    var highest: JobPriority {
        var rank = 4
        while rank > 0, counts[rank - 1] == 0 { rank -= 1 }
        return JobPriority(rawValue: UInt8(rank)) ?? .veryLow
    }
}
