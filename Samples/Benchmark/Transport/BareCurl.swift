#if os(Linux)
import CCurl
import Foundation

/// The least that libcurl needs: one thread around one multi handle.
final class BareCurl {
    private let multi: UnsafeMutableRawPointer

    /// - Returns: nil without memory.
    init?() {
        guard curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK, let multi = curl_multi_init() else { return nil }
        self.multi = multi
    }

    deinit {
        curl_multi_cleanup(multi)
    }

    /// - Returns: an easy handle for the caller to clean up; nil without memory.
    static func makeHandle(_ url: URL) -> UnsafeMutableRawPointer? {
        guard let easy = curl_easy_init() else { return nil }
        _ = ccurl_set_string(easy, CURLOPT_URL, url.absoluteString)
        _ = ccurl_set_string(easy, CURLOPT_PROXY, "")
        _ = ccurl_set_long(easy, CURLOPT_NOSIGNAL, 1)
        return easy
    }

    /// Runs handles to their ends.
    ///
    /// - Parameter ended: is called with each that has ended, and says whether that one begins again.
    func run(
        _ handles: some Collection<UnsafeMutableRawPointer>,
        ended: (UnsafeMutableRawPointer, CURLcode) -> Bool
    ) {
        var underWay = handles.count
        for easy in handles { curl_multi_add_handle(multi, easy) }
        while underWay > 0 {
            var running: Int32 = 0
            guard curl_multi_perform(multi, &running) == CURLM_OK else { return }
            var left: Int32 = 0
            var hasEnded = false
            while let message = curl_multi_info_read(multi, &left) {
                guard message.pointee.msg == CURLMSG_DONE, let easy = message.pointee.easy_handle else { continue }
                let result = message.pointee.data.result
                curl_multi_remove_handle(multi, easy)
                hasEnded = true
                if ended(easy, result) {
                    curl_multi_add_handle(multi, easy)
                } else {
                    underWay -= 1
                }
            }
            if !hasEnded, curl_multi_poll(multi, nil, 0, 1_000, nil) != CURLM_OK { return }
        }
    }
}

/// The body of an answer, in memory.
final class BareCurlBody {
    var data = Data()

    /// Takes what comes over a handle, and has to live as long as that.
    func take(from easy: UnsafeMutableRawPointer) {
        _ = ccurl_set_pointer(easy, CURLOPT_WRITEDATA, Unmanaged.passUnretained(self).toOpaque())
        _ = ccurl_set_transfer_function(easy, CURLOPT_WRITEFUNCTION) { bytes, size, count, context in
            guard let bytes, let context else { return 0 }
            let body = Unmanaged<BareCurlBody>.fromOpaque(context).takeUnretainedValue()
            body.data.append(UnsafeRawPointer(bytes).assumingMemoryBound(to: UInt8.self), count: size * count)
            return size * count
        }
    }
}
#endif
