import Foundation

/// A form with parts of any size: strings, bytes, files, streams (RFC 7578).
///
/// ```swift
/// var form = MultipartForm()
/// form.append("Holiday", name: "title")
/// form.append(file: photo, name: "photo")
/// let body = RequestBody.multipart(form)
/// ```
///
/// The parts are sent in the order in which they were appended. Several parts can have the same name. If a part cannot
/// be sent, for example because its file is missing, the request fails with ``NetworkError/Code/invalidRequest``. A
/// file must not change until the request has ended; if its length changes, the request fails with the same error.
///
/// In names and file names, a quote, a carriage return and a line feed are sent as `%22`, `%0D` and `%0A`, and all
/// other characters unchanged, in UTF-8 (WHATWG's HTML standard, section 4.10.21.8). Other control characters are
/// invalid.
public struct MultipartForm: Sendable {
    /// The delimiter between the parts. It is random, so that no part contains it.
    public let boundary: String
    private var parts: [MultipartPart] = []

    /// Creates a form without parts.
    public init() {
        self.init(boundary: "EasyNetwork-" + UUID().uuidString)
    }

    /// - Parameter boundary: a token that no part contains.
    init(boundary: String) {
        self.boundary = boundary
    }

    /// Appends a string in UTF-8, with unchanged line breaks.
    ///
    /// - Parameters:
    ///   - text: the value of the part.
    ///   - name: the name of the field.
    ///   - filename: the file name. Defaults to `nil`, which sends none.
    ///   - contentType: the Content-Type. Defaults to `nil`, which sends none and means plain text.
    public mutating func append(_ text: String, name: String, filename: String? = nil, contentType: String? = nil) {
        append(.data(Data(text.utf8)), name, filename, contentType)
    }

    /// Appends bytes.
    ///
    /// - Parameters:
    ///   - data: the bytes of the part.
    ///   - name: the name of the field.
    ///   - filename: the file name. Defaults to `nil`, which sends none. Many servers treat a part as a file only if it
    ///     has one.
    ///   - contentType: the Content-Type. Defaults to `nil`, which derives it from the extension of `filename`, and
    ///     sends none without a `filename`.
    public mutating func append(_ data: Data, name: String, filename: String? = nil, contentType: String? = nil) {
        append(.data(data), name, filename, contentType ?? filename.map(Self.contentType))
    }

    /// Appends a regular file, which is read while it is sent.
    ///
    /// - Parameters:
    ///   - file: the URL of a file.
    ///   - name: the name of the field.
    ///   - filename: the file name to send. Defaults to `nil`, the file's own name without its folders.
    ///   - contentType: the Content-Type. Defaults to `nil`, which derives it from the extension of the file name.
    public mutating func append(file: URL, name: String, filename: String? = nil, contentType: String? = nil) {
        let filename = filename ?? file.lastPathComponent
        append(.file(file), name, filename, contentType ?? Self.contentType(ofFileNamed: filename))
    }

    /// Appends bytes that are read or made while they are sent. The length of the form is known only if the lengths of
    /// all streams are known.
    ///
    /// - Parameters:
    ///   - stream: the source of the bytes.
    ///   - name: the name of the field.
    ///   - filename: the file name. Defaults to `nil`, which sends none.
    ///   - contentType: the Content-Type. Defaults to `nil`, which derives it from the extension of `filename`, and
    ///     sends none without a `filename`.
    public mutating func append(
        stream: TransportBodyStream,
        name: String,
        filename: String? = nil,
        contentType: String? = nil
    ) {
        append(.stream(stream), name, filename, contentType ?? filename.map(Self.contentType))
    }

    private mutating func append(
        _ content: TransportBody,
        _ name: String,
        _ filename: String?,
        _ contentType: String?
    ) {
        parts.append(MultipartPart(content: content, name: name, filename: filename, contentType: contentType))
    }

    private static func contentType(ofFileNamed name: String) -> String {
        // Search bytes: a dot with a combining accent is another Character, and a name can contain slashes.
        guard let dot = name.utf8.lastIndex(of: UInt8(ascii: ".")) else { return RequestBody.unknownContentType }
        return RequestBody.contentType(forExtension: String(decoding: name.utf8[dot...].dropFirst(), as: UTF8.self))
    }

    /// The value of the header field: `multipart/form-data; boundary=…`.
    var contentType: String { "multipart/form-data; boundary=\(boundary)" }

