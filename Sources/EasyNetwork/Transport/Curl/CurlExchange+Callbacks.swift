#if os(Linux) && canImport(CCurl)
internal import CCurl
import Foundation

extension CurlExchange {
    /// Returns the exchange of a callback.
    ///
    /// - Returns: Nil only without the pointer that ``setContext(of:)`` sets. The transfer is then aborted.
    static func at(_ context: UnsafeMutableRawPointer?) -> CurlExchange? {
        context.map { Unmanaged<CurlExchange>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Sets the callbacks. They are passed to the handle's current exchange.
    func setCallbacks(of handle: CurlHandle) {
        // Setting a function or a pointer of a known option cannot fail.
        _ = ccurl_set_transfer_function(handle.easy, CCURLOPT_HEADERFUNCTION) { bytes, size, count, context in
            let length = size * count
            return CurlExchange.at(context)?.received(headerLine: .init(start: bytes, count: length)) == true
                ? length : 0
        }
        _ = ccurl_set_transfer_function(handle.easy, CCURLOPT_WRITEFUNCTION) { bytes, size, count, context in
            CurlExchange.at(context)?.received(.init(start: bytes, count: size * count)) ?? 0
        }
        _ = ccurl_set_connected_function(handle.easy) { context, address, localAddress, port, localPort in
            let remote = address.map { String(cString: $0) } ?? ""
            let local = localAddress.map { String(cString: $0) } ?? ""
            let isGood = CurlExchange.at(context)?.connected(remote: remote, port, local: local, localPort) == true
            return isGood ? CCURL_PREREQFUNC_OK : CCURL_PREREQFUNC_ABORT
        }
        _ = ccurl_set_debug_function(handle.easy) { _, kind, bytes, count, context in
            let bytes = UnsafeRawBufferPointer(start: bytes, count: count)
            switch kind {
            case CCURLINFO_TEXT: CurlExchange.at(context)?.received(report: bytes)
            case CCURLINFO_DATA_IN: CurlExchange.at(context)?.received(raw: bytes)
            default: break
            }
            return 0
        }
        // The socket callbacks are passed to the loop's connections, which outlive every exchange.
        guard let worker else { return }
        let context = Unmanaged.passUnretained(worker.connections).toOpaque()
        _ = ccurl_set_pointer(handle.easy, CCURLOPT_SOCKOPTDATA, context)
        _ = ccurl_set_pointer(handle.easy, CCURLOPT_CLOSESOCKETDATA, context)
        _ = ccurl_set_opened_function(handle.easy) { context, descriptor, _ in
            CurlExchange.connections(at: context)?.opened(descriptor)
            return CCURL_SOCKOPT_OK
        }
        _ = ccurl_set_close_function(handle.easy) { context, descriptor in
            CurlExchange.connections(at: context)?.closeSocket(descriptor)
            return 0
        }
    }

    /// Makes libcurl report its actions to this exchange.
    func requestReports() {
        handle?.report(to: Unmanaged.passUnretained(self).toOpaque())
    }

    /// Makes libcurl report to this exchange whether TLS is open, the last time when it considers the message complete.
    func watchTLS() {
        guard let handle else { return }
        handle.needsReset = true
        _ = ccurl_set_progress_function(handle.easy) { context, _, _, _, _ in
            CurlExchange.at(context)?.checkTLS()
            return 0
        }
        _ = ccurl_set_pointer(handle.easy, CCURLOPT_XFERINFODATA, Unmanaged.passUnretained(self).toOpaque())
        _ = ccurl_set_long(handle.easy, CCURLOPT_NOPROGRESS, 0)
    }

    private static func connections(at context: UnsafeMutableRawPointer?) -> CurlConnections? {
        context.map { Unmanaged<CurlConnections>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Sets the callback that reports TLS. Not every TLS library has it. Without it, phases are slightly less precise.
    func setSecuringCallback(of handle: CurlHandle) {
        _ = ccurl_set_securing_function(handle.easy) { _, tls, context in
            guard let exchange = CurlExchange.at(context) else { return CCURLE_OK }
            exchange.isSecuring = true
            if CurlLibrary.keepsAuthorities, exchange.worker?.configuration.tls.trust == .system {
                ccurl_tls_add_default_folder(tls)
            }
            return CCURLE_OK
        }
    }

    /// Sets the callbacks that request the body. Only a message with a body needs them.
    private func setBodyCallbacks(of handle: CurlHandle, _ context: UnsafeMutableRawPointer) {
        _ = ccurl_set_pointer(handle.easy, CCURLOPT_READDATA, context)
        _ = ccurl_set_pointer(handle.easy, CCURLOPT_SEEKDATA, context)
        _ = ccurl_set_transfer_function(handle.easy, CCURLOPT_READFUNCTION) { bytes, size, count, context in
            CurlExchange.at(context)?.read(into: .init(start: bytes, count: size * count)) ?? Int(CCURL_READFUNC_ABORT)
        }
        _ = ccurl_set_seek_function(handle.easy) { context, offset, origin in
            guard origin == SEEK_SET, offset == 0, CurlExchange.at(context)?.rewind() == true else {
                return CCURL_SEEKFUNC_FAIL
            }
            return CCURL_SEEKFUNC_OK
        }
    }

    /// Connects the callbacks of the handle to this exchange.
    ///
    /// The pointer is not retained. libcurl calls back on the loop's thread, and only while the handle is in the loop's
    /// multi handle. Until the handle is removed from it, the worker keeps the exchange.
    func setContext(of handle: CurlHandle) {
        let context = Unmanaged.passUnretained(self).toOpaque()
        _ = ccurl_set_pointer(handle.easy, CCURLOPT_PRIVATE, context)
        _ = ccurl_set_pointer(handle.easy, CCURLOPT_HEADERDATA, context)
        _ = ccurl_set_pointer(handle.easy, CCURLOPT_WRITEDATA, context)
        _ = ccurl_set_pointer(handle.easy, CCURLOPT_PREREQDATA, context)
        // A message without TLS needs this, too: the connection to its proxy can use TLS.
        if handle.hasTLSOptions { _ = ccurl_set_pointer(handle.easy, CCURLOPT_SSL_CTX_DATA, context) }
        if body != nil { setBodyCallbacks(of: handle, context) }
    }
}
#endif
