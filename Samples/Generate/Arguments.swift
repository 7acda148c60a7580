import Foundation

/// The arguments of the command line.
struct Arguments: Equatable {
    enum Command: Equatable {
        case help
        case generate(Arguments)
    }

    /// A mistake, as a line that names the argument.
    struct Misuse: Error, Equatable {
        let message: String
    }

    var file = ""
    /// The name of the struct; nil for that of the file.
    var name: String?
    /// The request's path; nil for its name.
    var path: String?
    var method: String?
    var usesMappers = false
    /// Nil for standard output.
    var output: String?

    /// Whether the file holds recorded traffic.
    var isTraffic: Bool { file.lowercased().hasSuffix(".har") }

    /// - Parameter words: the arguments without the name of the program.
    static func parse(_ words: [String]) throws(Misuse) -> Command {
        if words.contains(where: { ["--help", "-h"].contains($0) }) { return .help }
        var arguments = Arguments()
        var rest = words[...]
        while let word = rest.popFirst() {
            if !word.hasPrefix("-") {
                guard arguments.file.isEmpty else { throw Misuse(message: "\(word): is a second file") }
                arguments.file = word
            } else if word == "--mapper" {
                arguments.usesMappers = true
            } else {
                let option = word.prefix { $0 != "=" }
                guard let property = options[String(option)] else { throw Misuse(message: "\(word): is not an option") }
                let attached = option == word ? rest.popFirst() : String(word.dropFirst(option.count + 1))
                guard let value = attached, !value.isEmpty else { throw Misuse(message: "\(option) needs a value") }
                arguments[keyPath: property] = value
            }
        }
        guard !arguments.file.isEmpty else { throw Misuse(message: "no file is given") }
        if arguments.isTraffic, arguments.name != nil || arguments.path != nil || arguments.method != nil {
            throw Misuse(message: "--name, --path and --method are for a sample; recorded traffic has its own")
        }
        if let method = arguments.method, !method.allSatisfy({ $0.isASCII && ($0.isLetter || $0 == "-") }) {
            throw Misuse(message: "--method \(method): is not a method")
        }
        return .generate(arguments)
    }

    private static var options: [String: WritableKeyPath<Arguments, String?>] {
        ["--name": \.name, "--path": \.path, "--method": \.method, "--output": \.output]
    }

    static let usage = """
        usage: Generate sample.json [--name name] [--path path] [--method method] [--mapper] [--output file]
               Generate traffic.har [--mapper] [--output file]

          --name name      the struct's name (default that of the file)
          --path path      the request's path (default its name)
          --method method  the request's method (default GET)
          --mapper         write mappers, as the older style has them, instead of Decodable
          --output file    default standard output
          --help           this

        Exit status: 0 written, 1 bad file, 64 bad arguments.
        """
}
