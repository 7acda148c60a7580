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
    /// The text between the parts. No part contains a random boundary.
    public let boundary: String
    /// Whether the boundary was chosen without a look at the parts.
    private let isBoundaryGiven: Bool
    private var parts: [MultipartPart] = []

    /// A form without parts.
    ///
    /// - Parameter boundary: 1 to 70 letters, digits or `'()+_,-./:=?` (RFC 2046, section 5.1.1). Texts and bytes that
    ///   contain it are refused; files and streams are not checked. Default nil, a random one.
    public init(boundary: String? = nil) {
        isBoundaryGiven = boundary != nil
        self.boundary = boundary ?? "EasyNetwork-" + UUID().uuidString
    }

    /// Appends a text, in UTF-8, with its line breaks as they are.
    ///
    /// - Parameters:
    ///   - filename: default nil, none.
    ///   - contentType: default nil, none, which means plain text.
    ///   - headers: further header fields of the part; default none.
    public mutating func append(
        _ text: String,
        name: String,
        filename: String? = nil,
        contentType: String? = nil,
        headers: HTTPHeaders = HTTPHeaders()
    ) {
        append(.data(Data(text.utf8)), name, filename, contentType, headers)
    }

    /// Appends bytes.
    ///
    /// - Parameters:
    ///   - filename: default nil, none. Many servers take a part for a file only if it has one.
    ///   - contentType: default nil, by the extension of the file name; none without a file name.
    ///   - headers: further header fields of the part; default none.
    public mutating func append(
        _ data: Data,
        name: String,
        filename: String? = nil,
        contentType: String? = nil,
        headers: HTTPHeaders = HTTPHeaders()
    ) {
        append(.data(data), name, filename, contentType ?? filename.map(Self.contentType), headers)
    }

    /// Appends a regular file, read while it is sent.
    ///
    /// - Parameters:
    ///   - filename: default nil, the name of the file without its folders.
    ///   - contentType: default nil, by the extension of the file name.
    ///   - headers: further header fields of the part; default none.
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

    /// Appends bytes that are read or made while they are sent. The length of the form is known only if that of each
    /// stream is.
    ///
    /// - Parameters:
    ///   - filename: default nil, none.
    ///   - contentType: default nil, by the extension of the file name; none without a file name.
    ///   - headers: further header fields of the part; default none.
    public mutating func append(
        stream: TransportBodyStream,
        name: String,
        filename: String? = nil,
        contentType: String? = nil,
        headers: HTTPHeaders = HTTPHeaders()
    ) {
        append(.stream(stream), name, filename, contentType ?? filename.map(Self.contentType), headers)
    }

    private mutating func append(
        _ content: TransportBody,
        _ name: String,
        _ filename: String?,
        _ contentType: String?,
        _ headers: HTTPHeaders
    ) {
        parts.append(
            MultipartPart(content: content, name: name, filename: filename, contentType: contentType, headers: headers)
        )
    }

    private static func contentType(ofFileNamed name: String) -> String {
        // By bytes, because a dot with a combining accent is another Character.
        guard let dot = name.utf8.lastIndex(of: UInt8(ascii: ".")) else { return RequestBody.unknownContentType }
        return RequestBody.contentType(forExtension: String(decoding: name.utf8[dot...].dropFirst(), as: UTF8.self))
    }

    /// The value of the header field: `multipart/form-data; boundary=…`.
    var contentType: String {
        let value = HTTPSyntax.isToken(boundary.utf8) ? boundary : "\"\(boundary)\""
        return "multipart/form-data; boundary=\(value)"
    }

    /// The bytes of the form.
    ///
    /// - Throws: ``NetworkError/Code/invalidRequest`` that names the part.
    func stream() throws(NetworkError) -> TransportBodyStream {
        try checkBoundary()
        var segments: [MultipartReader.Segment] = []
        for part in parts {
            let opening = (segments.isEmpty ? "" : "\r\n") + "--\(boundary)\r\n"
            segments.append((.data(Data((opening + (try part.header())).utf8)), part.label))
            var content = part.content
            if case .file = content, let file = try content.stream(as: part.label) { content = .stream(file) }
            if isBoundaryGiven, case .data(let data) = content, data.range(of: Data("--\(boundary)".utf8)) != nil {
                throw part.failure("the boundary \(boundary) is in it; leave the choice of one to the form")
            }
            segments.append((content, part.label))
        }
        segments.append((.data(Data(((parts.isEmpty ? "" : "\r\n") + "--\(boundary)--\r\n").utf8)), ""))
        let isReplayable = segments.allSatisfy { $0.body.isReplayable }
        return TransportBodyStream(length: try Self.length(of: segments), isReplayable: isReplayable) { [segments] in
            MultipartReader(segments)
        }
    }

    /// The sum of all lengths; nil when one is not known.
    private static func length(of segments: [MultipartReader.Segment]) throws(NetworkError) -> Int? {
        var sum = 0
        for segment in segments {
            guard let length = try segment.body.length() else { return nil }
            let (next, isTooLong) = sum.addingReportingOverflow(length)
            guard !isTooLong else {
                let message = "the parts of the form are said to have more than \(Int.max) bytes; correct their lengths"
                throw NetworkError(code: .invalidRequest, message: message)
            }
            sum = next
        }
        return sum
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
}

