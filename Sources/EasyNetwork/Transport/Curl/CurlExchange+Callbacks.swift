#if os(Linux) && canImport(CCurl)
internal import CCurl
import Foundation

extension CurlExchange {
    /// Returns the exchange of a callback.
    ///
    /// - Parameter context: A pointer to the handle.
    /// - Returns: Nil only if no exchange uses the handle. The transfer is then aborted.
    static func at(_ context: UnsafeMutableRawPointer?) -> CurlExchange? {
        context.flatMap { Unmanaged<CurlHandle>.fromOpaque($0).takeUnretainedValue().exchange }
    }

    /// Sets the callbacks. They are passed to the handle's current exchange.
    ///
    /// The pointer to the handle is not retained. libcurl calls back only while its own handle exists, which belongs to
    /// this one.
    func setCallbacks(of handle: CurlHandle) {
        let context = Unmanaged.passUnretained(handle).toOpaque()
        // Setting a function or a pointer of a known option cannot fail.
        _ = ccurl_set_pointer(handle.easy, CCURLOPT_PRIVATE, context)
        _ = ccurl_set_pointer(handle.easy, CCURLOPT_HEADERDATA, context)
        _ = ccurl_set_pointer(handle.easy, CCURLOPT_WRITEDATA, context)
        _ = ccurl_set_pointer(handle.easy, CCURLOPT_PREREQDATA, context)
        _ = ccurl_set_transfer_function(handle.easy, CCURLOPT_HEADERFUNCTION) { bytes, size, count, context in
            let length = size * count
            return CurlExchange.at(context)?.received(headerLine: .init(start: bytes, count: length)) == true
                ? length : 0
        }
        _ = ccurl_set_transfer_function(handle.easy, CCURLOPT_WRITEFUNCTION) { bytes, size, count, context in
            CurlExchange.at(context)?.received(.init(start: bytes, count: size * count)) ?? 0
        }
        _ = ccurl_set_connected_function(handle.easy) { context, address, localAddress, port, localPort in
            guard let exchange = CurlExchange.at(context), let address, let localAddress,
                exchange.connected(.init(remote: address, remotePort: port, local: localAddress, localPort: localPort))
            else { return CCURL_PREREQFUNC_ABORT }
            return CCURL_PREREQFUNC_OK
        }
        // The socket callbacks are passed to the loop's connections, which outlive every exchange.
        guard let worker else { return }
        let connections = Unmanaged.passUnretained(worker.connections).toOpaque()
        _ = ccurl_set_pointer(handle.easy, CCURLOPT_SOCKOPTDATA, connections)
        _ = ccurl_set_pointer(handle.easy, CCURLOPT_CLOSESOCKETDATA, connections)
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
        guard let handle else { return }
        if !handle.hasReportFunction {
            handle.hasReportFunction = true
            _ = ccurl_set_pointer(handle.easy, CCURLOPT_DEBUGDATA, Unmanaged.passUnretained(handle).toOpaque())
            _ = ccurl_set_debug_function(handle.easy) { _, kind, bytes, count, context in
                let bytes = UnsafeRawBufferPointer(start: bytes, count: count)
                switch kind {
                case CCURLINFO_TEXT: CurlExchange.at(context)?.received(report: bytes)
                case CCURLINFO_DATA_IN: CurlExchange.at(context)?.received(raw: bytes)
                default: break
                }
                return 0
            }
        }
        handle.isReporting = true
    }

    /// Makes libcurl report to this exchange whether TLS is open, the last time when it considers the message complete.
    func watchTLS() {
        guard let handle else { return }
        handle.needsReset = true
        _ = ccurl_set_progress_function(handle.easy) { context, _, _, _, _ in
            CurlExchange.at(context)?.checkTLS()
            return 0
        }
        _ = ccurl_set_pointer(handle.easy, CCURLOPT_XFERINFODATA, Unmanaged.passUnretained(handle).toOpaque())
        _ = ccurl_set_long(handle.easy, CCURLOPT_NOPROGRESS, 0)
    }

    private static func connections(at context: UnsafeMutableRawPointer?) -> CurlConnections? {
        context.map { Unmanaged<CurlConnections>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Sets the callback that reports TLS. Not every TLS library has it. Without it, phases are slightly less precise.
    func setSecuringCallback(of handle: CurlHandle) {
        _ = ccurl_set_pointer(handle.easy, CCURLOPT_SSL_CTX_DATA, Unmanaged.passUnretained(handle).toOpaque())
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
    func setBodyCallbacks(of handle: CurlHandle) {
        let context = Unmanaged.passUnretained(handle).toOpaque()
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
}
#endif
