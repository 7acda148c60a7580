import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Calls", .timeLimit(.minutes(10)))
struct CallTests {
    private struct Call: APIRequest {
        typealias Item = NetworkResponse
        var api = "a"
    }

    @Test("BEY-8, SEC-2: redirects and retries go round again, each retry from the beginning, all in the history")
    func roundAgain() async throws {
        let statuses = [302, 503, 307, 200]
        let transport = ScriptedTransport { _, number in
            .answer(statuses[number], statuses[number] == 503 ? [:] : ["Location": number == 0 ? "/b" : "/c"])
        }
        let response = try await EasyNetworkService(transport.host()).send(Call())
        expect(transport.messages.map(\.url.path), equals: ["/a", "/b", "/a", "/c"])
        expect(response.history.map(\.reason), equals: [.first, .redirect, .retry, .redirect])
        expect(response.history.map(\.statusCode), equals: statuses)
        expect(response.history.count { $0.reason != .redirect }, equals: 2)
    }

    @Test("SEC-2: each attempt may follow as many redirects as the policy has, and a retry begins to count again")
    func redirectLimit() async throws {
        let statuses = [302, 302, 503, 302, 302, 302]
        let transport = ScriptedTransport { _, number in .answer(statuses[number], ["Location": "/b"]) }
        let host = transport.host { $0.redirects.limit = 2 }
        let error = await #expect(throws: NetworkError.self) { try await EasyNetworkService(host).send(Call()) }
        expect(error?.code == .redirectFailed && transport.messages.count == 6)
    }

    @Test("BEY-8: with progress a request is retried up to a hundred times as often, and not without end")
    func progressLimit() {
        for (limit, most) in [(0, 0), (1, 100), (3, 300)] {
            let policy = RetryPolicy(maximumRetryCount: limit)
            expect(!policy.mayGoOn(totalCount: most))
            expect(most == 0 || policy.mayGoOn(totalCount: most - 1))
        }
        expect(RetryPolicy(maximumRetryCount: .max).mayGoOn(totalCount: .max - 1))
    }

    private struct Insatiable: RequestInterceptor {
        func didReceive(_ result: Result<NetworkResponse, NetworkError>, context: AttemptContext) async
            -> ResponseDecision
        {
            .sendAgain()
        }
    }

    @Test("CBK-6: interceptors that have a request sent again and again are stopped after twenty times")
    func sentAgain() async {
        let transport = ScriptedTransport { _, _ in .answer(200) }
        let host = transport.host { $0.interceptors = [Insatiable()] }
        let error = await #expect(throws: NetworkError.self) { try await EasyNetworkService(host).send(Call()) }
        expect(error?.code == .cannotSendAgain && error?.attempts == 21 && transport.messages.count == 21)
    }

    private struct Tokens: Authenticator {
        func apply(_ credential: String, to message: inout TransportRequest) {
            message.headers["Authorization"] = "Bearer \(credential)"
        }

        func refresh(_ credential: String?, over service: EasyNetworkService) async throws -> String { "2" }
    }

    @Test(
        "CBK-7, SEC-1: a credential stays with its origin on the way of redirects, and is put in again on the way back"
    )
    func redirectedCredential() async throws {
        let places = ["https://other.example/b", "https://api.example.com/c", "/d"]
        let transport = ScriptedTransport { _, number in
            number < places.count ? .answer(302, ["Location": places[number]]) : .answer(200)
        }
        let session = AuthenticationSession(Tokens(), credential: "1")
        _ = try await EasyNetworkService(transport.host { $0.authentication = session }).send(Call())
        expect(transport.messages.map { $0.headers["Authorization"] != nil }, equals: [true, false, true, true])
    }

    private final class Stubborn: RequestInterceptor {
        let asked = Gate()
        let goesOn = Gate()

        func adapt(_ message: TransportRequest, context: AttemptContext) async throws -> TransportRequest {
            asked.open()
            await goesOn.opened()
            return message
        }
    }

