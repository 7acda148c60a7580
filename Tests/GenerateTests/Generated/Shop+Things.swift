// Written by Generate from an OpenAPI document; what is changed here is lost when it is written again.
// swift-format-ignore-file

import EasyNetwork
import Foundation

nonisolated extension Shop {
    /// List things
    ///
    /// In pages.
    struct ListThings: APIRequest {
        typealias Item = Things

        /// Who asks.
        var xClient: String? = nil
        /// The page, from 1.
        ///
        /// Default 1.
        var page: Int? = nil
        var size: Int = 20
        var tags: [String]? = nil
        var ids: [Int]? = nil
        var order: OrderItem? = nil
        /// Deprecated.
        var since: Date? = nil
        var session: String? = nil

        var api: String { "things" }
        var params: [String: Any]? {
            [
                "page": page as Any,
                "size": size,
                "tags": tags as Any,
                "ids": self.ids.map { $0.map { $0.description }.joined(separator: ",") } as Any,
                "order": order as Any,
                "since": since as Any,
            ]
        }
        private var cookies: String? {
            let pairs: [String?] = [self.session.map { "session=\(ParameterText.encoded($0))" }]
            let text = pairs.compactMap { $0 }.joined(separator: "; ")
            return text.isEmpty ? nil : text
        }
        var headers: [String: String]? {
            let fields: [String: String?] = ["X-Client": self.xClient, "Cookie": cookies]
            return fields.compactMapValues { $0 }
        }
        var options: RequestOptions { RequestOptions(queryEncoder: QueryEncoder(arrayStyle: .repeated, nullSuffix: nil)) }

        func item(from response: NetworkResponse) throws -> Things {
            try response.decode(Things.self, with: .json)
        }

        struct OrderItem: RawRepresentable, Codable, Hashable, Sendable {
            var rawValue: String

            static let name = OrderItem(rawValue: "name")
            static let minusName = OrderItem(rawValue: "-name")
            static let price = OrderItem(rawValue: "price")
        }

        /// The error responses of the document.
        enum Failure: Error, Hashable, Sendable {
            case unauthorized(Problem)
            case other(Problem)

            /// - Throws: The error itself if the document doesn't describe its response; another error if the body cannot be decoded.
            init(_ error: NetworkError) throws(NetworkError) {
                switch error.statusCode ?? 0 {
                case 401: self = .unauthorized(try error.decode(Problem.self, with: .json))
                default: self = .other(try error.decode(Problem.self, with: .json))
                }
            }
        }
    }

    /// Add a thing
    struct AddThing: APIRequest {
        typealias Item = Thing?

        /// Who asks.
        var xClient: String? = nil
        /// The new thing.
        var payload: Payload

        var api: String { "things" }
        var method: NetworkService.Method { .post }
        var body: RequestBody? { .json(payload) }
        var headers: [String: String]? {
            let fields: [String: String?] = ["X-Client": self.xClient]
            return fields.compactMapValues { $0 }
        }

        func item(from response: NetworkResponse) throws -> Thing? {
            response.body.isEmpty ? nil : try response.decode(Thing.self, with: .json)
        }

        struct Payload: Codable, Hashable, Sendable {
            var name: String
            var price: Double
            /// Null for none.
            var note: String?
            /// Null removes it.
            var color: String??
            var labels: [Label]?

            enum Label: Codable, Hashable, Sendable {
                case object(Object)
                case string(String)
                /// A value of a kind that the document does not have.
                case other(JSONValue)

                struct Object: Codable, Hashable, Sendable {
                    var name: String
                    var weight: Int?
                }

                init(from decoder: any Decoder) throws {
                    let container = try decoder.singleValueContainer()
                    if let value = try? container.decode(Object.self) {
                        self = .object(value)
                    } else if let value = try? container.decode(String.self) {
                        self = .string(value)
                    } else {
                        self = .other(try container.decode(JSONValue.self))
                    }
                }

                func encode(to encoder: any Encoder) throws {
                    var container = encoder.singleValueContainer()
                    switch self {
                    case .object(let value): try container.encode(value)
                    case .string(let value): try container.encode(value)
                    case .other(let value): try container.encode(value)
                    }
                }
            }

            private enum CodingKeys: String, CodingKey {
                case name
                case price
                case note
                case color
                case labels
            }

            func encode(to encoder: any Encoder) throws {
                var container = encoder.container(keyedBy: CodingKeys.self)
                try container.encode(self.name, forKey: .name)
                try container.encode(self.price, forKey: .price)
                try container.encode(self.note, forKey: .note)
                try container.encodeIfPresent(self.color, forKey: .color)
                try container.encodeIfPresent(self.labels, forKey: .labels)
            }
        }

        struct Status422: Codable, Hashable, Sendable {
            var errors: [ErrorItemValue]

            struct ErrorItemValue: Codable, Hashable, Sendable {
                var field: String
                var reason: String?
            }
        }

        /// The error responses of the document.
        enum Failure: Error, Hashable, Sendable {
            case unprocessableContent(Status422)
            case other(Problem)

            /// - Throws: The error itself if the document doesn't describe its response; another error if the body cannot be decoded.
            init(_ error: NetworkError) throws(NetworkError) {
                switch error.statusCode ?? 0 {
                case 422: self = .unprocessableContent(try error.decode(Status422.self, with: .json))
                default: self = .other(try error.decode(Problem.self, with: .json))
                }
            }
        }
    }

    @available(*, deprecated)
    struct GetPhoto: APIRequest {
        typealias Item = Data

        var thingId: ThingNumber
        var number: String

        var api: String { "things/\(segment: thingId)/photos/\(segment: number)" }
        var headers: [String: String]? { ["Accept": "image/png"] }
    }

    struct PutPhoto: APIRequest {
        typealias Item = Void

        var thingId: ThingNumber
        var number: String
        /// Of the type `image/png`.
        var payload: RequestBody

        var api: String { "things/\(segment: thingId)/photos/\(segment: number)" }
        var method: NetworkService.Method { .put }
        var body: RequestBody? { payload }
        var headers: [String: String]? { ["Content-Type": "image/png"] }
    }

    struct ImportThings: APIRequest {
        typealias Item = String

        var list: FormFile
        var photos: [FormFile]? = nil
        var title: String? = nil
        var count: Int? = nil
        var options2: Options? = nil

        var api: String { "things/import" }
        var method: NetworkService.Method { .post }
        var body: RequestBody? {
            var form = MultipartForm()
            self.list.append(to: &form, name: "list")
            if let value = self.photos { for part in value { part.append(to: &form, name: "photos") } }
            if let value = self.title { form.append(value, name: "title", contentType: "text/markdown") }
            if let value = self.count { form.append(value.description, name: "count") }
            if let value = self.options2 { FormFile.append(value, to: &form, name: "options", contentType: "application/vnd.shop+json") }
            return .multipart(form)
        }
        var headers: [String: String]? { ["Accept": "text/plain"] }

        func item(from response: NetworkResponse) throws -> String {
            try response.text()
        }

        struct Options: Codable, Hashable, Sendable {
            var replace: Bool?
        }
    }
}
