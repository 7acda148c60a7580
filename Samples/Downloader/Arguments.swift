import Foundation
import SampleSupport

/// The arguments of the command line.
struct Arguments: Equatable {
    enum Command: Equatable {
        case help
        case download(Arguments)
    }

    /// Absolute http and https URLs, each once.
    var addresses: [String] = []
    /// The number of files that are downloaded at the same time.
    var jobCount = 4
    var directory = "."
    /// The number of connections for each file.
    var segmentCount = 1
    /// The limit for all files together, in bytes per second. `nil` means no limit.
    var byteLimit: Int?
    /// The digest in lower case.
    var sha256: String?

    /// - Parameters:
    ///   - words: The arguments without the name of the program.
    ///   - readList: Returns the contents of a list of URLs, for its file name or `-`.
    static func parse(
        _ words: [String],
        readList: (String) throws -> String
    ) throws(Misuse) -> Command {
        var reader = ArgumentReader(words)
        if reader.asksForHelp { return .help }
        var arguments = Arguments()
        while let word = reader.next() {
            switch word {
            case .other(let address): try arguments.add(address, of: address)
            case .option("-j"): arguments.jobCount = try reader.number(1...256)
            case .option("-o"): arguments.directory = try reader.value("a directory")
            case .option("--segments"): arguments.segmentCount = try reader.number(1...16)
            case .option("--limit"):
                arguments.byteLimit = try reader.value("bytes a second, such as 500K, 1.5M or 2G", ByteCount.parse)
            case .option("--sha256"): arguments.sha256 = try reader.value("64 hexadecimal digits", digest)
            case .option("-i"):
                try arguments.addList(try reader.value("a file of URLs, or - for standard input"), readList)
            case .option: throw reader.unknownOption
            }
        }
        guard !arguments.addresses.isEmpty else { throw Misuse("no URL is given") }
        guard arguments.sha256 == nil || arguments.addresses.count == 1 else {
            throw Misuse("--sha256 is for one URL, and \(arguments.addresses.count) are given")
        }
        return .download(arguments)
    }

    private static func fileName(of address: String) -> String? {
        guard let url = URL(string: address), url.query() == nil else { return nil }
        let name = url.lastPathComponent
        return name.isEmpty || name == "/" ? nil : name
    }

    private static func digest(_ text: String) -> String? {
        text.utf8.count == 64 && text.allSatisfy { $0.isASCII && $0.isHexDigit } ? text.lowercased() : nil
    }

    private mutating func addList(_ name: String, _ readList: (String) throws -> String) throws(Misuse) {
        let text: String
        do { text = try readList(name) } catch { throw Misuse("-i \(name): \(error.localizedDescription)") }
        for (index, line) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).enumerated() {
            let address = line.trimmingCharacters(in: .whitespaces)
            if address.isEmpty || address.hasPrefix("#") { continue }
            try add(address, of: "-i \(name), line \(index + 1): \(address)")
        }
    }

    /// - Parameter place: The beginning of the error message.
    private mutating func add(_ address: String, of place: String) throws(Misuse) {
        guard let url = URL(string: address), let scheme = url.scheme?.lowercased() else {
            throw Misuse("\(place): is not a URL")
        }
        guard ["http", "https"].contains(scheme) else {
            throw Misuse("\(place): is neither an http nor an https URL")
        }
        guard let host = url.host(), !host.isEmpty else { throw Misuse("\(place): names no server") }
        // Downloading a URL twice would write to the same file.
        guard !addresses.contains(address) else { return }
        // Without a query, the last part of the URL usually names the file.
        let name = Self.fileName(of: address)
        if let name, let other = addresses.first(where: { Self.fileName(of: $0) == name }) {
            throw Misuse(
                "\(place): would be saved as \(name), as would \(other); download them one by one, each with its own -o"
            )
        }
        addresses.append(address)
    }
}

extension Arguments {
    static let usage = """
        usage: Downloader [-j n] [-o dir] [--segments n] [--limit rate] [--sha256 hex] [-i file] URL…

          -j n             number of files at a time (default 4)
          -o dir           directory for the files, created if missing (default: the working directory)
          --segments n     number of connections for each file (default 1)
          --limit rate     bytes a second for all files together: 500K, 1.5M, 2G (powers of 1,024)
          --sha256 hex     expected digest of the file; only with one URL
          -i file          list of URLs, one per line; # begins a comment line; - is standard input
          --help           print this text

        Ctrl-C keeps the bytes received so far. Run the same command again to resume.
        Exit status: 0 all files are complete, 1 some failed, 2 bad arguments, 130 interrupted.
        """
}
