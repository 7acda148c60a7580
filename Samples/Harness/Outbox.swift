import EasyNetwork
import EasyNetworkOutbox
import Foundation
import SampleSupport

/// A request that an outbox keeps on disk until the server has accepted it.
struct SendMessage: APIRequest, Codable {
    typealias Item = Void
    let number: Int
    let text: String
    var api: String { "messages" }
    var method: NetworkService.Method { .post }
    var query: NetworkService.QueryType { .json }
    var params: [String: Any]? { ["number": number, "text": text] }
    /// The outbox retries, so the request itself doesn't.
    var options: RequestOptions { RequestOptions(retry: .never) }
}

/// A command for the directory of an `Outbox`. Each command runs in its own process, like the launches of an app.
struct OutboxCommand: Equatable {
    enum Action: String, CaseIterable {
        case add, entries, dead, retry, remove, drain
    }

    let action: Action
    let directory: String
    let values: [String: String]

    /// - Returns: The exit status.
    func run(
        _ arguments: Arguments,
        _ registry: Registry,
        output: Console,
        errors: Console,
        onStart: (@escaping @Sendable () -> Void) async -> Interrupt?
    ) async throws -> Int32 {
        guard !arguments.isJSON, arguments.repeatCount == 1 else {
            throw Misuse("outbox has neither --json nor --repeat")
        }
        guard action == .add || FileManager.default.fileExists(atPath: directory) else {
            throw Misuse("\(directory): does not exist; outbox add creates it")
        }
        let given = Values(values)
        switch action {
        case .add:
            let (count, laneCount) = (try given.int("count", default: 1), max(1, try given.int("lanes", default: 1)))
            let refusedCount = try given.int("refused", default: 0)
            let options = try options(given)
            try given.checkNames(of: "outbox add")
            let outbox = try open()
            for number in 1...max(1, count) {
                let message = SendMessage(number: number, text: number > count - refusedCount ? "" : "Hello")
                // An entry with a period cannot have a lane.
                let lane = options.period == nil ? "lane \((number - 1) % laneCount + 1)" : nil
                let id = try outbox.add(message, lane: lane, options: options)
                output.write("added  \(id)\n")
            }
        case .entries, .dead:
            try given.checkNames(of: "outbox \(action)")
            let outbox = try open()
            for entry in try action == .dead ? outbox.deadLetters : outbox.entries {
                output.write(line(entry, in: outbox))
            }
        case .retry, .remove:
            let text = try given.string("id")
            try given.checkNames(of: "outbox \(action)")
            guard let id = UUID(uuidString: text) else { throw Misuse("id=\(text): needs the id of an entry") }
            let outbox = try open()
            if action == .retry { try outbox.retry(id) } else { try outbox.remove(id) }
        case .drain:
            let deadline = try given.double("seconds", default: 60)
            try given.checkNames(of: "outbox drain")
            return try await drain(deadline, arguments, registry, output, errors, onStart)
        }
        return 0
    }

    /// Reads the options of an entry. `only=NAME` allows one entry with that name at a time; `as` says whether to keep,
    /// replace or append.
    private func options(_ given: Values) throws -> OutboxOptions {
        let (only, rule) = (try given.string("only", default: ""), try given.string("as", default: "keep"))
        let (delay, period) = (try given.double("delay", default: 0), try given.double("every", default: 0))
        let tag = try given.string("tag", default: "")
        let rules: [String: OutboxOptions.Unique] = [
            "keep": .keep(only), "replace": .replace(only), "append": .append(only),
        ]
        guard let unique = rules[rule] else { throw Misuse("as=\(rule): must be keep, replace or append") }
        return OutboxOptions(
            unique: only.isEmpty ? nil : unique,
            notBefore: delay > 0 ? Date() + delay : nil,
            period: period > 0 ? period : nil,
            tags: tag.isEmpty ? [] : [tag]
        )
    }

    private func open(
        _ queue: NetworkQueue = .shared,
        _ host: HostConfiguration = HostConfiguration(baseURL: nil)
    ) throws -> Outbox {
        let outbox = try Outbox(
            directory: URL(fileURLWithPath: directory),
            queue: queue,
            service: EasyNetworkService(host)
        )
        outbox.register(SendMessage.self, name: "message")
        return outbox
    }

    /// Delivers the entries, and prints the events of the outbox.
    private func drain(
        _ deadline: TimeInterval,
        _ arguments: Arguments,
        _ registry: Registry,
        _ output: Console,
        _ errors: Console,
        _ onStart: (@escaping @Sendable () -> Void) async -> Interrupt?
    ) async throws -> Int32 {
        let server = arguments.base == nil ? try DemoServer.start(conditions: arguments.conditions) : nil
        defer { server?.stop() }
        let host = HostConfiguration(baseURL: arguments.base ?? server?.baseURL, change: registry.configure)
        let queue = NetworkQueue(name: "Harness")
        if let limit = arguments.jobCount { queue.maxConcurrentOperationCount = limit }
        let recordings = try Recordings(arguments, queue, log: errors)

        let drain = Task {
            let outbox = try open(queue, host)
            let events = outbox.events
            let printing = Task {
                for await event in events { output.write(line(event)) }
            }
            let left = try await outbox.drain(deadline: deadline).map { line($0, in: outbox) }
            return (printing, left, try outbox.deadLetters.map { line($0, in: outbox) })
        }
        let interrupt = await onStart { drain.cancel() }
        defer { interrupt?.cancel() }
        let (printing, left, dead) = try await drain.value
        // The events end when the outbox is released.
        await printing.value
        output.write(left.joined() + dead.joined() + "\(left.count) entries are left, \(dead.count) dead letters\n")
        await queue.shutDown(deadline: .infinity)
        try await recordings.finish()
        return left.isEmpty && dead.isEmpty ? 0 : 1
    }

    private func line(_ event: OutboxEvent) -> String {
        switch event {
        case .added(let id): "added  \(id)\n"
        case .sending(let id): "sending  \(id)\n"
        case .delivered(let id): "delivered  \(id)\n"
        case .failed(let id, let error, let retryDelay):
            "failed  \(id)  \(error.localizedDescription)" + String(format: "  retry in %.1f s\n", retryDelay)
        case .died(let id, let error): "died  \(id)  \(error.localizedDescription)\n"
        case .removed(let id): "removed  \(id)\n"
        case .retried(let id): "retried  \(id)\n"
        }
    }

    private func line(_ entry: OutboxEntry, in outbox: Outbox) -> String {
        let message = (try? outbox.request(of: entry)) as? SendMessage
        let content = message.map { "message \($0.number)" } ?? entry.type
        let tags = entry.options.tags.sorted().map { "  #" + $0 }.joined()
        let next = entry.nextTry.map { String(format: "  in %.0f s", max(0, $0.timeIntervalSinceNow)) } ?? ""
        let error = entry.error.map { "  try \(entry.attemptCount): \($0.localizedDescription)" } ?? ""
        return "\(entry.id)  \(entry.lane ?? "-")  \(content)\(tags)\(next)\(error)\n"
    }
}
