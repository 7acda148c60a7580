// Written by Generate from an OpenAPI document; what is changed here is lost when it is written again.
// swift-format-ignore-file

import EasyNetwork
import Foundation

nonisolated extension Shop {
    struct OrderRequest: APIRequest {
        var payload: Payload? = nil

        var api: String { "orders" }
        var method: NetworkService.Method { .post }
        var body: RequestBody? { payload.map { .form(of: $0) } }

        func item(from response: NetworkResponse) throws -> Item {
            try response.decode(Item.self, with: .json)
        }

        struct Payload: Codable, Hashable, Sendable {
            var thing: Int
            var count: Int?
            var address: Address?
        }

        struct Item: Codable, Hashable, Sendable {
            var number: String
        }
    }

    struct SearchOrders: APIRequest, Encodable {
        typealias Item = [Order]

        var filter: Filter? = nil

        var api: String { "orders" }
        var params: Self { self }
        var options: RequestOptions { RequestOptions(queryEncoder: QueryEncoder(nullSuffix: nil)) }

        func item(from response: NetworkResponse) throws -> [Order] {
            try response.decode([Order].self, with: .json)
        }

        struct Filter: Codable, Hashable, Sendable {
            var state: OrderState?
            var minPrice: Double?

            private enum CodingKeys: String, CodingKey {
                case state
                case minPrice = "min_price"
            }
        }

        private enum CodingKeys: String, CodingKey {
            case filter
        }

        /// The error responses of the document.
        enum Failure: Error, Hashable, Sendable {
            case notFound(Problem)

            /// - Throws: The error itself if the document doesn't describe its response; another error if the body cannot be decoded.
            init(_ error: NetworkError) throws(NetworkError) {
                switch error.statusCode ?? 0 {
                case 404: self = .notFound(try error.decode(Problem.self, with: .json))
                default: throw error
                }
            }
        }
    }
}
