import EasyNetwork
import EasyNetworkTesting
import Foundation
import SampleSupport

/// Runs a team's APIs by name: one, several in a plan, or messages from an outbox.
@main
enum Harness {
    static func main() async {
        let words = Array(CommandLine.arguments.dropFirst())
        exit(await run(words, output: console(STDOUT_FILENO), errors: console(STDERR_FILENO), onStart: Interrupt.init))
    }

    /// - Parameter onStart: Receives the closure that cancels all jobs. Its result is kept while they run.
    /// - Returns: The exit status.
    static func run(
        _ words: [String],
        registry: Registry = .bench,
        output: Console,
        errors: Console,
        onStart: @Sendable (@escaping @Sendable () -> Void) async -> Interrupt? = { _ in nil }
    ) async -> Int32 {
        do {
            let arguments = try Arguments.parse(words)
            let plan: Plan
            switch arguments.command {
            case .help:
                output.write(Arguments.usage)
                return 0
            case .list:
                output.write(registry.list)
                return 0
            case .run(let api, let values):
                // Report an error in the arguments here, without a position in a plan.
                _ = try registry.named(api).operation(values, EasyNetworkService(HostConfiguration(baseURL: nil)))
                plan = Plan(api: api, values: values)
            case .plan(let file):
                guard let json = FileManager.default.contents(atPath: file) else {
                    throw Misuse("\(file): cannot be read")
                }
                plan = try Plan(json: json)
            case .outbox(let command):
                return try await command.run(arguments, registry, output: output, errors: errors, onStart: onStart)
            }
            return try await run(plan, arguments, registry, output, errors, onStart)
        } catch {
            errors.write("Harness: \((error as? Misuse)?.message ?? error.localizedDescription)\n")
            return 2
        }
    }

    private static func run(
        _ plan: Plan,
        _ arguments: Arguments,
        _ registry: Registry,
        _ output: Console,
        _ errors: Console,
        _ onStart: (@escaping @Sendable () -> Void) async -> Interrupt?
    ) async throws -> Int32 {
        let server = arguments.base == nil ? try DemoServer.start(conditions: arguments.conditions) : nil
        defer { server?.stop() }
        let host = HostConfiguration(baseURL: arguments.base ?? server?.baseURL, change: registry.configure)
        let runner = try Runner(plan, arguments, registry, EasyNetworkService(host))
        let recordings = try Recordings(arguments, runner.queue, log: errors)
        let interrupt = await onStart { [queue = runner.queue] in queue.cancelAllOperations() }
        defer { interrupt?.cancel() }

        var console = arguments.isJSON ? errors : output
        // Log lines would break a line that is being redrawn.
        if arguments.isLogged { console.isTerminal = false }
        let report = await runner.run(console)
        if arguments.isJSON { output.write(try report.json()) }
        try await recordings.finish()
        return report.exitStatus
    }

    private static func console(_ descriptor: Int32) -> Console {
        let file = FileHandle(fileDescriptor: descriptor)
        return Console(isTerminal: isatty(descriptor) == 1) { text in
            // An error means that the reader has closed the pipe.
            try? file.write(contentsOf: Data(text.utf8))
        }
    }
}
