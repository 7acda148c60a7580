import Foundation

/// The amount of work in tests of random histories and large numbers.
///
/// Reduced by default, so that `swift test` takes a minute; full with `EASYNETWORK_TESTS=full`, as in CI; huge with
/// `EASYNETWORK_TESTS=huge`, as in CI's long run.
enum TestLoad {
    private static let name = ProcessInfo.processInfo.environment["EASYNETWORK_TESTS"]
    static let isHuge = name == "huge"
    static let isFull = name == "full" || isHuge

    /// - Parameters:
    ///   - full: The number with `EASYNETWORK_TESTS=full`.
    ///   - part: The number without it. By default a tenth.
    ///   - huge: The number with `EASYNETWORK_TESTS=huge`. By default as with `full`.
    static func count(_ full: Int, part: Int? = nil, huge: Int? = nil) -> Int {
        if isHuge, let huge { return huge }
        return isFull ? full : part ?? max(full / 10, 1)
    }
}
