#if canImport(Darwin)
import Foundation

extension TransportMetrics {
    /// What a session measured, as far as it is known here; the rest is for the exchange to fill in.
    init(_ transaction: URLSessionTaskTransactionMetrics) {
        let begin = transaction.fetchStartDate
        func seconds(_ date: Date?) -> TimeInterval? {
            guard let date, let begin else { return nil }
            return date.timeIntervalSince(begin)
        }
        let isReused = transaction.isReusedConnection
        self.init(
            nameLookup: isReused ? nil : seconds(transaction.domainLookupEndDate),
            // That of a session ends when the connection is secure.
            connect: isReused ? nil : seconds(transaction.secureConnectionStartDate ?? transaction.connectEndDate),
            tls: isReused ? nil : seconds(transaction.secureConnectionEndDate),
            firstByte: seconds(transaction.responseStartDate),
            total: 0,
            bytesSent: Int(
                clamping: transaction.countOfRequestHeaderBytesSent + transaction.countOfRequestBodyBytesSent
            ),
            bytesReceived: Int(
                clamping: transaction.countOfResponseHeaderBytesReceived + transaction.countOfResponseBodyBytesReceived
            ),
            networkProtocol: Self.name(ofProtocol: transaction.networkProtocolName),
            isReusedConnection: isReused,
            remoteAddress: transaction.remoteAddress.map { address in
                let host = address.contains(":") ? "[\(address)]" : address
                return transaction.remotePort.map { "\(host):\($0)" } ?? host
            }
        )
    }

    /// From ALPN's names (RFC 7301, section 6) to those of the status line.
    private static func name(ofProtocol name: String?) -> String? {
        switch name {
        case "h2"?: "HTTP/2"
        case "h3"?: "HTTP/3"
        case let name?: name.uppercased()
        case nil: nil
        }
    }
}
#endif
