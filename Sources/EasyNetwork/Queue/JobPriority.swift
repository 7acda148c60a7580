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

    private static let operationPriorities: [Operation.QueuePriority] = [.veryLow, .low, .normal, .high, .veryHigh]

    package var operationPriority: Operation.QueuePriority { Self.operationPriorities[Int(rawValue)] }

    package static func < (one: JobPriority, other: JobPriority) -> Bool {
        one.rawValue < other.rawValue
    }
}
