#if os(Linux) && compiler(>=6.2)
import Foundation
import Synchronization
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("The end of a process", .timeLimit(.minutes(10)))
struct CurlExitTests {
    private static let isUsed = Atomic(false)
    private static let isExiting = Atomic(false)

    @Test("BEY-1: a process that exits lets a use of libcurl end before OpenSSL frees what connections share")
    func exitDuringUse() async {
        await #expect(processExitsWith: .success) {
            // Handlers run in the reverse order, so this one stands for OpenSSL's.
            atexit { if CurlExitTests.isUsed.load(ordering: .acquiring) { _exit(3) } }
            expect(CurlLibrary.problem == nil)
            atexit { CurlExitTests.isExiting.store(true, ordering: .releasing) }
            let begun = Gate()
            Thread.detachNewThread {
                CurlLibrary.use {
                    CurlExitTests.isUsed.store(true, ordering: .releasing)
                    begun.open()
                    while !CurlExitTests.isExiting.load(ordering: .acquiring) { sched_yield() }
                    // Holds the use while the process exits. If nothing waits for it, the handler above finds it.
                    usleep(50_000)
                    CurlExitTests.isUsed.store(false, ordering: .releasing)
                }
            }
            await begun.opened()
            exit(0)
        }
    }
}
#endif
