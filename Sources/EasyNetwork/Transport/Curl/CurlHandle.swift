#if os(Linux) && canImport(CCurl)
internal import CCurl
import Foundation

/// The header lines of a message, in libcurl's form.
final class CurlHeaderList {
    /// The fields from which the lines were made, without anything else; nil if another line was added.
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

/// A libcurl easy handle with the memory that belongs to it. It is used only on the loop's thread, for one message
/// after another.
final class CurlHandle {
    private(set) var easy: UnsafeMutableRawPointer
    /// The exchange that uses the handle, and receives its callbacks.
    var exchange: CurlExchange?
    /// The buffer of libcurl's error message. libcurl writes to it while the handle exists, so it must not move, as an
    /// array's storage can.
    private let errorText = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CCURL_ERROR_SIZE))
    // The settings of the last message. Most messages repeat some of them.
    private var address: String?
    private(set) var method: String?
    private var headerList: CurlHeaderList?
    /// Whether the handle has the options that all messages of a loop share, and the TLS options.
    var hasCommonOptions = false
    var hasTLSOptions = false
    /// Whether the handle has the debug function.
    var hasReportFunction = false
    /// Whether the handle's message has set or left behind something that the next message does not overwrite.
    var needsReset = false
    /// Whether a message waits for a connection that is being established.
    var waitsForConnection = false
    /// Whether libcurl reports its actions to the debug function.
    var isReporting = false {
        didSet { _ = ccurl_set_long(easy, CCURLOPT_VERBOSE, isReporting ? 1 : 0) }
    }

    /// Creates a handle.
    ///
    /// - Returns: Nil if no memory is left.
    init?() {
        guard let easy = ccurl_easy_init() else {
            errorText.deallocate()
            return nil
        }
        self.easy = easy
        errorText.pointee = 0
        _ = ccurl_set_pointer(easy, CCURLOPT_ERRORBUFFER, errorText)
    }

    deinit {
        // Clean up the handle before its memory is freed.
        ccurl_easy_cleanup(easy)
        errorText.deallocate()
    }

    /// Prepares the handle for the next message. Connections, names and TLS sessions are kept.
    ///
    /// Most handles keep their options. Resetting and setting all of them again is a tenth of the cost of a small
    /// message.
    ///
    /// - Parameter isClean: Whether libcurl's handle can be used again. Otherwise it is replaced.
    /// - Returns: False if no memory is left.
    func prepare(isClean: Bool) -> Bool {
        errorText.pointee = 0
        if !isClean {
            guard let next = ccurl_easy_init() else { return false }
            ccurl_easy_cleanup(easy)
            easy = next
        } else if needsReset {
            ccurl_easy_reset(easy)
        } else {
            return true
        }
        (hasCommonOptions, hasTLSOptions, hasReportFunction) = (false, false, false)
        (needsReset, waitsForConnection) = (false, false)
        (address, method, headerList) = (nil, nil, nil)
        // Setting a pointer of a known option cannot fail.
        _ = ccurl_set_pointer(easy, CCURLOPT_ERRORBUFFER, errorText)
        return true
    }

    func error(_ result: ccurl_code) -> NetworkError {
        NetworkError(curl: result, detail: String(cString: errorText), systemError: long(CCURLINFO_OS_ERRNO))
    }

    func set(_ option: ccurl_option, _ value: Int) throws(NetworkError) {
        try check(ccurl_set_long(easy, option, value))
    }

    /// Sets a string option.
    ///
    /// - Parameter value: The value; nil removes a value that libcurl has set itself.
    func set(_ option: ccurl_option, _ value: String?) throws(NetworkError) {
        guard let value else { return try check(ccurl_set_string(easy, option, nil)) }
        // `withCString` avoids the copy that passing a String as an argument would make.
        try check(value.withCString { ccurl_set_string(easy, option, $0) })
    }

    func setAddress(_ address: String) throws(NetworkError) {
        guard address != self.address else { return }
        try set(CCURLOPT_URL, address)
        self.address = address
    }

    func setMethod(_ method: String) throws(NetworkError) {
        guard method != self.method else { return }
        try set(CCURLOPT_CUSTOMREQUEST, method)
        self.method = method
    }

    func setHeaders(_ headerList: CurlHeaderList) throws(NetworkError) {
        guard headerList !== self.headerList else { return }
        try check(ccurl_set_list(easy, CCURLOPT_HTTPHEADER, headerList.list))
        // Release the previous list only now. Until this point libcurl has a pointer to it.
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

    /// Returns a time that libcurl reports in microseconds, in seconds; nil if the transfer has not reached it.
    func seconds(_ info: ccurl_info) -> Double? {
        let microseconds = offset(info)
        return microseconds > 0 ? Double(microseconds) / 1_000_000 : nil
    }

    func check(_ result: ccurl_code) throws(NetworkError) {
        if result != CCURLE_OK { throw error(result) }
    }
}
#endif
