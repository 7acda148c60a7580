import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("The progress of ordinary requests", .timeLimit(.minutes(10)))
struct RequestProgressTests {
    /// A request whose item is the unchanged response.
    private struct Send: APIRequest {
        typealias Item = NetworkResponse
        var api = "send"
        var method = NetworkService.Method.post
        var body: RequestBody?
        var repeatPolicy = RepeatPolicy.allow
        var options: RequestOptions { RequestOptions(repeatPolicy: repeatPolicy) }
    }

    private let transport = SteeredTransport()
    private let clock = ManualClock()
    private let queue = NetworkQueue()

    private func operation(
        _ request: Send = Send(),
        _ change: (inout HostSettings) -> Void = { _ in }
    ) -> RequestOperation<Send> {
        let host = transport.host { host in
            host.clock = clock
            change(&host)
        }
        return RequestOperation(request, service: EasyNetworkService(host))
    }

    /// Whether the progress soon has these counts; a total of -1 is indeterminate.
    private func shows(_ progress: Progress, _ completed: Int64, of total: Int64) async -> Bool {
        await eventually {
            clock.advance(by: 0.1)
            return progress.completedUnitCount == completed && progress.totalUnitCount == total
        }
    }

    @Test(
        "TRF-1, CBK-1: the bytes of the body and of the answer, indeterminate until the head, whole before the callbacks",
        arguments: [true, false]
    )
    func bytes(isReadLate: Bool) async throws {
        let operation = operation(Send(body: .data(Data(count: 10))))
        if !isReadLate { expect(operation.progress.isIndeterminate && !operation.progress.isPausable) }
        let seen = Locked<Bool?>(nil)
        operation.success = { [weak operation] _ in seen.exchange(operation?.progress.isFinished) }
        queue.addOperation(operation)
        let exchange = try #require(await transport.exchange(0))
        exchange.sent(4)
        let progress = operation.progress
        await expect(shows(progress, 4, of: -1))
        exchange.sent(10)
        await expect(shows(progress, 10, of: -1))
        exchange.head(200, ["Content-Length": "20"])
        await expect(shows(progress, 10, of: 30))
        exchange.body(Data(count: 15))
        await expect(shows(progress, 25, of: 30))
        exchange.body(Data(count: 5))
        exchange.end()
        _ = try await operation.value
        expect(progress.isFinished && progress.completedUnitCount == 30 && progress.totalUnitCount == 30)
        expect(seen.withLock { $0 }, equals: true)
    }

    @Test("TRF-1: it counts every byte when the thread that begins the request is slower than the answer")
    func answerBeforeReturn() async throws {
        final class SlowOperation: RequestOperation<Send>, @unchecked Sendable {
            let mayGoOn = DispatchSemaphore(value: 0)

            override func execute() {
                super.execute()
                _ = mayGoOn.wait(timeout: .now() + 60)
            }
        }
        let service = EasyNetworkService(transport.host())
        let operation = SlowOperation(Send(body: .data(Data(count: 10))), service: service)
        let progress = operation.progress
        queue.addOperation(operation)
        let exchange = try #require(await transport.exchange(0))
        exchange.sent(10)
        exchange.head()
        exchange.end()
        await expect(eventually { operation.result != nil })
        operation.mayGoOn.signal()
        _ = try await operation.value
        expect(progress.isFinished && progress.completedUnitCount == 10)
    }

    @Test("TRF-1: it is indeterminate to the end when a length is not known, and has no bytes that do not come")
    func lengths() async throws {
        typealias Case = (request: Send, status: Int, headers: HTTPHeaders, total: Int64)
        let stream = TransportBodyStream { InputStream(data: Data(count: 10)) }
        let cases: [Case] = [
            (Send(), 200, ["Transfer-Encoding": "chunked"], -1),
            (Send(), 200, ["Content-Length": "9", "Content-Encoding": "gzip"], -1),
            (Send(body: .stream(stream)), 200, ["Content-Length": "9"], -1),
            (Send(), 200, ["Content-Length": "9"], 9),
            (Send(method: .head), 200, ["Content-Length": "9"], -1),
            (Send(body: .text("body")), 204, ["Content-Length": "9"], 4),
        ]
        for (number, (request, status, headers, total)) in cases.enumerated() {
            let operation = operation(request)
            let progress = operation.progress
            queue.addOperation(operation)
            let exchange = try #require(await transport.exchange(number))
            exchange.head(status, headers)
            await expect(shows(progress, 0, of: total), "\(number)")
            exchange.end()
            _ = try await operation.value
            expect(progress.isFinished && progress.completedUnitCount == max(1, total), "\(number)")
        }
    }

