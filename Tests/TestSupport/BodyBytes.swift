import Foundation

/// Bytes for a large body, made quickly. They repeat after a prime number of them, so that a piece that is missing, doubled
/// or out of place is seen.
func bodyBytes(_ count: Int) -> Data {
    var data = Data(capacity: count)
    while data.count < count { data.append(period.prefix(count - data.count)) }
    return data
}

private let period = Data((0..<65_521).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })
