import Foundation
import SampleSupport

/// The arguments of the command line.
struct Arguments: Equatable {
    enum Command: Equatable {
        case help
        case generate(Arguments)
    }

    var file = ""
    /// The name of the struct, or of the type that holds those of a document; nil for that of the file.
    var name: String?
    /// The request's path; nil for its name.
    var path: String?
    var method: String?
    var usesMappers = false
    /// Whether other modules can use what is written for a document.
    var isPublic = false
    /// Nil for standard output.
    var output: String?

    /// Whether the file holds recorded traffic.
    var isTraffic: Bool { file.lowercased().hasSuffix(".har") }

    /// - Parameter words: the arguments without the name of the program.
    static func parse(_ words: [String]) throws(Misuse) -> Command {
        var reader = ArgumentReader(words)
        if reader.asksForHelp { return .help }
        var arguments = Arguments()
        while let word = reader.next() {
            switch word {
            case .other(let file):
                guard arguments.file.isEmpty else { throw Misuse("\(file): is a second file") }
                arguments.file = file
            case .option("--name"): arguments.name = try reader.value("a name")
            case .option("--path"): arguments.path = try reader.value("a path")
            case .option("--method"): arguments.method = try reader.value("a method", method)
            case .option("--mapper"): arguments.usesMappers = try reader.flag()
            case .option("--public"): arguments.isPublic = try reader.flag()
            case .option("--output"): arguments.output = try reader.value("a file")
            case .option: throw reader.unknownOption
            }
        }
        guard !arguments.file.isEmpty else { throw Misuse("no file is given") }
        if arguments.isTraffic, arguments.name != nil || arguments.path != nil || arguments.method != nil {
            throw Misuse("--name, --path and --method are for a sample; recorded traffic has its own")
        }
        return .generate(arguments)
    }

    private static func method(_ text: String) -> String? {
        text.allSatisfy { $0.isASCII && ($0.isLetter || $0 == "-") } ? text : nil
    }

    static let usage = """
        usage: Generate openapi.json [--name name] [--public] [--output folder]
               Generate sample.json [--name name] [--path path] [--method method] [--mapper] [--output file]
               Generate traffic.har [--mapper] [--output file]

          --name name      the struct's name, or that of the type around all that a document has (default that of the file)
          --public         types that other modules can use
          --path path      the request's path (default its name)
          --method method  the request's method (default GET)
          --mapper         write mappers, as the older style has them, instead of Decodable
          --output place   a file, or the folder for a document (default standard output)
          --help           this

        Exit status: 0 written, 1 bad file, 64 bad arguments.
        """
}
