import Foundation

@testable import EasyNetwork

/// The date at which the responses of these tests arrive: Thu, 01 Jan 2026 12:00:00 GMT.
enum Arrival {
    static let date = Date(timeIntervalSince1970: 1_767_268_800)

    /// The date after some seconds, as in a field.
    static func text(_ seconds: TimeInterval = 0) -> String {
        (date + seconds).httpText
    }
}

extension HTTPHeaders {
    /// Fields separated by bars: `ETag: "a" | Vary: Accept`.
    static func lines(_ text: String) -> HTTPHeaders {
        var headers = HTTPHeaders()
        for line in text.components(separatedBy: " | ") where !line.isEmpty {
            let colon = line.firstIndex(of: ":") ?? line.endIndex
            headers.add(line[colon...].dropFirst().trimmed, for: String(line[..<colon]))
        }
        return headers
    }
}

extension StoredResponse {
    /// A response that was requested and arrived at the date.
    static func stub(_ response: String, request: String = "", status: Int = 200) -> StoredResponse {
        let entry = NetworkCache.Entry(
            key: "k",
            statusCode: status,
            headers: .lines(response),
            requestedAt: Arrival.date,
            receivedAt: Arrival.date
        )
        return StoredResponse(arrived: entry, request: .lines(request))
    }
}
