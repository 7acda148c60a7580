// libcurl on Linux, where URLSession loses answers and stops the process; URLSession on Apple's platforms.
#if os(Linux) && canImport(CCurl)
/// The transport that hosts use when they name no other: ``CurlTransport`` on Linux, `URLSessionTransport` on Apple's
/// platforms.
public typealias DefaultTransport = CurlTransport
#else
/// The transport that hosts use when they name no other: `CurlTransport` on Linux, ``URLSessionTransport`` on Apple's
/// platforms.
public typealias DefaultTransport = URLSessionTransport
#endif
