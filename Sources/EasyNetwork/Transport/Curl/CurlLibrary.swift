#if os(Linux) && canImport(CCurl)
internal import CCurl
import Foundation

/// The libcurl of this process, found at run time: the one that Foundation has loaded, or else the system's.
///
/// The environment variable `EASYNETWORK_LIBCURL` names another one, for tests and diagnosis: the path of a library.
enum CurlLibrary {
    /// The reason why there is no usable libcurl, as an error of each request; nil if there is one.
    static let problem = load(path: ProcessInfo.processInfo.environment["EASYNETWORK_LIBCURL"])

    /// The version of libcurl, as `0x08_01_00` for 8.1.0; 0 without one.
    static let version = problem == nil ? ccurl_version() : 0

    /// Loads a library into the process, once; a library that is refused changes nothing.
    ///
    /// - Parameter path: nil or empty for `libcurl.so.4`.
    static func load(path: String?) -> NetworkError? {
        let path = path.flatMap { $0.isEmpty ? nil : $0 }
        let reason = withUnsafeTemporaryAllocation(of: CChar.self, capacity: 512) { buffer -> String? in
            // The buffer has room, so that it has a base address.
            guard let text = buffer.baseAddress else { return "" }
            return ccurl_load(path, 0x07_51_00, text, buffer.count) ? nil : String(cString: text)
        }
        if let reason {
            return NetworkError(
                code: .invalidRequest,
                message:
                    "CurlTransport needs libcurl 7.81 or later, and looked for \(path ?? "libcurl.so.4"): \(reason)"
            )
        }
        // Once for the process. Foundation does the same; libcurl counts.
        guard ccurl_global_init(CCURL_GLOBAL_DEFAULT) == CCURLE_OK else {
            return NetworkError(code: .invalidRequest, message: "libcurl cannot be initialized")
        }
        return nil
    }
}
#endif
