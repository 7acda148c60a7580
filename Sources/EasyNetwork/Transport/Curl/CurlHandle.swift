#if os(Linux) && canImport(CCurl)
internal import CCurl
import Foundation

/// The header lines of a message, as libcurl takes them.
final class CurlHeaderList {
    /// The fields that the lines were made of, and nothing else; nil if something was added.
    let headers: HTTPHeaders?
    fileprivate private(set) var list: OpaquePointer?

    init(_ lines: [String], of headers: HTTPHeaders?) throws(NetworkError) {
        self.headers = headers
        for line in lines {
            let longer =
                line.hasKeptBytes
                ? ccurl_slist_append(list, line.fieldBytes.map { CChar(bitPattern: $0) } + [0])
                : ccurl_slist_append(list, line)
            guard let longer else {
                throw NetworkError(code: .cannotConnect, message: "libcurl has no memory left")
            }
            list = longer
        }
    }

    deinit {
        ccurl_slist_free_all(list)
    }
}

/// An easy handle of libcurl's with the memory that belongs to it; used on the loop's thread only, for one message
/// after the other.
final class CurlHandle {
    /// Whether a handle may serve several messages. Before libcurl 8.1 it keeps a pointer to the last header field of
    /// an answer, freed with the next: an answer whose first field line is folded, which a server can send, writes
    /// there.
    static let isReusable = CurlLibrary.version >= 0x08_01_00

    let easy: UnsafeMutableRawPointer
    /// libcurl writes here while the handle lives, so the memory must not move, as an array's may.
    private let errorText = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CCURL_ERROR_SIZE))
    // The settings of the last message: most messages repeat some of them.
    private var address: String?
    private(set) var method: String?
    private var headerList: CurlHeaderList?
    /// Whether it has the options that all messages of a loop share, and those of TLS.
    var hasCommonOptions = false
    var hasTLSOptions = false
    /// Whether its message has set, or left behind, something that the next one does not set again.
    var needsReset = false
    /// Whether libcurl tells an exchange what it does.
    private var isReporting = false

    /// - Returns: nil without memory.
    init?() {
        guard let easy = ccurl_easy_init() else {
            errorText.deallocate()
            return nil
        }
        self.easy = easy
        errorText.pointee = 0
    }

    deinit {
        // Before the memory that it points to.
        ccurl_easy_cleanup(easy)
        errorText.deallocate()
    }

    /// Prepares the handle for the next message; connections, names and TLS sessions stay.
    ///
    /// Most keep their options: to reset and set them all again is a tenth of the cost of a small message.
    func reuse() {
        errorText.pointee = 0
        guard needsReset else { return }
        needsReset = false
        ccurl_easy_reset(easy)
        (hasCommonOptions, hasTLSOptions) = (false, false)
        (address, method, headerList) = (nil, nil, nil)
    }

    /// Has libcurl tell the debug function what it does, until ``stopReports()``.
    ///
    /// - Parameter context: Points to the exchange, which must live until then.
    func report(to context: UnsafeMutableRawPointer) {
        isReporting = true
        _ = ccurl_set_pointer(easy, CCURLOPT_DEBUGDATA, context)
        _ = ccurl_set_long(easy, CCURLOPT_VERBOSE, 1)
    }

    func stopReports() {
        guard isReporting else { return }
        isReporting = false
        _ = ccurl_set_long(easy, CCURLOPT_VERBOSE, 0)
    }

    func error(_ result: ccurl_code) -> NetworkError {
        NetworkError(curl: result, detail: String(cString: errorText), systemError: long(CCURLINFO_OS_ERRNO))
    }

    func useErrorText() throws(NetworkError) {
        errorText.pointee = 0
        try check(ccurl_set_pointer(easy, CCURLOPT_ERRORBUFFER, errorText))
    }

    func set(_ option: ccurl_option, _ value: Int) throws(NetworkError) {
        try check(ccurl_set_long(easy, option, value))
    }

    /// - Parameter value: nil removes what libcurl has set itself.
    func set(_ option: ccurl_option, _ value: String?) throws(NetworkError) {
        guard let value else { return try check(ccurl_set_string(easy, option, nil)) }
        // An argument would be copied.
        try check(value.withCString { ccurl_set_string(easy, option, $0) })
    }

    func setAddress(_ address: String) throws(NetworkError) {
        guard address != self.address else { return }
        self.address = nil
        try set(CCURLOPT_URL, address)
        self.address = address
    }

    func setMethod(_ method: String) throws(NetworkError) {
        guard method != self.method else { return }
        self.method = nil
        try set(CCURLOPT_CUSTOMREQUEST, method)
        self.method = method
    }

    func setBodyCount(_ count: Int64) throws(NetworkError) {
        try check(ccurl_set_offset(easy, CCURLOPT_INFILESIZE_LARGE, count))
    }

    func setHeaders(_ headerList: CurlHeaderList) throws(NetworkError) {
        guard headerList !== self.headerList else { return }
        try check(ccurl_set_list(easy, CCURLOPT_HTTPHEADER, headerList.list))
        // Only now: until then libcurl points to the one before.
        self.headerList = headerList
    }

    func long(_ info: ccurl_info) -> Int {
        var value = 0
        return ccurl_get_long(easy, info, &value) == CCURLE_OK ? value : 0
    }

    func offset(_ info: ccurl_info) -> Int {
        var value: Int64 = 0
        return ccurl_get_offset(easy, info, &value) == CCURLE_OK ? Int(clamping: value) : 0
    }

    /// A time that libcurl gives in microseconds; nil if the transfer has not come that far.
    func seconds(_ info: ccurl_info) -> Double? {
        let microseconds = offset(info)
        return microseconds > 0 ? Double(microseconds) / 1_000_000 : nil
    }

    func check(_ result: ccurl_code) throws(NetworkError) {
        if result != CCURLE_OK { throw error(result) }
    }
}
#endif
