import Foundation

/// A form with parts of any size: texts, bytes, files, streams (RFC 7578).
///
/// ```swift
/// var form = MultipartForm()
/// form.append("Holiday", name: "title")
/// form.append(file: photo, name: "photo")
/// let body = RequestBody.multipart(form)
/// ```
///
/// The parts are sent in the order in which they were appended; several may have one name. A part that cannot be sent,
/// a file that does not exist for example, is ``NetworkError/Code/invalidRequest`` of the request that is built with
/// the form. A file must stay as it is until the request has ended: one that has another length by then ends the exchange
/// with that error.
///
/// In names and file names a quote, a carriage return and a line feed are sent as `%22`, `%0D` and `%0A`, everything else
/// as it is, in UTF-8, as WHATWG's HTML standard has it (section 4.10.21.8). Other control characters are refused.
public struct MultipartForm: Sendable {
    /// What stands between the parts. A random one is not in any of them.
    public let boundary: String
    /// Whether the boundary was chosen without a look at the parts.
    private let isBoundaryGiven: Bool
    private var parts: [MultipartPart] = []

    /// A form without parts.
    ///
    /// - Parameter boundary: 1 to 70 letters, digits or `'()+_,-./:=?` (RFC 2046, section 5.1.1). Texts and bytes with it
    ///   in them are refused, files and streams are not looked at. Default nil, a random one.
    public init(boundary: String? = nil) {
        isBoundaryGiven = boundary != nil
        self.boundary = boundary ?? Self.randomBoundary()
    }

    /// A text, in UTF-8, with its line breaks as they are.
    ///
    /// - Parameters:
    ///   - filename: default nil, none.
    ///   - contentType: default nil, none, which means plain text.
    ///   - headers: more header fields of the part; default none.
    public mutating func append(
        _ text: String,
        name: String,
        filename: String? = nil,
        contentType: String? = nil,
        headers: HTTPHeaders = HTTPHeaders()
    ) {
        append(.data(Data(text.utf8)), name, filename, contentType, headers)
    }

    /// Bytes.
    ///
    /// - Parameters:
    ///   - filename: default nil, none. Some servers take only a part with one for a file.
    ///   - contentType: default nil, by the extension of the file name; none without a file name.
    ///   - headers: more header fields of the part; default none.
    public mutating func append(
        _ data: Data,
        name: String,
        filename: String? = nil,
        contentType: String? = nil,
        headers: HTTPHeaders = HTTPHeaders()
    ) {
        append(.data(data), name, filename, contentType ?? filename.map(Self.contentType(ofFileNamed:)), headers)
    }

    /// A regular file, read while it is sent.
    ///
    /// - Parameters:
    ///   - filename: default nil, the name of the file without its folders.
    ///   - contentType: default nil, by the extension of the file name.
    ///   - headers: more header fields of the part; default none.
    public mutating func append(
        file: URL,
        name: String,
        filename: String? = nil,
        contentType: String? = nil,
        headers: HTTPHeaders = HTTPHeaders()
    ) {
        let filename = filename ?? file.lastPathComponent
        append(.file(file), name, filename, contentType ?? Self.contentType(ofFileNamed: filename), headers)
    }

    /// Bytes that are read or made while they are sent. When their length is not known, that of the form is not either.
    ///
    /// - Parameters:
    ///   - filename: default nil, none.
    ///   - contentType: default nil, by the extension of the file name; none without a file name.
    ///   - headers: more header fields of the part; default none.
    public mutating func append(
        stream: TransportBodyStream,
        name: String,
        filename: String? = nil,
        contentType: String? = nil,
        headers: HTTPHeaders = HTTPHeaders()
    ) {
        append(.stream(stream), name, filename, contentType ?? filename.map(Self.contentType(ofFileNamed:)), headers)
    }

    /// The value of the header field: `multipart/form-data; boundary=…`.
    var contentType: String {
        let value = HTTPSyntax.isToken(boundary.utf8) ? boundary : "\"\(boundary)\""
        return "multipart/form-data; boundary=\(value)"
    }

    /// The form as it goes over the wire.
    ///
    /// - Throws: ``NetworkError/Code/invalidRequest`` that names the part.
    func stream() throws(NetworkError) -> TransportBodyStream {
        let segments = try self.segments()
        let length = try Self.length(of: segments)
        return TransportBodyStream(length: length, isReplayable: segments.allSatisfy(\.isReplayable)) {
            MultipartReader(segments)
        }
    }

    /// Nil when that of one is not known.
    private static func length(of segments: [MultipartSegment]) throws(NetworkError) -> Int? {
        var sum = 0
        for segment in segments {
            guard let length = segment.length else { return nil }
            let (next, isTooLong) = sum.addingReportingOverflow(length)
            guard !isTooLong else {
                let message = "the parts of the form are said to have more than \(Int.max) bytes; mend their lengths"
                throw NetworkError(code: .invalidRequest, message: message)
            }
            sum = next
        }
        return sum
    }

    private func segments() throws(NetworkError) -> [MultipartSegment] {
        try checkBoundary()
        var segments: [MultipartSegment] = []
        for (index, part) in parts.enumerated() {
            let opening = (index == 0 ? "" : "\r\n") + "--\(boundary)\r\n"
            segments.append(.bytes(Data((opening + (try part.header())).utf8)))
            let content = try part.segment()
            if isBoundaryGiven, case .bytes(let data) = content, data.range(of: Data("--\(boundary)".utf8)) != nil {
                throw part.failure("the boundary \(boundary) is in it; leave the choice of one to the form")
            }
            segments.append(content)
        }
        segments.append(.bytes(Data(((parts.isEmpty ? "" : "\r\n") + "--\(boundary)--\r\n").utf8)))
        return segments
    }

    private mutating func append(
        _ content: MultipartPart.Content,
        _ name: String,
        _ filename: String?,
        _ contentType: String?,
        _ headers: HTTPHeaders
    ) {
        parts.append(
            MultipartPart(content: content, name: name, filename: filename, contentType: contentType, headers: headers)
        )
    }

    private func checkBoundary() throws(NetworkError) {
        let isSound =
            (1...70).contains(boundary.utf8.count)
            && boundary.utf8.allSatisfy { $0.isLetter || $0.isDigit || "'()+_,-./:=?".utf8.contains($0) }
        guard isSound else {
            throw NetworkError(
                code: .invalidRequest,
                message: "the boundary of a multipart form has 1 to 70 letters, digits or '()+_,-./:=?"
            )
        }
    }

    private static func contentType(ofFileNamed name: String) -> String {
        // By bytes: a dot with a combining accent behind it is another Character.
        let bytes = name.utf8
        guard let dot = bytes.lastIndex(of: UInt8(ascii: ".")) else { return FileContentType.unknown }
        return FileContentType.named(byExtension: String(decoding: bytes[bytes.index(after: dot)...], as: UTF8.self))
    }

    private static func randomBoundary() -> String {
        "EasyNetwork-" + UUID().uuidString
    }
}
