import Foundation

/// The amount of work in tests of random histories and large numbers.
///
/// A part of it by default, so that `swift test` takes a minute; all of it with `EASYNETWORK_TESTS=full`, as in CI.
enum TestLoad {
    static let isFull = ProcessInfo.processInfo.environment["EASYNETWORK_TESTS"] == "full"

    /// - Parameters:
    ///   - full: the number with `EASYNETWORK_TESTS=full`.
    ///   - part: the number without it. Default: a tenth.
    static func count(_ full: Int, part: Int? = nil) -> Int {
        isFull ? full : part ?? max(full / 10, 1)
    }
}
