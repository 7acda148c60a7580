import EasyNetworkTesting
import Foundation
import SampleSupport

/// The arguments of the command line.
struct Arguments: Equatable {
    enum Command: Equatable {
        case help
        case list
        case run(api: String, values: [String: String])
        case plan(file: String)
        case outbox(OutboxCommand)
    }

    var command = Command.help
    /// The base URL of the APIs. `nil` means the demo server.
    var base: URL?
    /// The network in front of the demo server.
    var conditions = NetworkConditions()
    var harFile: String?
    var timelineFile: String?
    var traceFile: String?
    var isLogged = false
    var isJSON = false
    /// How many copies of the job or the plan run, all at once.
    var repeatCount = 1
    /// The number of jobs at a time. `nil` means the plan's limit.
    var jobCount: Int?

    /// - Parameter words: The arguments without the name of the program.
    static func parse(_ words: [String]) throws(Misuse) -> Arguments {
        var reader = ArgumentReader(words)
        var arguments = Arguments()
        if reader.asksForHelp { return arguments }
        var others: [String] = []
        while let word = reader.next() {
            switch word {
            case .other(let word): others.append(word)
            case .option("--base"): arguments.base = try reader.value("an http or https URL", url)
            case .option("--conditions"): arguments.conditions = try reader.value("3g, dsl or train", conditions)
            case .option("--har"): arguments.harFile = try reader.value("a file")
            case .option("--timeline"): arguments.timelineFile = try reader.value("a file")
            case .option("--trace"): arguments.traceFile = try reader.value("a file")
            case .option("--repeat"): arguments.repeatCount = try reader.number(1 ... .max)
            case .option("-j"): arguments.jobCount = try reader.number(1 ... .max)
            case .option("--log"): arguments.isLogged = try reader.flag()
            case .option("--json"): arguments.isJSON = try reader.flag()
            case .option: throw reader.unknownOption
            }
        }
        arguments.command = try command(others)
        if arguments.base != nil, arguments.conditions != NetworkConditions() {
            throw Misuse("--conditions applies only to the demo server, so it cannot be combined with --base")
        }
        return arguments
    }

    private static func conditions(_ name: String) -> NetworkConditions? {
        switch name.lowercased() {
        case "3g": .mobile3G
        case "dsl": .dsl
        case "train": .flakyTrain
        default: nil
        }
    }

    private static func url(_ text: String) -> URL? {
        guard let url = URL(string: text), let scheme = url.scheme?.lowercased(), ["http", "https"].contains(scheme),
            url.host()?.isEmpty == false
        else { return nil }
        return url
    }

    private static func command(_ words: [String]) throws(Misuse) -> Command {
        switch (words.first, words.count) {
        case ("list", 1): return .list
        case ("plan", 2): return .plan(file: words[1])
        case ("run", 2...): return .run(api: words[1], values: try values(words.dropFirst(2)))
        case ("outbox", 3...):
            guard let action = OutboxCommand.Action(rawValue: words[1]) else {
                throw Misuse("outbox \(words[1]): is not an action; the actions are \(actions)")
            }
            let values = try values(words.dropFirst(3))
            return .outbox(OutboxCommand(action: action, directory: words[2], values: values))
        case ("list", _): throw Misuse("list has no arguments")
        case ("plan", _): throw Misuse("plan needs one file")
        case ("run", _): throw Misuse("run needs the name of an API")
        case ("outbox", _): throw Misuse("outbox needs an action and a directory; the actions are \(actions)")
        case (let word?, _): throw Misuse("\(word): is not a command; the commands are list, run, plan and outbox")
        case (nil, _): throw Misuse("no command is given: list, run, plan or outbox; see --help")
        }
    }

    private static var actions: String { OutboxCommand.Action.allCases.map(\.rawValue).joined(separator: ", ") }

    private static func values(_ words: ArraySlice<String>) throws(Misuse) -> [String: String] {
        var values: [String: String] = [:]
        for word in words {
            let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            guard parts.count == 2, !parts[0].isEmpty else { throw Misuse("\(word): must have the form key=value") }
            guard values.updateValue(parts[1], forKey: parts[0]) == nil else {
                throw Misuse("\(word): \(parts[0]) is given twice")
            }
        }
        return values
    }

    static let usage = """
        usage: Harness list
               Harness run NAME [key=value…]
               Harness plan FILE.json
               Harness outbox add DIRECTORY [count=n] [lanes=n] [refused=n] [delay=s] [tag=word]
                                            [only=name [as=keep|replace|append]] [every=s]
               Harness outbox entries|dead DIRECTORY
               Harness outbox retry|remove DIRECTORY id=ID
               Harness outbox drain DIRECTORY [seconds=n]

          list             lists the APIs and their arguments
          run              runs one API as a job
          plan             runs jobs with dependencies, batches and limits; see the README
          outbox           adds, lists or delivers requests on disk, each command in its own process

          --base URL       base URL of the APIs (default: a local demo server)
          --conditions X   the network in front of the demo server: 3g, dsl, or train, which also loses connections
          --har FILE       records the traffic as HAR 1.2, without secrets
          --timeline FILE  draws the jobs over time as an HTML page
          --trace FILE     writes the spans of jobs and messages for Perfetto, or, if its name ends in .jsonl, as
                           lines of OTLP/JSON, which Jaeger reads
          --log            logs the events on standard error
          --json           writes the results as JSON to standard output, and everything else to standard error
          --repeat n       runs the job or the plan n times at once
          -j n             number of jobs at a time (default: the plan's limit, or 6)
          --help           prints this text

        Ctrl-C cancels all jobs. The recordings up to then are written.
        Exit status: 0 all jobs succeeded; 1 some did not, or entries or dead letters are left; 2 bad arguments, a bad
        plan, or a file that cannot be written. If the plan is bad, no job runs.

        """
}
