/// The arguments of the command line.
struct Arguments {
    /// The subjects. A new one needs a case here, a line in ``summary``, and one in `Benchmark.main`.
    enum Subject: String, CaseIterable {
        case queue
        case transport
        case cache
        case diagnostics
        case outbox
        case json
        case urgent
        case predictions
        case start
        case distance

        var summary: String {
            switch self {
            case .queue: "the costs of a job, of NetworkQueue and of OperationQueue; about a minute"
            case .transport: "the costs of requests and large bodies, also of URLSession and libcurl; several minutes"
            case .cache: "the costs of stored answers, also of URLCache; several seconds"
            case .diagnostics: "the costs of a log, a recording of traffic and a timeline; half a minute"
            case .outbox: "the costs of an outbox with many entries; a minute"
            case .json: "JSON that becomes structs and trees, also by Foundation; two minutes"
            case .urgent: "requests behind bulk downloads; four minutes"
            case .predictions: "runs that a timeline has predicted; a minute"
            case .start: "the first response of a program, and of curl; half a minute"
            case .distance: "round trips to a distant server; two minutes"
            }
        }
    }

    struct Misuse: Error {
        let message: String
    }

    /// Nil for help.
    private(set) var subject: Subject?
    /// Whether a missed bar makes the exit status 1.
    private(set) var isStrict = false

    init(_ words: [String]) throws(Misuse) {
        var wantsHelp = false
        for word in words {
            switch word {
            case "--strict": isStrict = true
            case "--help", "-h": wantsHelp = true
            default:
                guard let named = Subject(rawValue: word) else {
                    throw Misuse(message: "Benchmark: '\(word)' is neither a subject nor an option")
                }
                guard subject == nil else { throw Misuse(message: "Benchmark: one subject at a time") }
                subject = named
            }
        }
        if wantsHelp {
            subject = nil
        } else if subject == nil {
            throw Misuse(message: "Benchmark: name a subject")
        }
    }

    static var usage: String {
        let subjects = Subject.allCases.map { "  \($0.rawValue.filled(13))\($0.summary)" }.joined(separator: "\n")
        return """
            usage: Benchmark SUBJECT [--strict]

            \(subjects)

              --strict     exit status 1 when a bar is missed
            """
    }
}
