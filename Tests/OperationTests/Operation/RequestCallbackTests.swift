import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Callbacks of requests", .timeLimit(.minutes(10)))
struct RequestCallbackTests: ServiceSuite {
    let transport = InMemoryTransport()
    private let queue = NetworkQueue()
    private let callbacks = DispatchQueue(label: "callbacks")
    private static let key = DispatchSpecificKey<Bool>()
    private let notes = Locked<[String]>([])

    init() {
        callbacks.setSpecific(key: Self.key, value: true)
        transport.route("GET", "/good") { _ in .text("good") }
        transport.route("GET", "/stall") { _ in .fault(.stall) }
    }

    private final class Delegate: RequestOperationDelegate {
        let note: @Sendable (String) -> Void

        init(_ note: @escaping @Sendable (String) -> Void) {
            self.note = note
        }

        func requestOperationDidSucceed(_ operation: ServiceOperation) {
            let response = try? (operation as? RequestOperation<Get>)?.result?.get()
            note("delegate \(response?.statusCode ?? 0)")
        }

        func requestOperation(_ operation: ServiceOperation, didFailWith error: NetworkError) {
            note("delegate \(error.code)")
        }
    }

    func prepare(_ host: inout HostSettings) { host.callbackQueue = callbacks }

    private var note: @Sendable (String) -> Void {
        { [notes] text in
            let place = DispatchQueue.getSpecific(key: Self.key) == true ? "on" : "off"
            notes.withLock { $0.append("\(text) \(place)") }
        }
    }

    private func observed(_ path: String, _ service: EasyNetworkService, _ delegate: Delegate) -> RequestOperation<Get>
    {
        let operation = RequestOperation(Get(api: path), service: service)
        let note = note
        operation.delegate = delegate
        operation.preprocess = { note("preprocess \((try? $0.get())?.statusCode ?? 0)") }
        operation.willDeliver = { note("willDeliver \((try? $0.get())?.statusCode ?? 0)") }
        operation.success = { note("success \($0.statusCode)") }
        operation.failure = { note("failure \($0.code)") }
        return operation
    }

    @Test("CBK-1, CBK-4: preprocess off the callback queue, then on it: willDeliver, delegate, closure, for a success")
    func success() async throws {
        let delegate = Delegate(note)
        let operation = observed("good", service(), delegate)
        queue.addOperation(operation)
        await operation.ended()
        expect(
            notes.withLock { $0 },
            equals: ["preprocess 200 off", "willDeliver 200 on", "delegate 200 on", "success 200 on"]
        )
    }

    @Test("CBK-1, CBK-4: the same for a failure, and for one that was cancelled before it began")
    func failure() async throws {
        let delegate = Delegate(note)
        let missing = observed("missing", service(), delegate)
        queue.addOperation(missing)
        await missing.ended()
        func expected(_ code: String) -> [String] {
            ["preprocess 0 off", "willDeliver 0 on", "delegate \(code) on", "failure \(code) on"]
        }
        expect(notes.exchange([]), equals: expected("unacceptableStatus"))
        let cancelled = observed("good", service(), delegate)
        cancelled.cancel()
        queue.addOperation(cancelled)
        await cancelled.ended()
        expect(notes.withLock { $0 } == expected("cancelled") && transport.requests.count == 1)
    }

    @Test("CBK-1: the delegate is not retained; closures and their captures are released after delivery")
    func released() async throws {
        weak var weakDelegate: Delegate?
        weak var weakHeld: Gate?
        let operation: RequestOperation<Get>
        do {
            let delegate = Delegate(note)
            let held = Gate()
            weakDelegate = delegate
            weakHeld = held
            operation = observed("good", service(), delegate)
            operation.preprocess = { _ in withExtendedLifetime(held) {} }
            operation.willDeliver = { _ in withExtendedLifetime(held) {} }
            operation.success = { _ in withExtendedLifetime(held) {} }
        }
        expect(weakDelegate == nil && weakHeld != nil)
        queue.addOperation(operation)
        await operation.ended()
        await expect(eventually { weakHeld == nil })
    }

    @Test("CBK-2: silent cancellation is told to accessories and waiting tasks only; other failures are told")
    func silent() async throws {
        let delegate = Delegate(note)
        let service = service { $0.silencesCancellation = true }
        let operation = observed("stall", service, delegate)
        expect(operation.silencesCancellation)
        queue.addOperation(operation)
        await transport.waitForRequests(1)
        let value = Task { try await operation.value }
        operation.cancel()
        let error = await #expect(throws: NetworkError.self) { try await value.value }
        await operation.ended()
        expect(error?.code == .cancelled && notes.withLock { $0 }.isEmpty)
        let missing = observed("missing", service, delegate)
        queue.addOperation(missing)
        await missing.ended()
        expect(notes.exchange([]).count, equals: 4)
        let loud = observed("good", service, delegate)
        loud.silencesCancellation = false
        loud.cancel()
        queue.addOperation(loud)
        await loud.ended()
        expect(notes.withLock { $0 }.count, equals: 4)
    }

    /// Holds a call until a gate is open, and ends it as it is told.
    private struct Ending: RequestInterceptor {
        var gate: Gate?
        var decision = ResponseDecision.proceed

