import Foundation
import Testing

@testable import TestSupport

@Suite("Descriptors")
struct DescriptorsTests {
    @Test("The tests have descriptors for all that run at once, where the system has as many")
    func count() {
        // 4,096 is the least hard limit that was seen.
        expect(sysconf(Int32(_SC_OPEN_MAX)) >= 4_096)
    }
}
