import Foundation

@testable import EasyNetwork

/// The moment at which the answers of these tests are received: Thu, 01 Jan 2026 12:00:00 GMT.
enum Arrival {
    static let date = Date(timeIntervalSince1970: 1_767_268_800)

    /// That moment or one so many seconds after it, as a field has it.
    static func text(_ seconds: TimeInterval = 0) -> String {
        (date + seconds).httpText
    }
}

extension HTTPHeaders {
    /// Fields as they are on the wire, with bars between them: `ETag: "a" | Vary: Accept`.
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
    /// Asked for at the moment and received at once, with a date of then unless another one is given.
    static func stub(_ response: String, request: String = "", status: Int = 200) -> StoredResponse {
        StoredResponse(
            request: .lines(request),
            status: status,
            response: .lines(response),
            requestDate: Arrival.date,
            responseDate: Arrival.date
        )
    }
}
