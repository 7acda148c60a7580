import Foundation

/// The amount of work in tests of random histories and large numbers.
///
/// Reduced by default, so that `swift test` takes a minute; full with `EASYNETWORK_TESTS=full`, as in CI.
enum TestLoad {
    static let isFull = ProcessInfo.processInfo.environment["EASYNETWORK_TESTS"] == "full"

    /// - Parameters:
    ///   - full: The number with `EASYNETWORK_TESTS=full`.
    ///   - part: The number without it. By default a tenth.
    static func count(_ full: Int, part: Int? = nil) -> Int {
        isFull ? full : part ?? max(full / 10, 1)
    }
}
