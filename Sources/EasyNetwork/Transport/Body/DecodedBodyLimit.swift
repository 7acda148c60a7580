/// How much of a body is still taken whose content coding is taken off: a value. A body without one has no limit.
struct DecodedBodyLimit {
    private let limit: Int?
    private var count = 0

    /// No limit.
    init() {
        limit = nil
    }

    /// - Parameters:
    ///   - limit: in bytes; nil means none.
    ///   - headers: those of the answer.
    init(_ limit: Int?, headers: HTTPHeaders) {
        let content = headers["Content-Encoding"] ?? "identity"
        // libcurl takes off codings of the transfer, too, though nobody asked for one.
        let transfer = headers["Transfer-Encoding"] ?? "chunked"
        let isCoded =
            !content.isEqualIgnoringASCIICase(to: "identity") || !transfer.isEqualIgnoringASCIICase(to: "chunked")
        self.limit = isCoded ? limit : nil
    }

    /// - Returns: why these bytes are too many; nil when they are not.
    mutating func take(_ byteCount: Int) -> NetworkError? {
        guard let limit else { return nil }
        let (sum, overflows) = count.addingReportingOverflow(byteCount)
        count = overflows ? .max : sum
        guard overflows || sum > limit else { return nil }
        return NetworkError(code: .bodyTooLong, message: "over \(limit) bytes without its content coding")
    }
}