    @Test("TRF-1: it begins again with a redirect and with a retry, and stays where it was after a failure")
    func beginsAgain() async throws {
        let operation = operation(Send(method: .put, body: .text("body"))) { host in
            host.retry = RetryPolicy(maximumRetryCount: 1, baseDelay: 0)
        }
        let progress = operation.progress
        queue.addOperation(operation)
        let statuses: [(status: Int, headers: HTTPHeaders)] = [
            (307, ["Location": "/elsewhere", "Content-Length": "2"]), (503, ["Content-Length": "3"]),
            (404, ["Content-Length": "100"]),
        ]
        for (number, (status, headers)) in statuses.enumerated() {
            let isThere = await eventually {
                clock.advance(by: 0.1)
                return transport.exchanges.count > number
            }
            expect(isThere)
            await expect(shows(progress, 0, of: -1))
            let exchange = transport.exchanges[number]
            exchange.sent(4)
            exchange.head(status, headers)
            exchange.body("x")
            let length = Int64(headers["Content-Length"] ?? "") ?? 0
            await expect(shows(progress, 5, of: 4 + length))
            if length < 100 { exchange.body(String(repeating: "x", count: Int(length) - 1)) }
            exchange.end(length < 100 ? nil : .connectionLost)
        }
        await operation.ended()
        expect(operation.error != nil && !progress.isFinished)
        expect(progress.completedUnitCount == 5 && progress.totalUnitCount == 104)
    }

    @Test("TRF-1: cancelling it cancels the request")
    func cancel() async throws {
        let operation = operation()
        queue.addOperation(operation)
        let exchange = try #require(await transport.exchange(0))
        operation.progress.cancel()
        await operation.ended()
        expect(operation.isCancelled && operation.error?.code == .cancelled && exchange.isCancelled)
        expect(!operation.progress.isFinished)
    }

    @Test("TRF-1: it is made for those who ask, also in a batch and after the end; an answer without bytes finishes it")
    func onlyWhenRead() async throws {
        let (asked, unasked) = (operation(Send(repeatPolicy: .join)), operation())
        let batch = BatchOperation([unasked])
        let progress = asked.progress
        queue.addOperations([asked, batch], waitUntilFinished: false)
        for number in 0..<2 {
            let exchange = try #require(await transport.exchange(number))
            exchange.head(200, ["Content-Length": "3"])
            exchange.body("abc")
            exchange.end()
        }
        await asked.ended()
        await batch.ended()
        expect(progress.isFinished && progress.totalUnitCount == 1)
        expect(batch.progress.fractionCompleted == 1 && unasked.state.withLock { $0.meter == nil })
        await expect(shows(unasked.progress, 1, of: 1))
        let ended = operation()
        ended.cancel()
        expect(!ended.progress.isFinished && !ended.progress.isCancelled)
    }

    @Test("TRF-1: over sockets it ends with the bytes of both bodies", arguments: Wire.allCases)
    func sockets(wire: Wire) async throws {
        let server = try MockServer()
        server.route("POST", "/send") { _ in .data(Data(count: 300_000)) }
        let service = EasyNetworkService(server.host(transport: wire.transport))
        let operation = RequestOperation(Send(body: .data(Data(count: 200_000))), service: service)
        let progress = operation.progress
        queue.addOperation(operation)
        _ = try await operation.value
        expect(progress.isFinished && progress.completedUnitCount == 500_000)
    }
}
