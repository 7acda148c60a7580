import Foundation

/// Writes structs and requests in Swift, from a sample of JSON or from recorded traffic.
@main
struct Generate {
    static func main() {
        do {
            switch try Arguments.parse(Array(CommandLine.arguments.dropFirst())) {
            case .help: print(Arguments.usage)
            case .generate(let arguments): exit(generate(arguments))
            }
        } catch {
            exit(fail("\(error.message)\n\n\(Arguments.usage)", status: 64))
        }
    }

    /// - Returns: the exit status.
    private static func generate(_ arguments: Arguments) -> Int32 {
        guard let data = FileManager.default.contents(atPath: arguments.file) else {
            return fail("\(arguments.file): cannot be read")
        }
        do throws(InputError) {
            let text = try text(for: arguments, data)
            if let output = arguments.output {
                let isWritten = (try? Data(text.utf8).write(to: URL(fileURLWithPath: output), options: .atomic)) != nil
                return isWritten ? 0 : fail("\(output): cannot be written")
            }
            print(text, terminator: "")
            return 0
        } catch {
            let place = error.place(in: data)
            return fail("\(arguments.file): line \(place.line), column \(place.column): \(error.message)")
        }
    }

    /// The text in Swift for the content of a file.
    static func text(for arguments: Arguments, _ data: Data) throws(InputError) -> String {
        let json = try JSON.parse(data)
        let writer = SwiftWriter(usesMappers: arguments.usesMappers)
        if arguments.isTraffic {
            let exchanges = try Exchange.read(json)
            guard let first = exchanges.first else {
                throw InputError(message: "there is no HTTP request in \"entries\"", offset: json.offset)
            }
            let hasBaseURL = exchanges.allSatisfy { $0.origin == first.origin }
            return writer.text(of: Endpoint.find(in: exchanges), baseURL: hasBaseURL ? first.origin : nil)
        }
        let shape = Shape(json)
        let file = URL(fileURLWithPath: arguments.file).deletingPathExtension().lastPathComponent
        let name = Name.type(arguments.name ?? (shape.keys == nil ? Name.singular(file) : file))
        let path = name.replacing(/([a-z0-9])([A-Z])/) { "\($0.1)-\($0.2)" }.lowercased()
        let method = arguments.method?.uppercased() ?? "GET"
        let endpoint = Endpoint(
            name: Name.type(method.lowercased()) + name,
            itemName: name,
            method: method,
            path: [.constant(arguments.path ?? path)],
            answer: .json(shape, type: "")
        )
        return writer.text(of: [endpoint])
    }

    private static func fail(_ message: String, status: Int32 = 1) -> Int32 {
        // Throws where the other form stops the process: standard error may be full.
        try? FileHandle.standardError.write(contentsOf: Data("Generate: \(message)\n".utf8))
        return status
    }
}
