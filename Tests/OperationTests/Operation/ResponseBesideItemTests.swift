import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("The response beside the item", .timeLimit(.minutes(10)))
struct ResponseBesideItemTests: ServiceSuite {
    let transport = InMemoryTransport()

    init() {
        for id in 1...20 {
            transport.route("GET", "/users/\(id)") { _ in
                .json(["id": id, "name": "Ann"], headers: ["Link": "</next>"])
            }
        }
        transport.route("GET", "/broken") { _ in .status(404) }
    }

    @Test("RSP-8: an operation has the response of its item, without its body")
    func property() async throws {
        let operation = RequestOperation(GetAccount(id: 7), service: service())
        let seen = Locked<[String?]>([])
        operation.success = { [weak operation] _ in seen.withLock { $0.append(operation?.response?.headers["Link"]) } }
        expect(operation.response == nil)
        NetworkQueue().addOperation(operation)
        try await expect(operation.value.id, equals: 7)
        let response = try #require(operation.response)
        expect(response.statusCode == 200 && response.headers["Link"] == "</next>" && response.source == .network)
        expect(response.history.count == 1 && response.url?.path == "/users/7")
        expect(response.body.isEmpty && response.node == nil)
        expect(seen.withLock { $0 }, equals: ["</next>"])
    }

