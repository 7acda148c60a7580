#if os(Linux) && canImport(CCurl)
/// How long a loop waits before it has libcurl look at everything, although nobody calls.
///
/// libcurl marks a transfer that it is to look at once more, such as one whose stream has ended with what came last, by a
/// timer that runs out at once. When another timer of that transfer runs out meanwhile, libcurl before 8.4 drops both if
/// they are less than a millisecond apart, and the transfer would wait for ever: seen with 7.88, where the timer that
/// every connection has 200 milliseconds after it began met the end of an answer over HTTP/2.
struct CurlPatience {
    private static let shortest: Int32 = 10
    private static let longest: Int32 = 1_000

    private var next = Self.shortest

    /// Milliseconds: ten after something has moved, twice as many each time that nothing has, a second at most.
    mutating func wait(underWay count: Int, hasMoved: Bool) -> Int32 {
        guard count > 0 else { return .max }
        if hasMoved { next = Self.shortest }
        defer { next = min(2 * next, Self.longest) }
        return next
    }
}
#endif