    @Test("OPQ-2: cancelled while an interceptor adapts the message, nothing is sent, though the interceptor goes on")
    func cancelledWhileAdapted() async {
        let transport = ScriptedTransport { _, _ in .answer(200) }
        var interceptor: Stubborn? = Stubborn()
        weak let weakly = interceptor
        let (asked, goesOn) = (interceptor?.asked, interceptor?.goesOn)
        var service: EasyNetworkService? = EasyNetworkService(
            transport.host { [interceptor] host in host.interceptors = interceptor.map { [$0] } ?? [] }
        )
        interceptor = nil
        service?.request(Call())
        await asked?.opened()
        service?.cancel()
        service = nil
        goesOn?.open()
        // The call retains it until its task has ended.
        await expect(eventually { weakly == nil })
        expect(transport.messages.isEmpty)
    }

    @Test("TRF-3: an answer of which enough is used stops its exchange")
    func usedInPart() async {
        let transport = ScriptedTransport { _, _ in [.head(TransportHead(statusCode: 200))] }
        let over = Gate()
        var request = CallRequest(Call())
        request.consumer = { message in (message, { _, _, _ in .used }) }
        EasyNetwork.Call(request, in: CallGroup(transport.host())) { _, _, _ in over.open() }.start()
        await over.opened()
        await expect(eventually { transport.cancelCount.withLock { $0 } == 1 })
    }

    @Test("OPQ-2: a call that is cancelled while its message goes out ends once, at once, and its exchange is stopped")
    func cancelled() async {
        let transport = ScriptedTransport { _, _ in [] }
        let service = EasyNetworkService(transport.host())
        let errors = Locked<[NetworkError.Code]>([])
        await withCheckedContinuation { continuation in
            service.request(
                Call(),
                failure: { (error: NetworkError) in
                    errors.withLock { $0.append(error.code) }
                    continuation.resume()
                }
            )
            Task {
                _ = await eventually { transport.messages.count == 1 }
                service.cancel()
                service.cancel()
            }
        }
        _ = await eventually { transport.cancelCount.withLock { $0 } == 1 }
        expect(errors.withLock { $0 }, equals: [.cancelled])
    }

    @Test("BEY-5: the answer of a call that is ended from outside is cancelled, also one that has not begun yet")
    func answerOfEndedCall() throws {
        let message = TransportRequest(url: try #require(URL(string: "https://api.example.com/")))
        let attempt = NetworkAttempt(reason: .first, request: NetworkError.Request(method: "GET", url: message.url))
        for isLate in [true, false] {
            let call = EasyNetwork.Call(CallRequest(Call()), in: CallGroup(.shared)) { _, _, _ in }
            let answer = BodyStream()
            if isLate { call.cancel() }
            call.noteStart(attempt, message, answer)
            expect((answer.end == nil) != isLate)
            call.cancel()
            expect(answer.end?.error?.code, equals: .cancelled)
        }
    }

    @Test("OPQ-2: when the cancel of a call has returned, its task is cancelled, or never begins")
    func cancelledAtBeginning() async {
        let isLate = Locked(false)
        for _ in 0..<2_000 {
            let hasReturned = Gate()
            var request = CallRequest(Call())
            request.sharedResponse = {
                await hasReturned.opened()
                if !Task.isCancelled { isLate.exchange(true) }
                return EasyNetwork.Call.Conclusion(result: .failure(NetworkError(code: .cancelled)))
            }
            // Its task keeps the call.
            weak var kept: EasyNetwork.Call?
            do {
                let call = EasyNetwork.Call(request, in: CallGroup(.shared)) { _, _, _ in }
                kept = call
                DispatchQueue.concurrentPerform(iterations: 2) { index in
                    guard index == 1 else {
                        call.cancel()
                        return hasReturned.open()
                    }
                    call.start()
                }
            }
            await expect(eventually { kept == nil })
        }
        expect(!isLate.withLock { $0 })
    }
}
