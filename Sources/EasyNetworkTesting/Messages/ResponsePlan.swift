import EasyNetwork
import Foundation

/// A scripted response worked out for one request: the header fields that frame it, and the bytes that go out.
struct ResponsePlan {
    /// A run of the body, of which ``data`` goes out though a chunk's head may promise more.
    struct Piece: Equatable {
        var promisedCount: Int
        var data: Data
    }

    let statusCode: Int
    let headers: HTTPHeaders
    let pieces: [Piece]
    let isChunked: Bool
    /// False when a client must notice that something is missing.
    let isComplete: Bool
    /// Whether the header fields say that the connection closes after the answer.
    let asksToClose: Bool
    /// Whether the connection closes after the answer, said or not.
    let closes: Bool

    init(_ scripted: MockResponse, method: String) {
        let response = Self.problem(of: scripted).map(MockResponse.unsendable) ?? scripted
        statusCode = response.statusCode
        var headers = response.headers
        let scriptedLength = headers["Content-Length"]
        headers.remove("Content-Length")
        headers.remove("Transfer-Encoding")

        var pieces: [Piece] = []
        var chunked = false
        let statusHasBody = response.statusCode >= 200 && response.statusCode != 204 && response.statusCode != 304
        switch response.body {
        case .data(let data):
            pieces = data.isEmpty ? [] : [Piece(promisedCount: data.count, data: data)]
            if statusHasBody { headers["Content-Length"] = String(data.count) }
        case .chunks(let chunks):
            pieces = chunks.filter { !$0.isEmpty }.map { Piece(promisedCount: $0.count, data: $0) }
            chunked = statusHasBody
            if statusHasBody { headers["Transfer-Encoding"] = "chunked" }
        }
        if let scriptedLength, response.statusCode == 304 || (statusHasBody && method == "HEAD") {
            // RFC 9110, section 8.6: here it tells of the body that another request would have got.
            headers["Content-Length"] = scriptedLength
            headers.remove("Transfer-Encoding")
        }

        var complete = true
        var truncated = false
        if !statusHasBody || method == "HEAD" {
            pieces = []
            chunked = false
        }
        if case .truncate(let count) = response.fault?.kind {
            truncated = true
            complete = !chunked && count >= pieces.reduce(0) { $0 + $1.data.count }
            pieces = Self.prefix(of: pieces, count: count)
        }
        self.headers = headers
        self.pieces = pieces
        isChunked = chunked
        isComplete = complete
        asksToClose = headers.hasToken("close", in: "Connection")
        closes = truncated || asksToClose
    }

    private static func prefix(of pieces: [Piece], count: Int) -> [Piece] {
        var left = count
        var kept: [Piece] = []
        for piece in pieces where left > 0 {
            kept.append(Piece(promisedCount: piece.promisedCount, data: piece.data.prefix(left)))
            left -= min(left, piece.data.count)
        }
        return kept
    }

    /// Why a response would corrupt the stream; nil when it would not.
    private static func problem(of response: MockResponse) -> String? {
        guard (100...999).contains(response.statusCode) else { return "\(response.statusCode) is no status code" }
        for field in response.headers {
            guard HTTPSyntax.isToken(field.name.utf8) else { return "\(field.name.debugDescription) is no field name" }
            guard HTTPSyntax.isFieldValue(field.value.utf8) else {
                return "the value of \(field.name) has a control character in it"
            }
        }
        return nil
    }
}
