import EasyNetwork
import EasyNetworkDiagnostics
import EasyNetworkTesting
import Foundation

/// The predictions of timelines: jobs run over a local server and are recorded. The timeline predicts what a change
/// would do, and the jobs run again with that change.
struct WhatIfBenchmark {
    /// The number of runs. Each has its own jobs, made from the number of the run.
    static let count = 20
    /// The most by which the median prediction may miss the end of the real run.
    static let limit = 0.1

    /// What a run changes.
    private enum Change: CaseIterable {
        case moreAtOnce, fewerAtOnce, fasterServer, slowerServer, noDependency, noRetryDelay
    }

    /// Jobs for one run, and the rules to run them by.
    private struct Plan: Sendable {
        struct Job: Sendable {
            let name: String
            let seconds: TimeInterval
            let dependencies: [Int]
            /// Whether the server refuses the first attempt.
            let fails: Bool
        }

        var jobs: [Job] = []
        var limit: Int
        var factors: [String: Double] = [:]
        var removed: (name: String, other: String)?
        var retryDelay = 0.15

        /// The launch of an app, for the picture in the documentation.
        static let launch: Plan = {
            var plan = Plan(0)
            plan.limit = 2
            let pictures = (1...4).map { ("Picture \($0)", 0.09, [4], false) }
            let jobs: [(String, TimeInterval, [Int], Bool)] = [
                ("Sign in", 0.12, [], false), ("Settings", 0.18, [0], false), ("Profile", 0.14, [0], false),
                ("Avatar", 0.1, [1, 2], false), ("Feed", 0.16, [0], true), ("First screen", 0.08, [3, 4], false),
            ]
            plan.jobs = (jobs + pictures).map { Job(name: $0, seconds: $1, dependencies: $2, fails: $3) }
            return plan
        }()

        init(_ number: Int) {
            // A linear congruential generator (Knuth, MMIX), so that each run can be repeated.
            var state = UInt64(number) &* 7_919 &+ 1
            func next(_ bound: Int) -> Int {
                state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                return Int(state >> 33) % bound
            }
            limit = 2 + next(4)
            for index in 0..<(12 + next(20)) {
                let name = ["Profile", "Settings", "Avatar", "Feed", "Detail"][next(5)]
                let dependencies = (0..<index).filter { _ in next(8) == 0 }
                let seconds = 0.01 * Double(2 + next(18))
                jobs.append(Job(name: name, seconds: seconds, dependencies: dependencies, fails: next(6) == 0))
            }
        }
    }

    private struct Get: APIRequest {
        typealias Item = NetworkResponse
        let api: String
        let retryPolicy: RetryPolicy
        var options: RequestOptions { RequestOptions(retry: retryPolicy) }
    }

    let report: Report

    /// - Throws: an error of the server, or of a file.
    func run() async throws {
        if let folder = ProcessInfo.processInfo.environment["WHAT_IF_OUT"] {
            return try await Self.writePage(into: folder)
        }
        report.line("\(Self.count) recorded runs, each predicted and then run under another rule")
        report.line("")
        let titles = ["recorded ms".aligned(13), "predicted".aligned(11), "real".aligned(8), "error".aligned(8)]
        report.line("change".filled(16) + titles.joined())
        var errors: [Double] = []
        for number in 0..<Self.count {
            let change = Change.allCases[number % Change.allCases.count]
            let plan = Plan(number)
            let timeline = Timeline()
            let recorded = try await Self.run(plan, timeline)
            let changed = Self.changed(plan, change)
            let prediction = await timeline.whatIf { changes in
                changes.maximumConcurrentOperationCount = changed.limit
                for (name, factor) in changed.factors { changes.multiplyDuration(of: name, by: factor) }
                if let (name, other) = changed.removed { changes.removeDependency(of: name, on: other) }
                if changed.retryDelay == 0 { for job in changed.jobs { changes.removeRetryDelays(of: job.name) } }
            }
            let real = try await Self.run(changed, nil)
            let predicted = prediction.end ?? .infinity
            let error = abs(predicted - real) / real
            errors.append(error)
            let figures = [(recorded, 13), (predicted, 11), (real, 8)].map {
                String(format: "%.0f", $0 * 1_000).aligned($1)
            }
            let line = "\(change)".filled(16) + figures.joined() + String(format: "%.1f %%", error * 100).aligned(8)
            report.line(line)
        }
        let median = Measurement.percentile(0.5, of: errors.sorted())
        report.line("")
        report.line("largest error: " + String(format: "%.1f %%", (errors.max() ?? 0) * 100))
        report.bar("the median error of a prediction", median, atMost: Self.limit)
    }

