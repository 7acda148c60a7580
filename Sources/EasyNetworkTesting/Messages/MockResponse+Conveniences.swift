import EasyNetwork
import Foundation

extension MockResponse {
    /// An answer without body.
    public static func status(_ statusCode: Int, headers: HTTPHeaders = HTTPHeaders()) -> MockResponse {
        MockResponse(statusCode: statusCode, headers: headers)
    }

    /// An answer that misbehaves.
    public static func fault(_ fault: Fault) -> MockResponse {
        MockResponse(fault: fault)
    }

    /// Bytes with a `Content-Length`.
    ///
    /// - Parameters:
    ///   - status: default 200.
    ///   - headers: default none, so that there is no `Content-Type` either.
    public static func data(
        _ data: Data,
        status: Int = 200,
        headers: HTTPHeaders = HTTPHeaders()
    ) -> MockResponse {
        MockResponse(statusCode: status, headers: headers, body: .data(data))
    }

    /// Bytes in chunks, with no length told beforehand.
    ///
    /// - Parameters:
    ///   - status: default 200.
    ///   - headers: default none.
    public static func chunked(
        _ chunks: [Data],
        status: Int = 200,
        headers: HTTPHeaders = HTTPHeaders()
    ) -> MockResponse {
        MockResponse(statusCode: status, headers: headers, body: .chunks(chunks))
    }

    /// Text in UTF-8 with its `Content-Type`, unless `headers` has one.
    public static func text(
        _ text: String,
        status: Int = 200,
        headers: HTTPHeaders = HTTPHeaders()
    ) -> MockResponse {
        typed("text/plain; charset=utf-8", Data(text.utf8), status, headers)
    }

    /// A dictionary, an array, or a lone value, as JSON with sorted keys and its `Content-Type`, unless `headers` has
    /// one. What is no JSON gives a 500 whose body says so.
    public static func json(
        _ value: Any,
        status: Int = 200,
        headers: HTTPHeaders = HTTPHeaders()
    ) -> MockResponse {
        // Asked first, since Apple's serialization raises an exception that Swift cannot catch. The array around it
        // lets a lone value pass.
        guard JSONSerialization.isValidJSONObject([value]) else {
            return unsendable("the value of type \(type(of: value)) is no JSON")
        }
        do {
            let options: JSONSerialization.WritingOptions = [.fragmentsAllowed, .sortedKeys, .withoutEscapingSlashes]
            let data = try JSONSerialization.data(withJSONObject: value, options: options)
            return typed("application/json", data, status, headers)
        } catch {
            return unsendable("the value of type \(type(of: value)) is no JSON, \(error)")
        }
    }

    /// A dictionary literal of mixed values as JSON; see the other `json`.
    public static func json(
        _ object: [String: Any],
        status: Int = 200,
        headers: HTTPHeaders = HTTPHeaders()
    ) -> MockResponse {
        json(object as Any, status: status, headers: headers)
    }

    /// A value as JSON, written by a `JSONEncoder` with sorted keys, and its `Content-Type`, unless `headers` has one.
    /// A value that cannot be encoded gives a 500 whose body says so.
    public static func json<Value: Encodable>(
        _ value: Value,
        status: Int = 200,
        headers: HTTPHeaders = HTTPHeaders()
    ) -> MockResponse {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        do {
            return typed("application/json", try encoder.encode(value), status, headers)
        } catch {
            return unsendable("the value of type \(Value.self) cannot be encoded, \(error)")
        }
    }

    /// What goes out in place of a scripted response that cannot.
    static func unsendable(_ reason: String) -> MockResponse {
        error("the scripted response cannot be sent: \(reason)", status: 500)
    }

    static func error(_ message: String, status: Int) -> MockResponse {
        json(["error": message] as [String: String], status: status)
    }

    private static func typed(
        _ contentType: String,
        _ data: Data,
        _ status: Int,
        _ headers: HTTPHeaders
    ) -> MockResponse {
        var headers = headers
        if headers["Content-Type"] == nil { headers["Content-Type"] = contentType }
        return MockResponse(statusCode: status, headers: headers, body: .data(data))
    }
}
