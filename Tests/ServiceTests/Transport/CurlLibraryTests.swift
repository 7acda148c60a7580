#if os(Linux) && canImport(CCurl)
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("CurlLibrary")
struct CurlLibraryTests {
    @Test(
        "BEY-15: a missing library, or one that is not libcurl, is an error that names it",
        // Sanitizers stop the process when it opens a library that resolves its own symbols first.
        .enabled(if: !Sanitizer.isThere)
    )
    func unusable() throws {
        let version = CurlLibrary.version
        for (path, reason) in [("/no/such/libcurl.so.4", "cannot open"), ("libm.so.6", "undefined symbol: curl_")] {
            let problem = try #require(CurlLibrary.load(path: path))
            expect(problem.code, equals: .invalidRequest)
            let message = try #require(problem.message)
            expect(message.contains("libcurl 7.81 or later") && message.contains(path) && message.contains(reason))
            expect(message.contains("apt-get install libcurl4") && message.contains("URLSessionTransport"))
        }
        expect(CurlLibrary.version, equals: version)
    }

    @Test("BEY-15: the libcurl in use is recent enough")
    func usable() {
        expect(CurlLibrary.problem == nil && CurlLibrary.version >= 0x07_51_00)
    }
}
#endif
