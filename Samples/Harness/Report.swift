import EasyNetwork
import Foundation

/// The results of all jobs, in the order of the plan.
struct Report: Sendable {
    enum Outcome: String, Encodable {
        case succeeded, failed, cancelled
        /// A job or batch that this job depends on did not succeed, so this job was not sent.
        case dependencyFailed

        init(_ error: NetworkError?) {
            switch error?.code {
            case nil: self = .succeeded
            case .cancelled?: self = .cancelled
            case .dependencyFailed?: self = .dependencyFailed
            default: self = .failed
            }
        }
    }

    struct Result: Encodable {
        /// The name of the API.
        let name: String
        let id: String
        let outcome: Outcome
        /// The status of the last response; absent without one.
        let status: Int?
        /// The seconds from the start, after any wait in the queue, to the end.
        let seconds: Double
        /// The number of requests sent, including redirects and retries.
        let attempts: Int
        /// The error; absent if the job succeeded.
        let error: String?

        var line: String {
            var line = "\(outcome)  \(id)"
            if let status { line += "  \(status)" }
            line += String(format: "  %.3f s", seconds)
            if attempts > 1 { line += "  \(attempts) attempts" }
            return line + (error.map { "  \($0)" } ?? "")
        }
    }

    let results: [Result]
    let seconds: Double

    var exitStatus: Int32 { results.allSatisfy { $0.outcome == .succeeded } ? 0 : 1 }

    var summary: String {
        let count = results.count { $0.outcome == .succeeded }
        return "\(count) of \(results.count) jobs succeeded" + String(format: " in %.2f s", seconds)
    }

    /// Returns an array with an object for each job.
    func json() throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(results), as: UTF8.self) + "\n"
    }
}
