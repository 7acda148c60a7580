import Testing

@testable import EasyNetwork

@Suite("PageWalk")
struct PageWalkTests {
    private func load(_ start: PageWalk<Int>.Start) throws -> PageWalk<Int>.Load {
        guard case .load(let load) = start else { throw NetworkError(code: .refused, message: "\(start)") }
        return load
    }

    private func isBusy(_ start: PageWalk<Int>.Start) -> Bool {
        if case .busy = start { true } else { false }
    }

    private func isEnd(_ start: PageWalk<Int>.Start) -> Bool {
        if case .end = start { true } else { false }
    }

    @Test("OPQ-8: first, next, last page; a second next while a page is loaded is ignored")
    func steps() throws {
        var walk = PageWalk(first: 1)
        #expect(!walk.isLoading && !walk.isFirstPage && !walk.isLastPage && walk.pageCount == 0)
        // No page has arrived: the next one is the first.
        let first = try load(walk.beginNext())
        let second = walk.beginNext()
        #expect(first.request == 1 && walk.isLoading && isBusy(second))
        let firstCounts = walk.arrived(first, next: 2)
        #expect(firstCounts && walk.isFirstPage && !walk.isLastPage && !walk.isLoading && walk.pageCount == 1)
        let next = try load(walk.beginNext())
        let nextCounts = walk.arrived(next, next: nil)
        #expect(next.request == 2 && nextCounts && walk.isLastPage && !walk.isFirstPage && walk.pageCount == 2)
        let afterLast = walk.beginNext()
        #expect(isEnd(afterLast) && !walk.isLoading)
        let again = walk.arrived(next, next: 3)
        #expect(!again && walk.isLastPage)
    }

    @Test("OPQ-8: a page that failed may be loaded again; a failed first page does not move the position")
    func failure() throws {
        var walk = PageWalk(first: 1)
        _ = walk.arrived(walk.beginFirst(), next: 2)
        let failed = try load(walk.beginNext())
        let counts = walk.failed(failed)
        let retried = try load(walk.beginNext())
        #expect(counts && retried.request == 2 && walk.pageCount == 1)
        _ = walk.arrived(retried, next: 3)
        _ = walk.failed(walk.beginFirst())
        let goesOn = try load(walk.beginNext())
        #expect(goesOn.request == 3 && walk.pageCount == 2)
    }

    @Test("OPQ-8: after a new start or a cancel the page that was being loaded is ignored")
    func startOver() throws {
        var walk = PageWalk(first: 1)
        _ = walk.arrived(walk.beginFirst(), next: 2)
        let old = try load(walk.beginNext())
        let first = walk.beginFirst()
        let oldArrives = walk.arrived(old, next: 3)
        let oldFails = walk.failed(old)
        #expect(!oldArrives && !oldFails && walk.isLoading && walk.isCurrent(first))
        let firstArrives = walk.arrived(first, next: nil)
        #expect(firstArrives && walk.isFirstPage && walk.isLastPage && walk.pageCount == 1)
        if case .startedOver = walk.beginNext(in: old.round) {} else { Issue.record("an older round") }
        let end = walk.beginNext(in: first.round)
        #expect(isEnd(end))
        let cancelled = walk.beginFirst()
        walk.cancel()
        let counts = walk.arrived(cancelled, next: 9)
        #expect(!counts && !walk.isLoading)
    }
}
