// Written by Generate from an OpenAPI document; what is changed here is lost when it is written again.
// swift-format-ignore-file

import EasyNetwork
import Foundation

nonisolated extension Shop {
    struct GetHealth: APIRequest {
        typealias Item = Void

        var api: String { "health" }
        var options: RequestOptions { RequestOptions(omittedHeaders: ["Authorization", "X-Shop-Key"], isAuthenticated: false) }
    }
}
