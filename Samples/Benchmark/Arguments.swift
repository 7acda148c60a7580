/// What was asked for on the command line.
struct Arguments {
    /// What can be measured. A new one needs a case here, a line in ``summary``, and one in `Benchmark.main`.
    enum Subject: String, CaseIterable {
        case queue
        case transport
        case cache

        var summary: String {
            switch self {
            case .queue: "what a job costs, of NetworkQueue and OperationQueue side by side; about a minute"
            case .transport: "what requests and large bodies cost, beside URLSession and libcurl; some minutes"
            case .cache: "what stored answers cost, beside URLCache; some seconds"
            }
        }
    }

    struct Misuse: Error {
        let message: String
    }

    /// Nil when only help is wanted.
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
            throw Misuse(message: "Benchmark: what is to be measured?")
        }
    }

    static var usage: String {
        let subjects = Subject.allCases.map { "  \($0.rawValue.filled(11))\($0.summary)" }.joined(separator: "\n")
        return """
            usage: Benchmark SUBJECT [--strict]

            \(subjects)

              --strict   exit status 1 when a bar is missed
            """
    }
}
