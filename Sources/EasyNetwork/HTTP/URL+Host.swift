import Foundation

extension URL {
    /// The host in lower case, with the port if the URL names one: what limits by host go by.
    var hostAndPort: String? { URLParts.hostAndPort(of: absoluteString) }
}
