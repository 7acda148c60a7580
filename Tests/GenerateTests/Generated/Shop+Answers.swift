// Written by Generate from an OpenAPI document; what is changed here is lost when it is written again.
// swift-format-ignore-file

import EasyNetwork
import Foundation

nonisolated extension Shop {
    struct Sometimes: APIRequest {
        typealias Item = Answer?

        var api: String { "answers" }

        func item(from response: NetworkResponse) throws -> Answer? {
            response.body.isEmpty ? nil : try response.decode(Answer.self, with: .json)
        }

        struct Answer: Codable, Hashable, Sendable {
            var a: Int?
        }
    }

    struct OrNull: APIRequest {
        typealias Item = Answer?

        var api: String { "answers" }
        var method: NetworkService.Method { .put }

        func item(from response: NetworkResponse) throws -> Answer? {
            try response.decode(Answer?.self, with: .json)
        }

        struct Answer: Codable, Hashable, Sendable {
            var a: Int?
        }
    }

    struct ByName: APIRequest {
        typealias Item = [String: Value]

        var api: String { "answers" }
        var method: NetworkService.Method { .post }

        func item(from response: NetworkResponse) throws -> [String: Value] {
            try response.decode([String: Value].self, with: .json)
        }

        struct Value: Codable, Hashable, Sendable {
            var a: Int?
        }
    }

    struct ByStatus: APIRequest {
        typealias Item = Answer

        var api: String { "answers" }
        var method: NetworkService.Method { .patch }

        func item(from response: NetworkResponse) throws -> Answer {
            switch response.statusCode {
            case 200: .ok(try response.decode(Status200.self, with: .json))
            case 201: .created(try response.decode(Status201.self, with: .json))
            case 204: .noContent
            default: .created(try response.decode(Status201.self, with: .json))
            }
        }

        /// The response, by its status.
        enum Answer: Hashable, Sendable {
            case ok(Status200)
            case created(Status201)
            case noContent
        }

        struct Status200: Codable, Hashable, Sendable {
            var a: Int?
        }

        struct Status201: Codable, Hashable, Sendable {
            var b: Int?
        }
    }

    struct GetLists: APIRequest {
        typealias Item = Void

        var plain: [String]
        var label: [String]
        var matrix: [Int]
        var labels: [String]
        var numbers: [Int]
        var mark: String

        var api: String { "lists/\(ParameterText.segment(plain, separator: ","))/.\(ParameterText.segment(label, separator: ","))/;matrix=\(ParameterText.segment(matrix.map { $0.description }, separator: ";matrix="))/.\(ParameterText.segment(labels, separator: "."))/;numbers=\(ParameterText.segment(numbers.map { $0.description }, separator: ","))" }
        private var cookies: String {
            let pairs: [String?] = ["mark=\(ParameterText.encoded(self.mark))"]
            return pairs.compactMap { $0 }.joined(separator: "; ")
        }
        var headers: [String: String]? { ["Cookie": cookies] }
    }
}
