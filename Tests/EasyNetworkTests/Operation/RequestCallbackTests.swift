import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork

@Suite("Callbacks of requests", .timeLimit(.minutes(10)))
struct RequestCallbackTests {
    private let transport = InMemoryTransport()
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

    private func service(_ change: (inout HostSettings) -> Void = { _ in }) throws -> EasyNetworkService {
        let url = try #require(URL(string: "http://one.example"))
        let host = HostConfiguration(baseURL: url, deadlines: TransportDeadlines(idle: nil), transport: transport) {
            host in
            host.retry = .never
            host.callbackQueue = callbacks
            change(&host)
        }
        return EasyNetworkService(host)
    }

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
        let operation = observed("good", try service(), delegate)
        queue.addOperation(operation)
        await operation.ended()
        #expect(
            notes.withLock { $0 } == ["preprocess 200 off", "willDeliver 200 on", "delegate 200 on", "success 200 on"]
        )
    }

    @Test("CBK-1, CBK-4: the same for a failure, and for one that was cancelled before it began")
    func failure() async throws {
        let delegate = Delegate(note)
        let missing = observed("missing", try service(), delegate)
        queue.addOperation(missing)
        await missing.ended()
        func expected(_ code: String) -> [String] {
            ["preprocess 0 off", "willDeliver 0 on", "delegate \(code) on", "failure \(code) on"]
        }
        #expect(notes.exchange([]) == expected("unacceptableStatus"))
        let cancelled = observed("good", try service(), delegate)
        cancelled.cancel()
        queue.addOperation(cancelled)
        await cancelled.ended()
        #expect(notes.withLock { $0 } == expected("cancelled") && transport.requests.count == 1)
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
            operation = observed("good", try service(), delegate)
            operation.preprocess = { _ in withExtendedLifetime(held) {} }
            operation.willDeliver = { _ in withExtendedLifetime(held) {} }
            operation.success = { _ in withExtendedLifetime(held) {} }
        }
        #expect(weakDelegate == nil && weakHeld != nil)
        queue.addOperation(operation)
        await operation.ended()
        #expect(await eventually { weakHeld == nil })
    }

    @Test("CBK-2: silent cancellation is told to accessories and waiting tasks only; other failures are told")
    func silent() async throws {
        let delegate = Delegate(note)
        let service = try service { $0.silencesCancellation = true }
        let operation = observed("stall", service, delegate)
        #expect(operation.silencesCancellation)
        queue.addOperation(operation)
        await transport.waitForRequests(1)
        let value = Task { try await operation.value }
        operation.cancel()
        let error = await #expect(throws: NetworkError.self) { try await value.value }
        await operation.ended()
        #expect(error?.code == .cancelled && notes.withLock { $0 }.isEmpty)
        let missing = observed("missing", service, delegate)
        queue.addOperation(missing)
        await missing.ended()
        #expect(notes.exchange([]).count == 4)
        let loud = observed("good", service, delegate)
        loud.silencesCancellation = false
        loud.cancel()
        queue.addOperation(loud)
        await loud.ended()
        #expect(notes.withLock { $0 }.count == 4)
    }

    @Test("CBK-8: start and finish of every request are posted, with the request and what it ended with")
    func notifications() async throws {
        let service = try service { $0.postsNotifications = true }
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
        #expect(
            told
                == stride(from: 0, to: 6, by: 2).flatMap {
                    ["\(expected[$0]) start", "\(expected[$0]) \(expected[$0 + 1])"]
                }
        )
        let silent = EasyNetworkService(
            HostConfiguration(service.configuration.settings.with { $0.postsNotifications = false })
        )
        _ = try await silent.send(Get(api: "good"))
        #expect(notes.withLock { $0.count } == told.count)
    }
}

extension HostSettings {
    fileprivate func with(_ change: (inout HostSettings) -> Void) -> HostSettings {
        var settings = self
        change(&settings)
        return settings
    }
}
