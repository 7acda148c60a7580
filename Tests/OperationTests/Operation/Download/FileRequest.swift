import Foundation

@testable import EasyNetwork

struct FileRequest: BaseAPIRequest {
    var api = "file"
    var method = NetworkService.Method.get
    var headers: [String: String]?
    var retry: RetryPolicy?
    var validation: ResponseValidation?
    var options: RequestOptions { RequestOptions(retry: retry, validation: validation, repeatPolicy: repeatPolicy) }
    var repeatPolicy = RepeatPolicy.allow
}
