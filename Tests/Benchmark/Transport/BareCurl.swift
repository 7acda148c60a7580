#if os(Linux)
import CCurl
import Foundation

/// A minimal loop of libcurl: one thread around one multi handle.
final class BareCurl {
    private let multi: UnsafeMutableRawPointer

    /// Whether the transport's libcurl is available.
    private static let isReady =
        ccurl_load(ccurl_environment_path(), 0, nil, 0)
        && ccurl_global_init(CCURL_GLOBAL_DEFAULT) == CCURLE_OK

    /// - Returns: nil without libcurl or memory.
    init?() {
        guard Self.isReady, let multi = ccurl_multi_init() else {
            return nil
        }
        self.multi = multi
    }

    deinit {
        ccurl_multi_cleanup(multi)
    }

    /// - Returns: an easy handle, which the caller cleans up; nil without memory.
    static func makeHandle(_ url: URL) -> UnsafeMutableRawPointer? {
        guard let easy = ccurl_easy_init() else { return nil }
        _ = ccurl_set_string(easy, CCURLOPT_URL, url.absoluteString)
        _ = ccurl_set_string(easy, CCURLOPT_PROXY, "")
        _ = ccurl_set_long(easy, CCURLOPT_NOSIGNAL, 1)
        return easy
    }

    /// Runs handles to their ends.
    ///
    /// - Parameter ended: called with each handle that has ended; returns whether to start it again.
    func run(
        _ handles: some Collection<UnsafeMutableRawPointer>,
        ended: (UnsafeMutableRawPointer, ccurl_code) -> Bool
    ) {
        var underWay = handles.count
        for easy in handles { ccurl_multi_add_handle(multi, easy) }
        while underWay > 0 {
            var running: Int32 = 0
            guard ccurl_multi_perform(multi, &running) == CCURLM_OK else { return }
            var left: Int32 = 0
            var hasEnded = false
            while let message = ccurl_multi_info_read(multi, &left) {
                guard message.pointee.msg == CCURLMSG_DONE, let easy = message.pointee.easy_handle else { continue }
                let result = message.pointee.data.result
                ccurl_multi_remove_handle(multi, easy)
                hasEnded = true
                if ended(easy, result) {
                    ccurl_multi_add_handle(multi, easy)
                } else {
                    underWay -= 1
                }
            }
            if !hasEnded, ccurl_multi_poll(multi, 1_000) != CCURLM_OK { return }
        }
    }
}

/// The body of an answer, in memory.
final class BareCurlBody {
    var data = Data()

    /// Receives the bytes of a handle, and must live as long as the handle.
    func take(from easy: UnsafeMutableRawPointer) {
        _ = ccurl_set_pointer(easy, CCURLOPT_WRITEDATA, Unmanaged.passUnretained(self).toOpaque())
        _ = ccurl_set_transfer_function(easy, CCURLOPT_WRITEFUNCTION) { bytes, size, count, context in
            guard let bytes, let context else { return 0 }
            let body = Unmanaged<BareCurlBody>.fromOpaque(context).takeUnretainedValue()
            body.data.append(UnsafeRawPointer(bytes).assumingMemoryBound(to: UInt8.self), count: size * count)
            return size * count
        }
    }
}
#endif
