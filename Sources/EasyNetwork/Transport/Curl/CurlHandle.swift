#if os(Linux) && canImport(CCurl)
internal import CCurl
import Foundation

/// One of libcurl's easy handles with the memory that belongs to it; used on the loop's thread only, again and again.
final class CurlHandle {
    /// Whether one may serve several messages. Before libcurl 8.1 it keeps a pointer to the last header field of an answer,
    /// which is freed with the next: an answer whose first field is folded, as any server can send it, then writes there.
    static let isReusable = CurlLibrary.version >= 0x08_01_00

    /// What libcurl calls the handle.
    let easy: UnsafeMutableRawPointer
    /// libcurl writes here while the handle lives: the memory must not move, as an array's may.
    private let errorText = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CCURL_ERROR_SIZE))
    private var headerList: OpaquePointer?
    /// What it has been given, as most messages are like the one before in this; nil when that is not known. The fields are
    /// kept, since their storage tells whether others are the same.
    private var address: String?
    private var method: String?
    private var headers: HTTPHeaders?
    /// Whether it has the options that all messages of a loop share, and those that all over TLS do.
    var hasCommonOptions = false
    var hasTLSOptions = false
    /// Whether its message has set, or left behind, what the next one does not set anew.
    var needsReset = false

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
        // Before what it points to.
        ccurl_easy_cleanup(easy)
        ccurl_slist_free_all(headerList)
        errorText.deallocate()
    }

    /// Makes it fit for the next message; connections, names and TLS sessions stay.
    ///
    /// To take all options back and set them again is a tenth of what a small message costs, so most keep them.
    func reuse() {
        errorText.pointee = 0
        guard needsReset else { return }
        needsReset = false
        ccurl_easy_reset(easy)
        (hasCommonOptions, hasTLSOptions) = (false, false)
        (address, method, headers) = (nil, nil, nil)
        ccurl_slist_free_all(headerList)
        headerList = nil
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

    /// - Parameter value: nil takes back what libcurl has set itself.
    func set(_ option: ccurl_option, _ value: String?) throws(NetworkError) {
        try check(ccurl_set_string(easy, option, value))
    }

    func setAddress(_ address: String) throws(NetworkError) {
        // An address is ASCII, so that equal texts have the same bytes.
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

    func setBodyCount(_ count: Int) throws(NetworkError) {
        try check(ccurl_set_offset(easy, CCURLOPT_INFILESIZE_LARGE, Int64(count)))
    }

    /// Whether the lines of these fields were set last.
    func hasHeaders(_ headers: HTTPHeaders) -> Bool {
        self.headers?.hasStorage(of: headers) ?? false
    }

    /// - Parameter headers: what the lines are made of; nil if not of that alone.
    func setHeaders(_ lines: [String], of headers: HTTPHeaders?) throws(NetworkError) {
        self.headers = nil
        var list: OpaquePointer?
        for line in lines {
            guard let longer = ccurl_slist_append(list, line) else {
                ccurl_slist_free_all(list)
                throw error(CCURLE_OUT_OF_MEMORY)
            }
            list = longer
        }
        let result = ccurl_set_list(easy, CCURLOPT_HTTPHEADER, list)
        // libcurl points to the one that it was given last.
        ccurl_slist_free_all(headerList)
        headerList = list
        try check(result)
        self.headers = headers
    }

    func long(_ info: ccurl_info) -> Int {
        var value = 0
        return ccurl_get_long(easy, info, &value) == CCURLE_OK ? value : 0
    }

    func offset(_ info: ccurl_info) -> Int {
        var value: Int64 = 0
        return ccurl_get_offset(easy, info, &value) == CCURLE_OK ? Int(value) : 0
    }

    /// A time that libcurl gives in microseconds; nil when it has not come to that.
    func seconds(_ info: ccurl_info) -> Double? {
        let microseconds = offset(info)
        return microseconds > 0 ? Double(microseconds) / 1_000_000 : nil
    }

    func check(_ result: ccurl_code) throws(NetworkError) {
        if result != CCURLE_OK { throw error(result) }
    }
}
#endif
