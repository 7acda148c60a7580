// Written by Generate from an OpenAPI document; what is changed here is lost when it is written again.
// swift-format-ignore-file

import EasyNetwork
import Foundation

nonisolated extension Notes {
    public struct GetNote: APIRequest {
        public typealias Item = Note

        public var id: UUID

        public init(id: UUID) {
            self.id = id
        }

        public var api: String { "notes/\(segment: id.uuidString)" }

        public func item(from response: NetworkResponse) throws -> Note {
            try response.decode(Note.self, with: .json)
        }

        public struct Status4xx: Codable, Hashable, Sendable {
            public var error: String?

            public init(error: String? = nil) {
                self.error = error
            }
        }

        /// The error responses of the document.
        public enum Failure: Error, Hashable, Sendable {
            case refused(Status4xx)

            /// - Throws: The error itself if the document doesn't describe its response; another error if the body cannot be decoded.
            public init(_ error: NetworkError) throws(NetworkError) {
                switch error.statusCode ?? 0 {
                case 400...499: self = .refused(try error.decode(Status4xx.self, with: .json))
                default: throw error
                }
            }
        }
    }
}
