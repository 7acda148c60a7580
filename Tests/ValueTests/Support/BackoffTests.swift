import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Backoff")
struct BackoffTests {
    private let backoff = Backoff(base: 1, maximum: 5)

    @Test("BEY-8: the bound doubles up to the maximum")
    func bound() {
        expect((0..<5).map(backoff.bound), equals: [1, 2, 4, 5, 5])
        expect(backoff.bound(after: .max), equals: 5)
    }

    @Test("BEY-8: the delay lies between zero and its bound, whatever the random number and the bounds are")
    func delay() {
        expect([0, 0.25, 1].map { backoff.delay(after: 2, random: $0) }, equals: [0, 1, 4])
        expect([-1, .nan, 2].map { backoff.delay(after: 2, random: $0) }, equals: [0, 0, 4])
        for bound in [-1, .nan] {
            expect(Backoff(base: bound, maximum: 5).delay(after: 1, random: 1), equals: 0)
            expect(Backoff(base: 1, maximum: bound).delay(after: 1, random: 1) >= 0)
        }
    }
}
