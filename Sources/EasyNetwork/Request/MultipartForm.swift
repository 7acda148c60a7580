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
/// The parts are sent in the order in which they were appended; several may have the same name. A part that cannot be
/// sent, for example a missing file, ends the request with ``NetworkError/Code/invalidRequest``. A file must not change
/// until the request has ended: a file whose length has changed by then ends the exchange with that error.
///
/// In names and file names a quote, a carriage return and a line feed are sent as `%22`, `%0D` and `%0A`, all other
/// characters as they are, in UTF-8 (WHATWG's HTML standard, section 4.10.21.8). Other control characters are refused.
public struct MultipartForm: Sendable {
    /// The text between the parts, which is random, so that no part contains it.
    public let boundary: String
    private var parts: [MultipartPart] = []

    /// A form without parts.
    public init() {
        self.init(boundary: "EasyNetwork-" + UUID().uuidString)
    }

    /// - Parameter boundary: a token that is in no part.
    init(boundary: String) {
        self.boundary = boundary
    }

    /// Appends a text, in UTF-8, with its line breaks as they are.
    ///
    /// - Parameters:
    ///   - text: the value of the part.
    ///   - name: the name of the field.
    ///   - filename: default nil, none.
    ///   - contentType: default nil, none, which means plain text.
    public mutating func append(
        _ text: String,
        name: String,
        filename: String? = nil,
        contentType: String? = nil
    ) {
        append(.data(Data(text.utf8)), name, filename, contentType)
    }

    /// Appends bytes.
    ///
    /// - Parameters:
    ///   - data: the bytes of the part.
    ///   - name: the name of the field.
    ///   - filename: default nil, none. Many servers take a part for a file only if it has one.
    ///   - contentType: default nil, by the extension of the file name; none without a file name.
    public mutating func append(
        _ data: Data,
        name: String,
        filename: String? = nil,
        contentType: String? = nil
    ) {
        append(.data(data), name, filename, contentType ?? filename.map(Self.contentType))
    }

    /// Appends a regular file, read while it is sent.
    ///
    /// - Parameters:
    ///   - file: the URL of a file.
    ///   - name: the name of the field.
    ///   - filename: default nil, the name of the file without its folders.
    ///   - contentType: default nil, by the extension of the file name.
    public mutating func append(
        file: URL,
        name: String,
        filename: String? = nil,
        contentType: String? = nil
    ) {
        let filename = filename ?? file.lastPathComponent
        append(.file(file), name, filename, contentType ?? Self.contentType(ofFileNamed: filename))
    }

    /// Appends bytes that are read or made while they are sent. The length of the form is known only if that of each
    /// stream is.
    ///
    /// - Parameters:
    ///   - stream: the source of the bytes.
    ///   - name: the name of the field.
    ///   - filename: default nil, none.
    ///   - contentType: default nil, by the extension of the file name; none without a file name.
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
        // By bytes, because a dot with a combining accent is another Character, and a name may have slashes.
        guard let dot = name.utf8.lastIndex(of: UInt8(ascii: ".")) else { return RequestBody.unknownContentType }
        return RequestBody.contentType(forExtension: String(decoding: name.utf8[dot...].dropFirst(), as: UTF8.self))
    }

    /// The value of the header field: `multipart/form-data; boundary=…`.
    var contentType: String { "multipart/form-data; boundary=\(boundary)" }

    /// The bytes of the form.
    ///
    /// - Throws: ``NetworkError/Code/invalidRequest`` that names the part.
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

    /// The sum of all lengths; nil when one is not known.
    private static func length(of segments: [MultipartPieces.Segment]) throws(NetworkError) -> Int? {
        var sum = 0
        for segment in segments {
            guard let length = try segment.body.length() else { return nil }
            let (next, isTooLong) = sum.addingReportingOverflow(length)
            guard !isTooLong else {
                let reason = "are said to have more than \(Int.max) bytes; correct their lengths"
                throw .invalidRequest("the parts of the form \(reason)")
            }
            sum = next
        }
        return sum
    }
}

/// A part of a ``MultipartForm``.
private struct MultipartPart: Sendable {
    let content: TransportBody
    let name: String
    let filename: String?
    let contentType: String?

    /// The name for messages.
    var label: String {
        "part \"\(name.count > 80 ? name.prefix(80) + "…" : name[...])\" of the form"
    }

    /// The header section with the empty line behind it (RFC 7578, section 4.2).
    ///
    /// - Throws: ``NetworkError/Code/invalidRequest`` for a value that would break it.
    func header() throws(NetworkError) -> String {
        var lines = "Content-Disposition: form-data; name=\"\(try escape(name, "the name"))\""
        if let filename { lines += "; filename=\"\(try escape(filename, "the file name"))\"" }
        lines += "\r\n"
        if let contentType {
            guard HTTPSyntax.isFieldValue(contentType.utf8) else {
                throw failure("the content type has a line break or control character in it")
            }
            lines += "Content-Type: \(contentType)\r\n"
        }
        return lines + "\r\n"
    }

    private func failure(_ reason: String) -> NetworkError {
        .invalidRequest("\(label): \(reason)")
    }

    private func escape(_ text: String, _ role: String) throws(NetworkError) -> String {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.utf8.count)
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""): bytes += "%22".utf8
            case UInt8(ascii: "\r"): bytes += "%0D".utf8
            case UInt8(ascii: "\n"): bytes += "%0A".utf8
            // A reader in C takes a NUL for the end.
            case 0..<0x20, 0x7F: throw failure("\(role) has a control character in it")
            default: bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

/// The bytes of a ``MultipartForm``, part after part, each read when it is asked for.
private struct MultipartPieces: AsyncSequence, AsyncIteratorProtocol, Sendable {
    /// Data or a stream, and the name of its part for messages.
    typealias Segment = (body: TransportBody, label: String)

    /// The segments that have not ended.
    var segments: ArraySlice<Segment>
    /// The reader of the first segment, and the number of its bytes so far.
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
                    throw error.of(label)
                }
            case .file, .none: break
            }
            segments.removeFirst()
            (reader, count) = (nil, 0)
        }
        return nil
    }

    /// The next bytes of the first segment; nil at its end.
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

extension NetworkError {
    /// The error with the name of the part in its message.
    fileprivate func of(_ part: String) -> NetworkError {
        var error = self
        if code != .cancelled { error.message = "\(part): \(message ?? code.description)" }
        return error
    }
}
