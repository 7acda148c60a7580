import Foundation
import SampleSupport

/// The arguments of the command line.
struct Arguments: Equatable {
    enum Command: Equatable {
        case help
        case generate(Arguments)
    }

    var file = ""
    /// The name of the struct, or of the type around a document's types. `nil` means the name of the file.
    var name: String?
    /// The request's path. `nil` means its name.
    var path: String?
    var method: String?
    var usesMappers = false
    /// Whether other modules can use the types of a document.
    var isPublic = false
    /// The file or folder to write. `nil` means standard output.
    var output: String?

    /// Whether the file contains recorded traffic.
    var isTraffic: Bool { file.lowercased().hasSuffix(".har") }

    /// - Parameter words: The arguments without the name of the program.
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

          --name name      name of the struct, or of the type around a document's types (default: the file's name)
          --public         make the types public; only for a document
          --path path      path of the request (default: its name)
          --method method  method of the request (default: GET)
          --mapper         write mappers, as in the older style, instead of Decodable structs
          --output place   file to write, or folder for a document (default: standard output)
          --help           print this text

        Exit status: 0 written, 1 bad file, 64 bad arguments.
        """
}
