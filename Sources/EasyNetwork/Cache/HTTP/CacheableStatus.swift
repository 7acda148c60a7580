/// What a status allows a cache.
enum CacheableStatus {
    /// Those that may be kept, and be fresh by a guess, without a word of the server (RFC 9110, section 15.1). 206 is left
    /// out, as this cache keeps no parts.
    static let heuristic: Set<Int> = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501]

    /// Those of which this cache does all that they ask for: `must-understand` (RFC 9111, section 5.2.2.3).
    static let understood: Set<Int> = heuristic.union([302, 303, 307, 400, 403, 500, 502, 503, 504])

    /// Those that mean an error of the server for which an older answer may stand in (RFC 5861, section 4).
    static let replaceable: Set<Int> = [500, 502, 503, 504]
}