    /// Returns the bytes of the form.
    ///
    /// - Throws: ``NetworkError/Code/invalidRequest`` with the name of the part.
    func stream(_ places: RequestBody.FilePlaces = { $0 }) throws(NetworkError) -> TransportBodyStream {
        var segments: [MultipartPieces.Segment] = []
        for part in parts {
            let opening = (segments.isEmpty ? "" : "\r\n") + "--\(boundary)\r\n"
            let head = TransportBody.data(Data((opening + (try part.header())).utf8))
            var content = part.content
            for body in [head, content] { try body.checkSegments(as: part.label) }
            segments.append((head, part.label))
            if case .file(let file) = content, let bytes = try TransportBody.file(places(file)).stream(as: part.label) {
                content = .stream(bytes)
            }
            segments.append((content, part.label))
        }
        segments.append((.data(Data(((parts.isEmpty ? "" : "\r\n") + "--\(boundary)--\r\n").utf8)), ""))
        let pieces = MultipartPieces(segments: segments[...])
        return TransportBodyStream(
            length: try Self.length(of: segments),
            isReplayable: segments.allSatisfy { $0.body.isReplayable },
            pieces: { pieces }
        )
    }

    /// Returns the sum of all lengths, or nil if one is unknown.
    private static func length(of segments: [MultipartPieces.Segment]) throws(NetworkError) -> Int? {
        var sum = 0
        for segment in segments {
            guard let length = try segment.body.length() else { return nil }
            let (next, isTooLong) = sum.addingReportingOverflow(length)
            guard !isTooLong else {
                let reason = "have a total length of more than \(Int.max) bytes; correct their lengths"
                throw .invalidRequest("the parts of the form \(reason)")
            }
            sum = next
        }
        return sum
    }
}

extension MultipartForm: CustomStringConvertible {
    /// The names of the parts.
    public var description: String {
        String(listing: "MultipartForm", [("parts", parts.map(\.name))])
    }
}

private struct MultipartPart: Sendable {
    let content: TransportBody
    let name: String
    let filename: String?
    let contentType: String?

    /// The part's name in error messages.
    var label: String {
        "part \"\(name.count > 80 ? name.prefix(80) + "…" : name[...])\" of the form"
    }

    /// Returns the header section, including the empty line after it (RFC 7578, section 4.2).
    ///
    /// - Throws: ``NetworkError/Code/invalidRequest`` for a value that would break the section.
    func header() throws(NetworkError) -> String {
        var lines = "Content-Disposition: form-data; name=\"\(try escape(name, "the name"))\""
        if let filename { lines += "; filename=\"\(try escape(filename, "the file name"))\"" }
        lines += "\r\n"
        if let contentType {
            guard HTTPSyntax.isFieldValue(contentType.utf8) else {
                throw .invalidRequest("\(label): the content type must not contain line breaks or control characters")
            }
            lines += "Content-Type: \(contentType)\r\n"
        }
        return lines + "\r\n"
    }

    private func escape(_ text: String, _ role: String) throws(NetworkError) -> String {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.utf8.count)
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""): bytes += "%22".utf8
            case UInt8(ascii: "\r"): bytes += "%0D".utf8
            case UInt8(ascii: "\n"): bytes += "%0A".utf8
            // A reader written in C would treat NUL as the end of the string.
            case 0..<0x20, 0x7F: throw .invalidRequest("\(label): \(role) must not contain control characters")
            default: bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

/// The bytes of a ``MultipartForm``, part after part. Each part is read when the transport requests its bytes.
private struct MultipartPieces: AsyncSequence, AsyncIteratorProtocol, Sendable {
    /// Data or a stream, and the part's name in error messages.
    typealias Segment = (body: TransportBody, label: String)

    /// The segments that have not ended.
    var segments: ArraySlice<Segment>
    /// The reader of the first segment, and the number of bytes that it has returned.
    var reader: (any BodyReader)?
    var count = 0

    func makeAsyncIterator() -> MultipartPieces { self }

    mutating func next() async throws -> Data? {
        while let (body, label) = segments.first {
            switch body {
            case .data(let data):
                segments.removeFirst()
                return data
            case .stream(let stream):
                do throws(NetworkError) {
                    if let piece = try await piece(of: stream) { return piece }
                } catch {
                    guard error.code != .cancelled else { throw error }
                    var named = error
                    named.message = "\(label): \(error.message ?? error.code.description)"
                    throw named
                }
            case .file, .none: break
            }
            segments.removeFirst()
            (reader, count) = (nil, 0)
        }
        return nil
    }

    /// Returns the next bytes of the first segment, or nil at its end.
    private mutating func piece(of stream: TransportBodyStream) async throws(NetworkError) -> Data? {
        if reader == nil { reader = try stream.reader() }
        let piece = try await reader?.next()
        count += piece?.count ?? 0
        // A longer part would push the next parts beyond the length of the form.
        let isOver = piece == nil || count > stream.length ?? .max
        if isOver, let error = stream.lengthError(count) { throw error }
        return piece
    }
}
