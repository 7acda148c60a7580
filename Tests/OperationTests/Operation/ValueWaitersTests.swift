import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Tasks that await a value", .timeLimit(.minutes(10)))
struct ValueWaitersTests {
    @Test("BEY-3: a cancelled waiter among several returns at once, and the job goes on for the others")
    func oneOfSeveral() async throws {
        let server = try MockServer()
        let gate = DispatchSemaphore(value: 0)
        server.route("GET", "/held") { _ in
            gate.wait()
            return .text("ok")
        }
        let operation = RequestOperation(Get(api: "held"), service: EasyNetworkService(server.host()))
        let impatient = (0..<3).map { _ in Task { try await operation.value } }
        let patient = Task { try await operation.value.text() }
        NetworkQueue().addOperation(operation)
        await server.waitForRequests(1)
        // The server withholds the answer until all of them have given up.
        await expect(eventually { operation.waiterCount == 4 })
        for task in impatient {
            task.cancel()
            let error = await #expect(throws: NetworkError.self) { try await task.value }
            expect(error?.code, equals: .cancelled)
        }
        expect(!operation.isCancelled && operation.waiterCount == 1)
        gate.signal()
        try await expect(patient.value, equals: "ok")
    }

    @Test("BEY-3: when the last waiter is cancelled the operation is, and its connection is closed")
    func lastOfSeveral() async throws {
        let server = try MockServer()
        server.route("GET", "/stall") { _ in .fault(.stall) }
        let operation = RequestOperation(Get(api: "stall"), service: EasyNetworkService(server.host()))
        NetworkQueue().addOperation(operation)
        let tasks = (0..<20).map { _ in Task { try await operation.value } }
        await server.waitForRequests(1)
        await expect(eventually { operation.waiterCount == tasks.count })
        for task in tasks { task.cancel() }
        for task in tasks {
            let error = await #expect(throws: NetworkError.self) { try await task.value }
            expect(error?.code, equals: .cancelled)
        }
        expect(operation.isCancelled)
        await expect(server.waitForConnections(0))
    }

    #if compiler(>=6.2)
    @Test("BEY-3: a task that waits for a job on no queue is reported once, after a second; not for a part of a job")
    func forgotten() async throws {
        // In a process of its own, whose standard error has nothing else.
        let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
            let clock = ManualClock()
            let transport = InMemoryTransport()
            transport.route("GET", "*") { _ in .text("ok") }
            let url = URL(string: "https://api.example.com")
            let host = HostConfiguration(baseURL: url, transport: transport) { $0.clock = clock }
            let jobs = ["forgotten", "late", "prompt", "step"].map { name in
                let job = RequestOperation(Get(api: name), service: EasyNetworkService(host))
                job.name = name
                return job
            }
            let queue = NetworkQueue()
            queue.addOperation(jobs[2])
            let suspended = NetworkQueue()
            suspended.isSuspended = true
            suspended.addOperation(ChainOperation([jobs[3]]))
            let tasks = jobs.flatMap { job in (0..<3).map { _ in Task { try await job.value } } }
            for job in jobs { await expect(eventually { job.waiterCount == 3 || job.isFinished }) }
            await clock.waitForTimers(9)
            clock.advance(by: 0.99)
            queue.addOperation(jobs[1])
            for task in tasks[3..<9] { _ = try await task.value }
            clock.advance(by: 0.01)
            clock.advance(by: 100)
            await withCheckedContinuation { done in LogWriter.mistakes.settle { done.resume() } }
            for task in tasks { task.cancel() }
        }
        let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        let lines = text.split(separator: "\n").filter { $0.contains("is on no queue") }
        expect(lines.count == 1 && lines[0].contains("'forgotten' is awaited"), "\(text)")
    }
    #endif

    @Test("BEY-3: an item that is there wins over the cancellation of the task")
    func itemWins() async throws {
        let server = try MockServer()
        server.route("GET", "/a") { _ in .text("ok") }
        let operation = RequestOperation(Get(api: "a"), service: EasyNetworkService(server.host()))
        NetworkQueue().addOperation(operation)
        _ = try await operation.value
        let gate = Gate()
        let task = Task {
            await gate.opened()
            return try await operation.value.text()
        }
        task.cancel()
        gate.open()
        try await expect(task.value, equals: "ok")
        expect(!operation.isCancelled)
    }

    @Test("BEY-3: an operation that was awaited, cancelled and never started is released")
    func release() async throws {
        weak var released: RequestOperation<Get>?
        do {
            let operation = RequestOperation(Get(api: "a"), service: EasyNetworkService(HostConfiguration.shared))
            released = operation
            let task = Task { try await operation.value }
            task.cancel()
            _ = await task.result
        }
        await expect(eventually { released == nil })
    }
}
