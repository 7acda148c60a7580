#if os(Linux) && canImport(CCurl)
internal import CCurl
import Foundation

extension CurlTransfer {
    /// Leads libcurl's callbacks to the transfer that the handle is given.
    func setCallbacks(of handle: CurlHandle) {
        // Setting a function or a pointer of a known option cannot fail.
        _ = ccurl_set_transfer_function(handle.easy, CCURLOPT_HEADERFUNCTION) { bytes, size, count, context in
            let length = size * count
            return CurlTransfer.at(context)?.received(headerLine: .init(start: bytes, count: length)) == true
                ? length : 0
        }
        _ = ccurl_set_transfer_function(handle.easy, CCURLOPT_WRITEFUNCTION) { bytes, size, count, context in
            let length = size * count
            // Anything but the length breaks it off, so that nothing is asked for no bytes.
            guard length > 0 else { return 0 }
            return switch CurlTransfer.at(context)?.received(.init(start: bytes, count: length)) {
            case .taken: length
            case .pause: Int(CCURL_WRITEFUNC_PAUSE)
            case .breakOff, nil: 0
            }
        }
        _ = ccurl_set_connected_function(handle.easy) { context, address, localAddress, port, localPort in
            let ends = CurlConnections.Ends(
                remote: address.map { String(cString: $0) } ?? "",
                remotePort: port,
                local: localAddress.map { String(cString: $0) } ?? "",
                localPort: localPort
            )
            return CurlTransfer.at(context)?.connected(ends) == true ? CCURL_PREREQFUNC_OK : CCURL_PREREQFUNC_ABORT
        }
    }

    /// Leads those that tell of sockets to the loop's connections, which live longer than any of them.
    func setSocketCallbacks(of handle: CurlHandle) {
        let context = Unmanaged.passUnretained(connections).toOpaque()
        _ = ccurl_set_pointer(handle.easy, CCURLOPT_SOCKOPTDATA, context)
        _ = ccurl_set_pointer(handle.easy, CCURLOPT_CLOSESOCKETDATA, context)
        _ = ccurl_set_opened_function(handle.easy) { context, descriptor, _ in
            CurlTransfer.connections(at: context)?.opened(descriptor)
            return CCURL_SOCKOPT_OK
        }
        _ = ccurl_set_close_function(handle.easy) { context, descriptor in
            CurlTransfer.connections(at: context)?.closeSocket(descriptor)
            return 0
        }
    }

    private static func connections(at context: UnsafeMutableRawPointer?) -> CurlConnections? {
        context.map { Unmanaged<CurlConnections>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Leads the one here that tells of TLS. Not every TLS library has it: then phases are a little less precise.
    func setSecuringCallback(of handle: CurlHandle) {
        _ = ccurl_set_securing_function(handle.easy) { _, _, context in
            CurlTransfer.at(context)?.securing()
            return CCURLE_OK
        }
    }

    /// Leads those that ask for the body of the request here; only a message that has one sets them.
    private func setBodyCallbacks(of handle: CurlHandle, _ context: UnsafeMutableRawPointer) {
        _ = ccurl_set_pointer(handle.easy, CCURLOPT_READDATA, context)
        _ = ccurl_set_pointer(handle.easy, CCURLOPT_SEEKDATA, context)
        _ = ccurl_set_transfer_function(handle.easy, CCURLOPT_READFUNCTION) { bytes, size, count, context in
            let read = CurlTransfer.at(context)?.read(into: .init(start: bytes, count: size * count))
            return switch read?.reply {
            case .taken: read?.count ?? 0
            case .pause: Int(CCURL_READFUNC_PAUSE)
            case .breakOff, nil: Int(CCURL_READFUNC_ABORT)
            }
        }
        _ = ccurl_set_seek_function(handle.easy) { context, offset, origin in
            guard origin == SEEK_SET, offset == 0, CurlTransfer.at(context)?.rewind() == true else {
                return CCURL_SEEKFUNC_FAIL
            }
            return CCURL_SEEKFUNC_OK
        }
    }

    /// Leads them here.
    ///
    /// The pointer is not retained: libcurl calls on the loop's thread and only while the handle is in the loop's multi
    /// handle, and until it is taken out the loop keeps the transfer.
    func setContext(of handle: CurlHandle) {
        let context = Unmanaged.passUnretained(self).toOpaque()
        _ = ccurl_set_pointer(handle.easy, CCURLOPT_HEADERDATA, context)
        _ = ccurl_set_pointer(handle.easy, CCURLOPT_WRITEDATA, context)
        _ = ccurl_set_pointer(handle.easy, CCURLOPT_PREREQDATA, context)
        // Also of a message without TLS: the connection to its proxy may have it.
        if handle.hasTLSOptions { _ = ccurl_set_pointer(handle.easy, CCURLOPT_SSL_CTX_DATA, context) }
        if body != nil { setBodyCallbacks(of: handle, context) }
    }

    /// - Returns: nil only without the pointer that was set above; then the transfer is broken off.
    private static func at(_ context: UnsafeMutableRawPointer?) -> CurlTransfer? {
        context.map { Unmanaged<CurlTransfer>.fromOpaque($0).takeUnretainedValue() }
    }
}
#endif
