#if os(Linux)
import CCurl
import Foundation

/// The least that libcurl needs: one thread, one multi handle, easy handles whose options are set once.
final class BareCurlLoad: Load {
    private final class Transfer {
        var body = Data()
    }

    private let multi: UnsafeMutableRawPointer
    private var transfers: [UnsafeMutableRawPointer: Transfer] = [:]

    /// - Returns: nil without memory.
    init?(_ url: URL, atOnce width: Int) {
        guard curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK, let multi = curl_multi_init() else { return nil }
        self.multi = multi
        for _ in 0..<width {
            guard let easy = curl_easy_init() else { continue }
            let transfer = Transfer()
            transfers[easy] = transfer
            _ = ccurl_set_string(easy, CURLOPT_URL, url.absoluteString)
            _ = ccurl_set_string(easy, CURLOPT_PROXY, "")
            _ = ccurl_set_long(easy, CURLOPT_NOSIGNAL, 1)
            // Not retained: the dictionary keeps it as long as the handle lives.
            _ = ccurl_set_pointer(easy, CURLOPT_WRITEDATA, Unmanaged.passUnretained(transfer).toOpaque())
            _ = ccurl_set_transfer_function(easy, CURLOPT_WRITEFUNCTION) { bytes, size, count, context in
                guard let bytes, let context else { return 0 }
                let transfer = Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
                transfer.body.append(UnsafeRawPointer(bytes).assumingMemoryBound(to: UInt8.self), count: size * count)
                return size * count
            }
        }
    }

    deinit {
        for easy in transfers.keys { curl_easy_cleanup(easy) }
        curl_multi_cleanup(multi)
    }

    func send(_ count: Int) -> Int {
        var toBegin = count
        var underWay = 0
        var right = 0
        func begin(_ easy: UnsafeMutableRawPointer) {
            guard toBegin > 0 else { return }
            toBegin -= 1
            underWay += 1
            curl_multi_add_handle(multi, easy)
        }
        for easy in transfers.keys { begin(easy) }
        while underWay > 0 {
            var running: Int32 = 0
            guard curl_multi_perform(multi, &running) == CURLM_OK else { return right }
            var left: Int32 = 0
            var hasBegun = false
            while let message = curl_multi_info_read(multi, &left) {
                guard message.pointee.msg == CURLMSG_DONE, let easy = message.pointee.easy_handle else { continue }
                let isWhole = message.pointee.data.result == CURLE_OK
                curl_multi_remove_handle(multi, easy)
                underWay -= 1
                if isWhole, transfers[easy]?.body.count == SmallRequests.byteCount { right += 1 }
                transfers[easy]?.body = Data()
                begin(easy)
                hasBegun = true
            }
            if !hasBegun, curl_multi_poll(multi, nil, 0, 1_000, nil) != CURLM_OK { return right }
        }
        return right
    }
}
#endif
