import Foundation

/// The rows in which ready jobs stand, the one that goes last first.
enum JobPriority: UInt8, CaseIterable, Comparable {
    case veryLow, low, normal, high, veryHigh

    init(_ priority: Operation.QueuePriority) {
        switch priority.rawValue {
        case ...Operation.QueuePriority.veryLow.rawValue: self = .veryLow
        case ...Operation.QueuePriority.low.rawValue: self = .low
        case Operation.QueuePriority.veryHigh.rawValue...: self = .veryHigh
        case Operation.QueuePriority.high.rawValue...: self = .high
        default: self = .normal
        }
    }

    static func < (one: JobPriority, other: JobPriority) -> Bool {
        one.rawValue < other.rawValue
    }
}

extension Operation.QueuePriority {
    init(_ priority: JobPriority) {
        switch priority {
        case .veryLow: self = .veryLow
        case .low: self = .low
        case .normal: self = .normal
        case .high: self = .high
        case .veryHigh: self = .veryHigh
        }
    }
}

/// How many jobs of each priority wait for a job: what is the highest of them, without looking at them.
struct PriorityCounts {
    private var counts: (Int32, Int32, Int32, Int32, Int32) = (0, 0, 0, 0, 0)

    mutating func add(_ change: Int32, _ priority: JobPriority) {
        switch priority {
        case .veryLow: counts.0 += change
        case .low: counts.1 += change
        case .normal: counts.2 += change
        case .high: counts.3 += change
        case .veryHigh: counts.4 += change
        }
    }

    /// Nil when there are none.
    var highest: JobPriority? {
        if counts.4 > 0 { return .veryHigh }
        if counts.3 > 0 { return .high }
        if counts.2 > 0 { return .normal }
        if counts.1 > 0 { return .low }
        return counts.0 > 0 ? .veryLow : nil
    }
}