    @Test("RSP-8: the body goes when the item has been made, and stays if that is asked for or the item has it")
    func body() async throws {
        let (dropped, kept) = (
            RequestOperation(GetAccount(id: 1), service: service()),
            RequestOperation(GetAccount(id: 1), service: service())
        )
        kept.keepsResponseBody = true
        let whole = RequestOperation(Get(api: "users/1"), service: service())
        NetworkQueue().addOperations([dropped, kept, whole], waitUntilFinished: false)
        try await expect(dropped.valueWithResponse.response.body.isEmpty)
        let (item, response) = try await kept.valueWithResponse
        expect(item.id == 1 && response.body == Data(#"{"id":1,"name":"Ann"}"#.utf8))
        try await expect(whole.value.text().hasPrefix("{") && whole.response?.body.isEmpty == true)
    }

    @Test("RSP-8: a failure has no response beside its error")
    func failure() async throws {
        let operation = RequestOperation(Get(api: "broken"), service: service())
        operation.successWithResponse = { _, _ in Issue.record("it has failed") }
        let code = Locked<Int?>(nil)
        operation.failure = { error in code.exchange(error.statusCode) }
        NetworkQueue().addOperation(operation)
        await operation.ended()
        expect(operation.response == nil && operation.error?.statusCode == 404 && code.withLock { $0 } == 404)
        // The item cannot be made of what came.
        transport.route("GET", "/users/1") { _ in .json([Int]()) }
        let unreadable = RequestOperation(GetAccount(id: 1), service: service())
        NetworkQueue().addOperation(unreadable)
        await unreadable.ended()
        expect(unreadable.error != nil && unreadable.response == nil)
    }

    @Test("RSP-8: closures get the response beside the item, after those for the item, once")
    func closures() async throws {
        let operation = RequestOperation(GetAccount(id: 7), service: service())
        let calls = Locked<[String]>([])
        operation.success = { account in calls.withLock { $0.append("\(account.id)") } }
        operation.successWithResponse = { account, response in
            calls.withLock { $0.append("\(account.id) \(response.headers["Link"] ?? "")") }
        }
        NetworkQueue().addOperation(operation)
        await operation.ended()
        expect(calls.withLock { $0 }, equals: ["7", "7 </next>"])
        expect(operation.successWithResponse == nil)
        // Alone, it is called, too; removed, it is not.
        let (alone, removed) = (
            RequestOperation(GetAccount(id: 8), service: service()),
            RequestOperation(GetAccount(id: 9), service: service())
        )
        for operation in [alone, removed] {
            operation.successWithResponse = { account, _ in calls.withLock { $0.append("\(account.id)") } }
        }
        removed.successWithResponse = nil
        NetworkQueue().addOperations([alone, removed], waitUntilFinished: false)
        await alone.ended()
        await removed.ended()
        expect(calls.withLock { $0 }, equals: ["7", "7 </next>", "8"])
    }

    @Test("RSP-8: on the main actor, too")
    @MainActor
    func onMain() async throws {
        let operation = RequestOperation(GetAccount(id: 7), service: service())
        var seen: [String] = []
        operation.onMain(successWithResponse: { account, response in
            seen.append("\(account.id) \(response.headers["Link"] ?? "")")
        })
        NetworkQueue().addOperation(operation)
        await operation.ended()
        expect(seen, equals: ["7 </next>"])
    }

    @Test("RSP-8: values that an interceptor attached reach the callbacks")
    func attached() async throws {
        struct Pages: RequestInterceptor {
            func didReceive(
                _ result: Result<NetworkResponse, NetworkError>,
                context: AttemptContext
            ) async -> ResponseDecision {
                guard case .success(var response) = result else { return .proceed }
                response.userInfo["page"] = 3
                return .succeed(response)
            }
        }
        let operation = RequestOperation(GetAccount(id: 7), service: service { $0.interceptors = [Pages()] })
        let page = Locked<Int?>(nil)
        operation.successWithResponse = { _, response in page.exchange(response.userInfo["page"] as? Int) }
        NetworkQueue().addOperation(operation)
        await operation.ended()
        expect(page.withLock { $0 } == 3 && operation.response?.userInfo["page"] as? Int == 3)
    }

    @Test("RSP-8: in tasks the response comes with its body")
    func tasks() async throws {
        let (queue, service) = (NetworkQueue(), service())
        for (account, response) in [
            try await queue.performWithResponse(GetAccount(id: 7), service: service),
            try await service.performWithResponse(GetAccount(id: 7)),
        ] {
            expect(account.id == 7 && response.headers["Link"] == "</next>" && response.body.count > 10)
        }
        await #expect(throws: NetworkError.self) {
            try await queue.performWithResponse(Get(api: "broken"), service: service)
        }
        var seen: [Int: Int] = [:]
        let requests = (1...20).map { GetAccount(id: $0) }
        for await (index, result) in queue.results(of: requests, maxConcurrentOperationCount: 3, service: service)
            .withResponses
        {
            let (account, response) = try result.get()
            expect(account.id == index + 1 && response.headers["Link"] == "</next>")
            seen[index] = response.body.count
        }
        expect(seen.count == 20 && seen.values.allSatisfy { $0 > 10 })
    }

    @Test("RSP-8, BEY-16: closures of the older way get the whole response beside the JSON")
    func olderWay() async throws {
        final class Load: ServiceOperation, @unchecked Sendable {
            // Sendable because it is written before the operation ends, and read afterwards.
            var seen = ""

            override func execute() {
                service.request(
                    GetAccount(id: 7),
                    successWithResponse: { json, response in
                        let name = (json as? [String: Any])?["name"] as? String
                        self.seen = "\(name ?? "") \(response.headers["Link"] ?? "") \(response.body.count > 10)"
                        self.finish()
                    }
                )
            }
        }
        let operation = Load(service: service())
        NetworkQueue().addOperation(operation)
        await operation.ended()
        expect(operation.seen, equals: "Ann </next> true")
        let failing = service()
        let code = await withCheckedContinuation { continuation in
            failing.requestOnMain(
                Get(api: "broken"),
                successWithResponse: { _, _ in Issue.record("it has failed") },
                failure: { continuation.resume(returning: $0.statusCode) }
            )
        }
        expect(code, equals: 404)
    }

    @Test("RSP-8: a shared answer and one of the cache say so, each beside its own item")
    func sources() async throws {
        // The answer comes when both have joined.
        let gate = DispatchSemaphore(value: 0)
        transport.route("GET", "/shared") { _ in
            gate.wait()
            return .text("a", headers: ["Cache-Control": "max-age=86400"])
        }
        let service = service { ($0.cache, $0.cachePolicy) = (NetworkCache(diskBytes: 0), .http) }
        let jobs = (0..<2).map { _ in RequestOperation(Get(api: "shared"), service: service) }
        for job in jobs { job.repeatPolicy = .join }
        let queue = NetworkQueue()
        queue.addOperations(jobs, waitUntilFinished: false)
        await expect(eventually { queue.joinedCount == 2 })
        gate.signal()
        for job in jobs { await job.ended() }
        let later = RequestOperation(Get(api: "shared"), service: service)
        queue.addOperation(later)
        await later.ended()
        expect(Set((jobs + [later]).map(\.response?.source)), equals: [.network, .joined, .cache])
    }

    @Test("RSP-8: a batch's operations have their responses, and a download that of its last message")
    func others() async throws {
        let service = service()
        let jobs = (1...3).map { RequestOperation(GetAccount(id: $0), service: service) }
        let batch = BatchOperation(jobs)
        let queue = NetworkQueue()
        queue.addOperation(batch)
        try await batch.finished()
        expect(jobs.map { $0.response?.url?.path }, equals: ["/users/1", "/users/2", "/users/3"])
        let folder = TestFolder()
        let download = DownloadOperation(
            Get(api: "users/1"),
            to: folder.file("a"),
            service: service
        )
        queue.addOperation(download)
        _ = try await download.value
        expect(download.response?.headers["Link"] == "</next>" && download.response?.body.isEmpty == true)
    }
}