/// A part of a ``MultipartForm``.
private struct MultipartPart: Sendable {
    let content: TransportBody
    let name: String
    let filename: String?
    let contentType: String?
    let headers: HTTPHeaders

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
        if let contentType { lines += try line("Content-Type", contentType) }
        for field in headers {
            guard HTTPSyntax.isToken(field.name.utf8) else {
                throw failure("the header name \"\(field.name.prefix(80))\" is no token (RFC 9110, section 5.6.2)")
            }
            guard !["Content-Disposition", "Content-Type"].contains(where: field.name.isEqualIgnoringASCIICase) else {
                throw failure("the header \(field.name) is set by name, filename and contentType")
            }
            lines += try line(field.name, field.value)
        }
        return lines + "\r\n"
    }

    func failure(_ reason: String) -> NetworkError {
        NetworkError(code: .invalidRequest, message: "\(label): \(reason)")
    }

    private func line(_ name: String, _ value: String) throws(NetworkError) -> String {
        // The message leaves the value out, because it may be a secret.
        guard HTTPSyntax.isFieldValue(value.utf8) else {
            throw failure("the value of the header \(name.prefix(80)) has a line break or control character in it")
        }
        return "\(name): \(value)\r\n"
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

/// Reads the bytes of a ``MultipartForm`` once, and begins each part when the one before has ended.
private final class MultipartReader: BodyReader {
    /// Data or a stream, and the name of its part for messages.
    typealias Segment = (body: TransportBody, label: String)
    private typealias Completion = @Sendable (Result<Data?, NetworkError>) -> Void
    /// A stream that is being read, and the number of its bytes so far.
    private typealias Current = (stream: TransportBodyStream, label: String, reader: any BodyReader, count: Int)

    private struct State {
        /// The segments that have not begun, in reverse order.
        var segments: [Segment]
        var current: Current?
        var isCancelled = false
    }

    private let state: Locked<State>

    init(_ segments: [Segment]) {
        state = Locked(State(segments: segments.reversed()))
    }

    func next(_ completion: @escaping @Sendable (Result<Data?, NetworkError>) -> Void) {
        let (current, isCancelled) = state.withLock { ($0.current, $0.isCancelled) }
        if isCancelled { return completion(.failure(NetworkError(code: .cancelled))) }
        guard let current else { return nextSegment(completion) }
        current.reader.next { self.take($0, from: current, completion) }
    }

    func cancel() {
        let current = state.withLock { state in
            state.isCancelled = true
            let current = state.current
            state.current = nil
            return current
        }
        current?.reader.cancel()
    }

    private func nextSegment(_ completion: @escaping Completion) {
        guard let (body, label) = state.withLock({ $0.segments.popLast() }) else { return completion(.success(nil)) }
        switch body {
        case .data(let data) where !data.isEmpty: completion(.success(data))
        case .stream(let stream):
            do throws(NetworkError) {
                let reader = try stream.reader()
                let isWanted = state.withLock { state in
                    if !state.isCancelled { state.current = (stream, label, reader, 0) }
                    return !state.isCancelled
                }
                if !isWanted { reader.cancel() }
                next(completion)
            } catch {
                completion(.failure(error.of(label)))
            }
        // Empty data would mean the end of the body.
        default: next(completion)
        }
    }

    private func take(_ result: Result<Data?, NetworkError>, from current: Current, _ completion: @escaping Completion)
    {
        do throws(NetworkError) {
            guard let piece = try result.get() else {
                if let error = current.stream.lengthError(current.count) { throw error }
                state.withLock { $0.current = nil }
                current.reader.cancel()
                return next(completion)
            }
            let count = current.count + piece.count
            // A longer part would push the next parts beyond the length of the form.
            if count > current.stream.length ?? .max, let error = current.stream.lengthError(count) { throw error }
            state.withLock { $0.current?.count = count }
            completion(.success(piece))
        } catch {
            completion(.failure(error.of(current.label)))
        }
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