        func adapt(_ message: TransportRequest, context: AttemptContext) async throws -> TransportRequest {
            await gate?.opened()
            return message
        }

        func didReceive(
            _ result: Result<NetworkResponse, NetworkError>,
            context: AttemptContext
        ) async -> ResponseDecision { decision }
    }

    private struct Ended: APIRequest {
        typealias Item = NetworkResponse
        let ending: Ending
        let api = "good"
        var options: RequestOptions { RequestOptions(interceptors: [ending]) }
    }

    /// Makes another call beside its own, or in its place.
    private final class WithSideCall: RequestOperation<Ended>, @unchecked Sendable {
        // Sendable because its properties are written before it is added to a queue.
        var side = Ended(ending: Ending())
        var sendsItsOwn = true

        override func execute() {
            if sendsItsOwn { super.execute() }
            service.request(side, success: { _ in super.execute() }, failure: { self.finish($0) })
        }
    }

    @Test(
        "CBK-2: the silent end of another call ends an operation only if that has not sent its request",
        arguments: [ResponseDecision.stop, .fail(NetworkError(code: .cancelled))],
        [false, true]
    )
    func silentSideCall(decision: ResponseDecision, sendsItsOwn: Bool) async throws {
        let endCount = Locked(0)
        let service = service { $0.silencesCancellation = true }
        let subscription = service.configuration.subscribe { event in
            if case .callEnded = event.kind { endCount.withLock { $0 += 1 } }
        }
        defer { withExtendedLifetime(subscription) {} }
        let gate = Gate()
        let operation = WithSideCall(Ended(ending: Ending(gate: gate)), service: service)
        operation.side = Ended(ending: Ending(decision: decision))
        operation.sendsItsOwn = sendsItsOwn
        queue.addOperation(operation)
        await expect(eventually { endCount.withLock { $0 } == 1 })
        // The end of that call is over when another one is.
        _ = try await EasyNetworkService(service.configuration).send(Get(api: "good"))
        gate.open()
        await operation.ended()
        expect(operation.error?.code, equals: (sendsItsOwn ? nil : .cancelled))
    }

    @Test("BEY-16: the failure of another call that no closure hears ends an operation that has not sent its request")
    func unheardSideCall() async throws {
        final class Asking: RequestOperation<Get>, @unchecked Sendable {
            override func execute() {
                service.request(Get(api: "missing"), success: { _ in super.execute() })
            }
        }
        let operation = Asking(Get(api: "good"), service: service())
        queue.addOperation(operation)
        await operation.ended()
        expect(operation.error?.statusCode, equals: 404)
    }

    @Test("CBK-4: the closures of a call that is made after the end come on the queue's callback queue")
    func lateCall() async throws {
        let key = DispatchSpecificKey<Bool>()
        let callbackQueue = DispatchQueue(label: "callbacks")
        callbackQueue.setSpecific(key: key, value: true)
        let operation = RequestOperation(Get(api: "good"), service: service())
        let queue = NetworkQueue(callbackQueue: callbackQueue)
        queue.addOperation(operation)
        _ = try await operation.value
        await operation.ended()
        let isThere = await withCheckedContinuation { continuation in
            let called = { @Sendable in
                continuation.resume(returning: DispatchQueue.getSpecific(key: key) == true)
            }
            operation.service.request(Get(api: "good"), success: { _ in called() }, failure: { _ in called() })
        }
        expect(isThere)
    }

    @Test("CBK-8: start and finish of every request are posted, with the request and what it ended with")
    func notifications() async throws {
        let service = service { $0.postsNotifications = true }
        let notes = notes
        let names = [EasyNetworkService.requestDidStartNotification, EasyNetworkService.requestDidFinishNotification]
        let tokens = names.map { name in
            NotificationCenter.default.addObserver(forName: name, object: service.configuration, queue: nil) { note in
                let path = (note.userInfo?[EasyNetworkService.requestKey] as? any BaseAPIRequest)?.api ?? ""
                let response = note.userInfo?[EasyNetworkService.responseKey] as? NetworkResponse
                let error = note.userInfo?[EasyNetworkService.errorKey] as? NetworkError
                let end = response.map { "\($0.statusCode)" } ?? error.map { "\($0.code)" } ?? "start"
                notes.withLock { $0.append("\(path) \(end)") }
            }
        }
        defer { for token in tokens { NotificationCenter.default.removeObserver(token) } }
        for path in ["good", "missing", "ftp://no.example"] {
            let operation = RequestOperation(Get(api: path), service: service)
            queue.addOperation(operation)
            await operation.ended()
        }
        let expected = ["good", "200", "missing", "unacceptableStatus", "ftp://no.example", "invalidRequest"]
        let told = notes.withLock { $0 }
        expect(
            told,
            equals: stride(from: 0, to: 6, by: 2).flatMap {
                ["\(expected[$0]) start", "\(expected[$0]) \(expected[$0 + 1])"]
            }
        )
        let silent = EasyNetworkService(
            HostConfiguration(service.configuration.settings.with { $0.postsNotifications = false })
        )
        _ = try await silent.send(Get(api: "good"))
        expect(notes.withLock { $0.count }, equals: told.count)
    }
}

extension HostSettings {
    fileprivate func with(_ change: (inout HostSettings) -> Void) -> HostSettings {
        var settings = self
        change(&settings)
        return settings
    }
}
