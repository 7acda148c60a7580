#if os(Linux) && canImport(CCurl)
import Foundation

/// Where a message goes, read from the bytes of its address: asked for one by one, the components of a `URL` cost as much as
/// sending a small message.
struct CurlTarget {
    /// The whole address, as libcurl is given it.
    let address: String
    /// Scheme, host and port: `https://api.example.com:8443`. The whole address if that is not absolute.
    let origin: String
    /// In lower case; empty if the address is not absolute.
    let scheme: String
    /// Whether it names a user or a password.
    let hasCredentials: Bool

    init(_ url: URL) {
        address = url.absoluteString
        // RFC 3986, section 3: scheme "://" [ userinfo "@" ] host [ ":" port ], up to a slash, question mark or hash.
        let bytes = address.utf8
        let slash = UInt8(ascii: "/")
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")),
            bytes[bytes.index(after: colon)...].starts(with: [slash, slash])
        else {
            (origin, scheme, hasCredentials) = (address, "", false)
            return
        }
        let start = bytes.index(colon, offsetBy: 3)
        let end =
            bytes[start...].firstIndex { $0 == slash || $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") }
            ?? bytes.endIndex
        scheme = address[..<colon].lowercased()
        if let at = bytes[start..<end].lastIndex(of: UInt8(ascii: "@")) {
            origin = String(address[..<start] + address[bytes.index(after: at)..<end])
            hasCredentials = true
        } else {
            origin = String(address[..<end])
            hasCredentials = false
        }
    }

    var isHTTPS: Bool { scheme == "https" }
    var isHTTP: Bool { scheme == "http" }
}
#endif
