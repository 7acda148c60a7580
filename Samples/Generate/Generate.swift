import EasyNetworkOpenAPI
import Foundation

/// Writes structs and requests in Swift, from an OpenAPI document, a JSON sample or recorded traffic.
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

    /// - Returns: The exit status.
    private static func generate(_ arguments: Arguments) -> Int32 {
        guard let data = FileManager.default.contents(atPath: arguments.file) else {
            return fail("\(arguments.file): cannot be read")
        }
        do throws(InputError) {
            if let document = try document(data) { return try write(document, data, arguments) }
            if arguments.isPublic { throw InputError(message: "--public is for an OpenAPI document", offset: 0) }
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

    /// Reads a document. Returns `nil` for JSON without an OpenAPI key, which is a sample or recorded traffic.
    private static func document(_ data: Data) throws(InputError) -> OpenAPIDocument? {
        do throws(InputError) {
            return try OpenAPIDocument(data)
        } catch {
            let json = try? JSON.parse(data)
            if let json, json["openapi"] == nil, json["swagger"] == nil { return nil }
            throw error
        }
    }

    private static func write(
        _ document: OpenAPIDocument,
        _ data: Data,
        _ arguments: Arguments
    ) throws(InputError) -> Int32 {
        if arguments.usesMappers || arguments.path != nil || arguments.method != nil {
            throw InputError(message: "--mapper, --path and --method are not for an OpenAPI document", offset: 0)
        }
        let file = URL(fileURLWithPath: arguments.file).deletingPathExtension().lastPathComponent
        // The names of the files contain the name, so its length is limited.
        let name = Name.type(arguments.name ?? file, limit: 100)
        let output = OpenAPIWriter(name: name, isPublic: arguments.isPublic).output(of: document)
        for (note, place) in zip(output.notes, InputError.places(of: output.notes, in: data)) {
            tell("\(arguments.file):\(place.line):\(place.column): \(note.message)")
        }
        tell("\(output.requestCount) of \(output.operationCount) operations, \(output.schemaCount) schemas")
        guard let folder = arguments.output else {
            print(output.files.map(\.text).joined(separator: "\n"), terminator: "")
            return 0
        }
        do {
            let changed = try SourceFolder(URL(fileURLWithPath: folder, isDirectory: true)).write(output.files)
            tell(changed.isEmpty ? "nothing changed" : "changed: \(changed.joined(separator: ", "))")
            return 0
        } catch {
            return fail("\(folder): cannot be written: \(error.localizedDescription)")
        }
    }

    /// Returns the Swift code for the contents of a file.
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
        tell(message)
        return status
    }

    private static func tell(_ message: String) {
        // This form throws an error that can be ignored, for example if the disk is full. The other form crashes the
        // process.
        try? FileHandle.standardError.write(contentsOf: Data("Generate: \(message)\n".utf8))
    }
}
