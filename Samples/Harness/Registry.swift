import EasyNetwork
import Foundation
import SampleSupport

/// The APIs that you can run by name, and the settings of their host.
struct Registry: Sendable {
    /// The APIs in the order of the list.
    let apis: [API]
    /// Changes the settings of the host: headers, credentials, retries.
    var configure: @Sendable (inout HostSettings) -> Void = { _ in }

    func named(_ name: String) throws(Misuse) -> API {
        if let api = apis.first(where: { $0.name == name }) { return api }
        throw Misuse("there is no API \"\(name)\"; there are \(apis.map(\.name).joined(separator: ", "))")
    }

    /// One line for each API, with its arguments.
    var list: String {
        let rows = apis.map { (([$0.name] + $0.parameters.map(\.text)).joined(separator: " "), $0.summary) }
        let width = rows.map(\.0.count).max() ?? 0
        return rows.map { $0.padding(toLength: width + 2, withPad: " ", startingAt: 0) + $1 + "\n" }.joined()
    }
}

/// A named API that creates a job from arguments.
struct API: Sendable {
    let name: String
    let summary: String
    fileprivate let make: @Sendable (Values, EasyNetworkService) throws -> NetworkOperation

    /// Creates the job with these arguments.
    ///
    /// - Throws: A ``Misuse`` that names the argument that is missing, unknown or of the wrong type.
    func operation(_ given: [String: String], _ service: EasyNetworkService) throws -> NetworkOperation {
        let values = Values(given)
        let operation: NetworkOperation
        do { operation = try make(values, service) } catch {
            throw Misuse("\(name): \((error as? Misuse)?.message ?? error.localizedDescription)")
        }
        try values.checkNames(of: name)
        return operation
    }

    /// The arguments that the API reads. To find them, this property creates a job that never runs.
    var parameters: [Values.Parameter] {
        let values = Values(nil)
        _ = try? make(values, EasyNetworkService(HostConfiguration(baseURL: nil)))
        return values.parameters
    }
}

/// Registers an API.
///
/// ```swift
/// api("user", "one user by id") { GetUser(id: try $0.int("id")) }
/// ```
func api<Request: APIRequest>(
    _ name: String,
    _ summary: String,
    _ request: @escaping @Sendable (Values) throws -> Request
) -> API {
    API(name: name, summary: summary) { RequestOperation(try request($0), service: $1) }
}

/// Registers a download. The argument `to` is the destination, a file or a directory; `rate` is the limit in bytes per
/// second, or 0 for no limit.
func download<Request: BaseAPIRequest>(
    _ name: String,
    _ summary: String,
    _ request: @escaping @Sendable (Values) throws -> Request
) -> API {
    API(name: name, summary: summary) { values, service in
        let destination = URL(fileURLWithPath: try values.string("to"))
        let operation = DownloadOperation(try request(values), to: destination, service: service)
        let rate = try values.int("rate", default: 0)
        if rate > 0 { operation.bandwidthLimit = rate }
        return operation
    }
}

/// Registers a job of another kind.
func job(
    _ name: String,
    _ summary: String,
    _ make: @escaping @Sendable (Values, EasyNetworkService) throws -> NetworkOperation
) -> API {
    API(name: name, summary: summary, make: make)
}

/// The arguments of one job. An argument without a default value is required.
final class Values {
    /// An argument that was read, such as `("page", "[page=<whole number>]")`.
    typealias Parameter = (name: String, text: String)

    /// The values by name. If it is `nil`, every argument has a sample value, because only the names matter.
    private let given: [String: String]?
    /// The arguments in the order in which they were read.
    private(set) var parameters: [Parameter] = []

    init(_ given: [String: String]?) {
        self.given = given
    }

    func int(_ name: String, default fallback: Int? = nil) throws -> Int {
        try read(name, "whole number", fallback, sample: 1) { Int($0) }
    }

    func double(_ name: String, default fallback: Double? = nil) throws -> Double {
        try read(name, "number", fallback, sample: 1) { text in Double(text).flatMap { $0.isFinite ? $0 : nil } }
    }

    func bool(_ name: String, default fallback: Bool? = nil) throws -> Bool {
        try read(name, "true or false", fallback, sample: true) { Bool($0) }
    }

    func string(_ name: String, default fallback: String? = nil) throws -> String {
        try read(name, "text", fallback, sample: "text") { $0 }
    }

    /// Checks that all given arguments have been read.
    ///
    /// - Throws: A ``Misuse`` that names an argument that was not read.
    func checkNames(of reader: String) throws(Misuse) {
        let known = parameters.map(\.name)
        guard let unknown = given?.keys.sorted().first(where: { !known.contains($0) }) else { return }
        let all = known.isEmpty ? "it takes no arguments" : "it takes \(known.joined(separator: ", "))"
        throw Misuse("\(reader): has no argument \(unknown); \(all)")
    }

    private func read<Value>(
        _ name: String,
        _ kind: String,
        _ fallback: Value?,
        sample: Value,
        _ parse: (String) -> Value?
    ) throws -> Value {
        let form = "\(name)=<\(kind)>"
        parameters.append((name, fallback == nil ? form : "[\(form)]"))
        guard let given else { return fallback ?? sample }
        if let text = given[name] {
            guard let value = parse(text) else { throw Misuse("\(name)=\(text): needs <\(kind)>") }
            return value
        }
        guard let fallback else { throw Misuse("the argument \(form) is missing") }
        return fallback
    }
}
