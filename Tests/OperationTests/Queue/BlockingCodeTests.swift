import Dispatch
import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("User code that blocks its thread", .serialized, .timeLimit(.minutes(10)))
struct BlockingCodeTests {
    enum Place: CaseIterable {
        case mapper, callback, closureOfService, execute, interceptor, validation, joinedValidation, closureOfThen
        case observer, cancelOfChild, storability
    }

    private struct Mapped: APIRequest {
        var api = "a"
        var map: @Sendable () -> Void = {}
        var validate: @Sendable () -> Void = {}
        var repeatPolicy = RepeatPolicy.allow
        var options: RequestOptions { RequestOptions(repeatPolicy: repeatPolicy) }

        func validateParameters() { validate() }

        func item(from response: NetworkResponse) throws -> Int {
            map()
            return response.statusCode
        }
    }

    private struct Blocking: RequestInterceptor {
        let block: @Sendable () -> Void

        func didReceive(
            _ result: Result<NetworkResponse, NetworkError>,
            context: AttemptContext
        ) async -> ResponseDecision {
            block()
            return .proceed
        }
    }

    private final class Working: NetworkOperation, @unchecked Sendable {
        // Sendable because its property is constant.
        let work: @Sendable () -> Void

        init(_ work: @escaping @Sendable () -> Void) {
            self.work = work
            super.init()
        }

        override func execute() {
            work()
            finish()
        }
    }

    private final class Stuck: NetworkOperation, @unchecked Sendable {
        // Sendable because its property is constant.
        let cancelled: @Sendable () -> Void

        init(_ cancelled: @escaping @Sendable () -> Void) {
            self.cancelled = cancelled
            super.init()
        }

        override func execute() {}

        override func cancel() {
            cancelled()
            super.cancel()
        }
    }

    @Test("QUE-1: conditions, refreshes and the code of downloads run on the executor, and take no thread of Swift's")
    func places() async throws {
        guard #available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *) else { return }
        let places = Locked<[String: Bool]>([:])
        let note = { @Sendable (place: String) in
            let isOnExecutor = withUnsafeCurrentTask { $0?.unownedTaskExecutor } != nil
            places.withLock { $0[place] = isOnExecutor }
        }
        let transport = InMemoryTransport()
        transport.route("GET", "/a") { request in
            request.headers["Authorization"] == "Bearer new" ? .text("{}") : .status(401)
        }
        let tokens = TestTokens { _ in
            note("refresh")
            return "new"
        }
        let host = HostConfiguration(baseURL: URL(string: "http://one.example"), transport: transport) {
            $0.authentication = AuthenticationSession(tokens, credential: "old")
        }
        let file = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: file) }
        let download = DownloadOperation(
            Mapped(validate: { note("download") }),
            to: file,
            service: EasyNetworkService(host)
        )
        download.addCondition(
            OperationCondition("noted") { _ in
                note("condition")
                return true
            }
        )
        NetworkQueue().addOperation(download)
        _ = try await download.value
        expect(places.withLock { $0 }, equals: ["condition": true, "refresh": true, "download": true])
    }

    @Test(
        "OPQ-3, CBK-1: code that blocks holds up no other job, not even one that it adds itself",
        arguments: Place.allCases
    )
    func blocked(place: Place) async throws {
        let transport = InMemoryTransport()
        transport.route("GET", "/a") { _ in .text("{}") }
        let url = URL(string: "http://one.example")
        let host = HostConfiguration(baseURL: url, transport: transport)
        let queue = NetworkQueue(maxConcurrentOperationCount: -1)
        let outcomes = Locked<[DispatchTimeoutResult]>([])
        // Blocks until a job that it adds has called back, and twenty more have.
        let block = { @Sendable in
            let group = DispatchGroup()
            for _ in 0..<21 {
                group.enter()
                let other = RequestOperation(Mapped(), service: EasyNetworkService(host))
                other.success = { _ in group.leave() }
                queue.addOperation(other)
            }
            let outcome = group.wait(timeout: .now() + 240)
            outcomes.withLock { $0.append(outcome) }
        }
        let operation: NetworkOperation
        var observer: (any NSObjectProtocol)?
        defer { observer.map(NotificationCenter.default.removeObserver) }
        switch place {
        case .mapper:
            operation = RequestOperation(Mapped(map: block), service: EasyNetworkService(host))
        case .callback:
            let request = RequestOperation(Mapped(), service: EasyNetworkService(host))
            request.success = { _ in block() }
            operation = request
        case .closureOfService:
            let over = Gate()
            EasyNetworkService(host).request(
                Mapped(),
                success: { _ in
                    block()
                    over.open()
                }
            )
            await over.opened()
            expect(outcomes.withLock { $0 }, equals: [.success])
            return
        case .validation:
            operation = RequestOperation(Mapped(validate: block), service: EasyNetworkService(host))
        case .joinedValidation:
            // `validate` runs for each message that is built: once for the comparison, once for the send.
            operation = RequestOperation(
                Mapped(validate: block, repeatPolicy: .join),
                service: EasyNetworkService(host)
            )
        case .observer:
            let watched = HostConfiguration(baseURL: url, transport: transport) { $0.postsNotifications = true }
            observer = NotificationCenter.default.addObserver(
                forName: EasyNetworkService.requestDidFinishNotification,
                object: watched,
                queue: nil
            ) { _ in block() }
            operation = RequestOperation(Mapped(), service: EasyNetworkService(watched))
        case .closureOfThen:
            let first = RequestOperation(Mapped(), service: EasyNetworkService(host))
            operation = first.then { _ in
                block()
                return Mapped()
            }
            queue.addOperation(first)
        case .execute:
            operation = Working(block)
        case .storability:
            let stored = HostConfiguration(baseURL: url, transport: transport) { host in
                host.cache = NetworkCache(diskBytes: 0)
                host.cachePolicy = CachePolicy(
                    .cacheElseNetwork,
                    isStorable: { _ in
                        block()
                        return true
                    }
                )
            }
            let request = RequestOperation(Mapped(), service: EasyNetworkService(stored))
            request.callbackQueue = DispatchQueue(label: "callbacks")
            request.success = { _ in }
            operation = request
        case .cancelOfChild:
            let failing = RequestOperation(Mapped(api: "unknown"), service: EasyNetworkService(host))
            let batch = BatchOperation([Stuck(block), failing])
            operation = Working {}
            operation.addDependency(batch, policy: .allowFailure)
            queue.addOperation(batch)
        case .interceptor:
            let intercepted = HostConfiguration(baseURL: url, transport: transport) {
                $0.interceptors = [Blocking(block: block)]
            }
            operation = RequestOperation(Mapped(), service: EasyNetworkService(intercepted))
        }
        queue.addOperation(operation)
        await operation.ended()
        let seen = outcomes.withLock { $0 }
        expect(!seen.isEmpty && seen.allSatisfy { $0 == .success } && operation.error == nil)
    }
}