    /// Writes the page of a predicted launch of an app.
    private static func writePage(into folder: String) async throws {
        let timeline = Timeline()
        _ = try await run(.launch, timeline)
        let prediction = await timeline.whatIf {
            $0.maximumConcurrentOperationCount = 4
            $0.removeDependency(of: "Avatar", on: "Settings")
        }
        let page = prediction.html(title: "Launch of the app")
        try Data(page.utf8).write(to: URL(fileURLWithPath: folder).appendingPathComponent("what-if.html"))
    }

    private static func changed(_ plan: Plan, _ change: Change) -> Plan {
        var plan = plan
        switch change {
        case .moreAtOnce: plan.limit += 2
        case .fewerAtOnce: plan.limit -= 1
        case .fasterServer: plan.factors = ["Profile": 0.5, "Feed": 0.25]
        case .slowerServer: plan.factors = ["Settings": 2]
        case .noDependency:
            let edge = plan.jobs.reversed().lazy.compactMap { job in
                job.dependencies.last.map { (job.name, plan.jobs[$0].name) }
            }.first
            plan.removed = edge.map { ($0.0, $0.1) }
        case .noRetryDelay: plan.retryDelay = 0
        }
        return plan
    }

    /// Runs the jobs and returns the seconds that they took.
    private static func run(_ plan: Plan, _ timeline: Timeline?) async throws -> TimeInterval {
        let server = try MockServer()
        let seen = Seen()
        server.route("GET", "/*") { request in
            guard let index = Int(request.path.dropFirst()), plan.jobs.indices.contains(index) else {
                return .status(404)
            }
            let job = plan.jobs[index]
            var response = job.fails && seen.insert(index) ? MockResponse.status(503) : .text("ok")
            response.delay = job.seconds * (plan.factors[job.name] ?? 1)
            return response
        }
        let host = HostConfiguration(baseURL: server.baseURL)
        let service = EasyNetworkService(host)
        let queue = NetworkQueue(maxConcurrentOperationCount: plan.limit)
        timeline?.record(queue)
        let policy = RetryPolicy(maximumRetryCount: 2, baseDelay: plan.retryDelay, maximumDelay: plan.retryDelay)
        let operations = plan.jobs.indices.map { index in
            let operation = RequestOperation(Get(api: "\(index)", retryPolicy: policy), service: service)
            operation.name = plan.jobs[index].name
            return operation
        }
        for (index, job) in plan.jobs.enumerated() {
            for other in job.dependencies where plan.removed.map({ $0 != (job.name, plan.jobs[other].name) }) ?? true {
                operations[index].addDependency(operations[other])
            }
        }
        let start = DispatchTime.now().uptimeNanoseconds
        queue.addOperations(operations)
        await queue.waitUntilIdle()
        return Double(DispatchTime.now().uptimeNanoseconds - start) / 1e9
    }

    /// The numbers of requests that have been received.
    private final class Seen: @unchecked Sendable {
        // Sendable because the lock guards `numbers`.
        private let lock = NSLock()
        private var numbers: Set<Int> = []

        /// Returns whether the number is new.
        func insert(_ number: Int) -> Bool { lock.withLock { numbers.insert(number).inserted } }
    }
}
