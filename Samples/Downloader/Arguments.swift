import Foundation

/// The arguments of the command line.
struct Arguments: Equatable {
    enum Command: Equatable {
        case help
        case download(Arguments)
    }

    /// A mistake, as a line that names the argument.
    struct Misuse: Error, Equatable {
        let message: String
    }

    /// Absolute http and https URLs, each once.
    var addresses: [String] = []
    /// The number of jobs at once.
    var jobCount = 4
    var directory = "."
    /// The number of connections for each file.
    var segmentCount = 1
    /// The bytes a second for all files together; nil for no limit.
    var byteLimit: Int?
    /// In lower case.
    var sha256: String?

    /// - Parameters:
    ///   - words: the arguments without the name of the program.
    ///   - readList: returns the text of a list of URLs for the name of its file or `-`.
    static func parse(
        _ words: [String],
        readList: (String) throws -> String
    ) throws(Misuse) -> Command {
        if words.prefix(while: { $0 != "--" }).contains(where: { ["--help", "-h"].contains($0) }) { return .help }
        var arguments = Arguments()
        var rest = words[...]
        while let word = rest.popFirst() {
            if word == "--" {
                for address in rest { try arguments.add(address, of: address) }
                break
            }
            guard word.hasPrefix("-") else {
                try arguments.add(word, of: word)
                continue
            }
            let (option, attached) = try Option.split(word)
            guard let value = attached ?? rest.popFirst() else {
                throw Misuse(message: "\(option.rawValue) needs \(option.need)")
            }
            try arguments.set(option, value, readList)
        }
        guard !arguments.addresses.isEmpty else { throw Misuse(message: "no URL is given") }
        guard arguments.sha256 == nil || arguments.addresses.count == 1 else {
            throw Misuse(message: "--sha256 is for one URL, and \(arguments.addresses.count) are given")
        }
        return .download(arguments)
    }

    private static func fileName(of address: String) -> String? {
        guard let url = URL(string: address), url.query() == nil else { return nil }
        let name = url.lastPathComponent
        return name.isEmpty || name == "/" ? nil : name
    }

    private mutating func set(
        _ option: Option,
        _ value: String,
        _ readList: (String) throws -> String
    ) throws(Misuse) {
        let misuse = Misuse(message: "\(option.rawValue) \(value): needs \(option.need)")
        switch option {
        case .jobs:
            guard let number = Int(value), (1...256).contains(number) else { throw misuse }
            jobCount = number
        case .segments:
            guard let number = Int(value), (1...16).contains(number) else { throw misuse }
            segmentCount = number
        case .directory:
            guard !value.isEmpty else { throw misuse }
            directory = value
        case .limit:
            guard let number = ByteCount.parse(value) else { throw misuse }
            byteLimit = number
        case .sha256:
            guard value.utf8.count == 64, value.allSatisfy({ $0.isASCII && $0.isHexDigit }) else { throw misuse }
            sha256 = value.lowercased()
        case .list:
            let text: String
            do { text = try readList(value) } catch {
                throw Misuse(message: "-i \(value): \(error.localizedDescription)")
            }
            for (index, line) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).enumerated()
            {
                let address = line.trimmingCharacters(in: .whitespaces)
                if address.isEmpty || address.hasPrefix("#") { continue }
                try add(address, of: "-i \(value), line \(index + 1): \(address)")
            }
        }
    }

    /// - Parameter place: the beginning of the message of a mistake.
    private mutating func add(_ address: String, of place: String) throws(Misuse) {
        guard let url = URL(string: address), let scheme = url.scheme?.lowercased() else {
            throw Misuse(message: "\(place): is not a URL")
        }
        guard ["http", "https"].contains(scheme) else {
            throw Misuse(message: "\(place): is neither an http nor an https URL")
        }
        guard let host = url.host(), !host.isEmpty else { throw Misuse(message: "\(place): names no server") }
        // The same URL twice would write to the same file.
        guard !addresses.contains(address) else { return }
        // Without a query the last part of the URL names the file, as a rule.
        let name = Self.fileName(of: address)
        if let name, let other = addresses.first(where: { Self.fileName(of: $0) == name }) {
            throw Misuse(
                message: "\(place): would be saved as \(name), as would \(other); load them one by one with -o"
            )
        }
        addresses.append(address)
    }
}

extension Arguments {
    enum Option: String, CaseIterable {
        case jobs = "-j"
        case directory = "-o"
        case segments = "--segments"
        case limit = "--limit"
        case sha256 = "--sha256"
        case list = "-i"

        var need: String {
            switch self {
            case .jobs: "a number from 1 to 256"
            case .directory: "a directory"
            case .segments: "a number from 1 to 16"
            case .limit: "bytes a second, as 500K, 1.5M or 2G"
            case .sha256: "64 hexadecimal digits"
            case .list: "a file of URLs, or - for standard input"
            }
        }

        /// Splits `-j4` and `--limit=1M` into option and value.
        static func split(_ word: String) throws(Misuse) -> (Option, String?) {
            if let option = Option(rawValue: word) { return (option, nil) }
            let isLong = word.hasPrefix("--")
            let name = isLong ? String(word.prefix { $0 != "=" }) : String(word.prefix(2))
            guard let option = Option(rawValue: name), name != word else {
                throw Misuse(message: "\(word): is not an option")
            }
            return (option, String(word.dropFirst(isLong ? name.count + 1 : name.count)))
        }
    }

    static let usage = """
        usage: Downloader [-j n] [-o dir] [--segments n] [--limit rate] [--sha256 hex] [-i file] URL…

          -j n             how many files at once (default 4)
          -o dir           where they go (default the working directory; made if it is missing)
          --segments n     how many connections for each file (default 1)
          --limit rate     bytes a second for all together: 500K, 1.5M, 2G (powers of 1,024)
          --sha256 hex     what the file must be; for one URL
          -i file          a list of URLs, one a line, with # before comments; - is standard input
          --help           this

        Ctrl-C keeps what has come; the same command goes on with it.
        Exit status: 0 all are there, 1 some failed, 2 bad arguments, 130 interrupted.
        """
}
