import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("What print shows of operations and queues", .timeLimit(.minutes(10)))
struct DescriptionTests {
    private struct GetNews: APIRequest {
        typealias Item = NetworkResponse
        var api = "v1/news?token=s3cret"
        let params = ["password": "s3cret"]
    }

    private let transport = InMemoryTransport()
    private let service: EasyNetworkService

    init() throws {
        let url = try #require(URL(string: "https://api.example.com"))
        service = EasyNetworkService(
            HostConfiguration(baseURL: url, deadlines: TransportDeadlines(idle: nil), transport: transport) { host in
                host.retry = .never
            }
        )
    }

    @Test("BEY-7: an operation tells type, name, request, state and what it waits for")
    func operation() async {
        let over = Gate()
        transport.route("GET", "/v1/news") { _ in .text("late", status: 503) }
        let queue = NetworkQueue()
        let first = TestJob { job in over.whenOpen { job.finish() } }
        first.name = "sign-in"
        let news = RequestOperation(GetNews(), service: service)
        expect("\(news)", equals: "RequestOperation<GetNews> (GET https://api.example.com/v1/news): is on no queue")
        news.name = "news"
        news.addDependency(first)
        queue.addOperations([first, news], waitUntilFinished: false)
        await expect(eventually { "\(first)" == "TestJob 'sign-in': runs" })
        let waiting = "RequestOperation<GetNews> 'news' (GET https://api.example.com/v1/news): waits for 'sign-in'"
        expect("\(news)" == waiting && String(reflecting: news) == waiting)
        over.open()
        _ = try? await news.value
        await expect(eventually { first.isFinished })
        expect("\(first)", equals: "TestJob 'sign-in': has succeeded")
        let failed =
            "RequestOperation<GetNews> 'news': has failed: NetworkError.unacceptableStatus: The server responded with 503"
        expect("\(news)".hasPrefix(failed), "\(news)")
    }

    @Test("BEY-7: a request that is under way is told as it was sent")
    func underWay() async {
        transport.route("GET", "/v1/news") { _ in .fault(.stall) }
        let news = RequestOperation(GetNews(), service: service)
        NetworkQueue().addOperation(news)
        await transport.waitForRequests(1)
        expect("\(news)", equals: "RequestOperation<GetNews> (GET https://api.example.com/v1/news): runs")
        news.cancel()
        await news.ended()
        expect("\(news)", equals: "RequestOperation<GetNews>: was cancelled")
    }

    @Test("BEY-7: a long list of reasons is cut, and one on an OperationQueue says so")
    func manyReasons() {
        let job = TestJob()
        for number in 0..<5 {
            let other = TestJob()
            other.name = "\(number)"
            job.addDependency(other)
        }
        let queue = NetworkQueue()
        queue.addOperation(job)
        expect("\(job)".hasSuffix("waits for '2', which is on no queue; and 2 more"), "\(job)")
        job.cancel()
        expect("\(job)", equals: "TestJob: was cancelled")
        let plain = OperationQueue()
        let waiting = TestJob()
        let never = BlockOperation {}
        waiting.addDependency(never)
        plain.addOperation(waiting)
        expect("\(waiting)", equals: "TestJob: waits in an OperationQueue")
        never.start()
        plain.waitUntilAllOperationsAreFinished()
        expect("\(waiting)", equals: "TestJob: has succeeded")
    }

    @Test("BEY-21: neither operation nor queue tells secrets")
    func secrets() {
        let operation = RequestOperation(GetNews(), service: service)
        operation.name = "token=s3cret"
        let queue = NetworkQueue(name: "token=s3cret")
        queue.setMaxConcurrentOperationCount(1, forTag: "password=s3cret")
        queue.isSuspended = true
        queue.addOperation(operation)
        for text in ["\(operation)", "\(queue)", String(reflecting: operation), "\(queue.queue)"] {
            expect(!text.contains("s3cret"), "\(text)")
        }
        operation.cancel()
    }

    @Test("OPQ-3: a queue tells name, counts and limits")
    func queue() async {
        let queue = NetworkQueue(name: "shop", maxConcurrentOperationCountPerHost: 2)
        expect("\(queue)", equals: "NetworkQueue 'shop': 0 jobs, 0 of 6 slots taken, at most 2 per host")
        let over = Gate()
        let jobs = (0..<3).map { _ in TestJob { job in over.whenOpen { job.finish() } } }
        for job in jobs { job.tags = ["list"] }
        queue.maxConcurrentOperationCount = -1
        queue.maxConcurrentOperationCountPerHost = -1
        queue.setMaxConcurrentOperationCount(2, forTag: "list")
        queue.setMaxConcurrentOperationCount(4, forHost: "API.example.com")
        queue.rateLimit = RateLimit(500, per: 0.5, burst: 10)
        queue.addOperations(jobs, waitUntilFinished: false)
        queue.isSuspended = true
        let text =
            "NetworkQueue 'shop': 3 jobs, 2 slots taken, no limit, api.example.com 0 of 4, tag 'list' 2 of 2, "
            + "at most 500 per 0.5 s, suspended"
        expect("\(queue)" == text && "\(queue.queue)" == text, "\(queue)")
        queue.isSuspended = false
        over.open()
        _ = await queue.shutDown(deadline: 60)
        expect(
            "\(queue)".hasPrefix("NetworkQueue 'shop': 0 jobs, 0 slots taken") && "\(queue)".contains("shut down at ")
        )
    }
}
