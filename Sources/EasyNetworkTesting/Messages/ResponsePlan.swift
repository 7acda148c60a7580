import EasyNetwork
import Foundation

/// A scripted response worked out for one request: the header fields that frame it, and the bytes that go out.
struct ResponsePlan {
    /// A run of the body, which goes out though a chunk's head may promise more.
    struct Piece: Equatable {
        var promisedCount: Int
        var content: WireSegment
    }

    let statusCode: Int
    let headers: HTTPHeaders
    private(set) var pieces: [Piece]
    let isChunked: Bool
    /// Sent when the body is chunked and whole.
    let trailers: HTTPHeaders
    let interim: [MockResponse.Interim]
    let malformation: MockResponse.Fault.Malformation?
    /// False when a client must notice that something is missing.
    private(set) var isComplete = true
    /// False when the body breaks off in its framing.
    private(set) var isFramedToEnd = true
    /// After how many bytes the head breaks off; nil when all of it is sent.
    private(set) var headCount: Int?
    /// Whether the header fields say that the connection closes after the answer.
    let asksToClose: Bool
    /// What happens after the bytes, unsaid; nil when the connection goes on as the header fields say.
    private(set) var ending: MockResponse.Fault.Action?
    let bytesPerSecond: Int?

    init(_ scripted: MockResponse, method: String) {
        let response = Self.problem(of: scripted).map(MockResponse.unsendable) ?? scripted
        statusCode = response.statusCode
        interim = response.interim
        bytesPerSecond = response.bytesPerSecond
        if case .malformed(let kind) = response.fault?.kind { malformation = kind } else { malformation = nil }

        let statusHasBody = statusCode >= 200 && statusCode != 204 && statusCode != 304
        let hasBody = statusHasBody && method != "HEAD"
        var pieces = Self.pieces(of: response.body)
        let count = pieces.reduce(0) { $0 + $1.content.count }
        var framesChunks = !response.trailers.isEmpty
        if case .chunks = response.body { framesChunks = true }
        if case .badChunk = malformation { framesChunks = true }
        var length = count
        if case .contentLength(let difference) = malformation {
            framesChunks = false
            let (sum, isOver) = count.addingReportingOverflow(difference)
            length = isOver ? Int.max : max(sum, 0)
        }
        if !hasBody { pieces = [] }
        self.pieces = pieces
        isChunked = hasBody && framesChunks
        trailers = isChunked ? response.trailers : HTTPHeaders()

        var headers = response.headers
        let scriptedLength = headers["Content-Length"]
        headers.remove("Content-Length")
        headers.remove("Transfer-Encoding")
        if let scriptedLength, statusCode == 304 || (statusHasBody && method == "HEAD") {
            // RFC 9110, section 8.6: here it tells of the body that another request would have got.
            headers["Content-Length"] = scriptedLength
        } else if statusHasBody {
            if framesChunks {
                headers["Transfer-Encoding"] = "chunked"
            } else {
                headers["Content-Length"] = "\(length)"
            }
        }
        self.headers = Self.with(headers, malformation)
        asksToClose = headers.hasToken("close", in: "Connection")

        switch response.fault?.kind {
        case .breaksOff(let action, let place): breakOff(action, place.kind)
        case .malformed(.badChunk(let count)):
            keep(count, inWholeChunks: true)
            isComplete = !isChunked
            isFramedToEnd = !isChunked
            ending = .close
        case .malformed(.contentLength) where hasBody && length > count:
            isComplete = false
            ending = .close
        case .malformed, .raw, nil: break
        }
    }

    private mutating func breakOff(_ action: MockResponse.Fault.Action, _ place: MockResponse.Fault.Place.Kind) {
        ending = action
        switch place {
        case .requestStart, .requestBody, .responseStart, .responseEnd: break
        case .responseHead(let count):
            headCount = count
            pieces = []
            isComplete = false
            isFramedToEnd = false
        case .responseBody(let count):
            isComplete = !isChunked && count >= pieces.reduce(0) { $0 + $1.content.count }
            isFramedToEnd = false
            keep(count, inWholeChunks: false)
        }
    }

    private mutating func keep(_ count: Int, inWholeChunks: Bool) {
        var left = count
        var kept: [Piece] = []
        for piece in pieces where left > 0 {
            let content = piece.content.prefix(left)
            kept.append(Piece(promisedCount: inWholeChunks ? content.count : piece.promisedCount, content: content))
            left -= content.count
        }
        pieces = kept
    }

    private static func pieces(of body: MockResponse.Body) -> [Piece] {
        let segments: [WireSegment] =
            switch body {
            case .data(let data): [.bytes(data)]
            case .chunks(let chunks): chunks.map(WireSegment.bytes)
            case .repeating(let byte, let count): [.repeating(byte, count: max(count, 0))]
            }
        return segments.filter { $0.count > 0 }.map { Piece(promisedCount: $0.count, content: $0) }
    }

    private static func with(
        _ headers: HTTPHeaders,
        _ malformation: MockResponse.Fault.Malformation?
    ) -> HTTPHeaders {
        switch malformation {
        case .manyHeaders(let count) where count > 0:
            HTTPHeaders(
                Array(headers) + (1...count).map { HTTPHeaders.Field(name: "X-Field-\($0)", value: "\($0)") }
            )
        case .longHeader(let count):
            HTTPHeaders(
                Array(headers) + [HTTPHeaders.Field(name: "X-Long", value: String(repeating: "x", count: count))]
            )
        default: headers
        }
    }

    /// Why a response would corrupt the stream; nil when it would not.
    private static func problem(of response: MockResponse) -> String? {
        guard (100...999).contains(response.statusCode) else { return "\(response.statusCode) is no status code" }
        for interim in response.interim where !(100...199).contains(interim.statusCode) {
            return "\(interim.statusCode) is no status code of an interim answer"
        }
        for fields in [response.headers, response.trailers] + response.interim.map(\.headers) {
            for field in fields {
                guard HTTPSyntax.isToken(field.name.utf8) else {
                    return "\(field.name.debugDescription) is no field name"
                }
                guard HTTPSyntax.isFieldValue(field.value.utf8) else {
                    return "the value of \(field.name) has a control character in it"
                }
            }
        }
        return nil
    }
}
