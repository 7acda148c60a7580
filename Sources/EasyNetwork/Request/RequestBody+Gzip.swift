import Foundation

extension RequestBody {
    /// Returns the body compressed with gzip (RFC 1952), with `Content-Encoding: gzip` (RFC 9110, section 8.4.1.3). It
    /// is compressed while it is sent, in constant memory.
    ///
    /// ```swift
    /// let body = RequestBody.file(file).gzipped()
    /// ```
    ///
    /// Use it only for servers that accept gzip: another server responds with 415, or takes the compressed bytes for
    /// the body.
    ///
    /// - A body in memory is compressed when the request is built, and sent with its `Content-Length`. The compressed
    ///   length of a file, a stream or a form is unknown until its end: over HTTP/1.1 it is sent in chunks, and an
    ///   upload has no total. ``URLSessionTransport`` first writes such a body to a file, as it does with every stream.
    /// - The compressed body can be sent again, by a retry or a redirect, if the body itself can.
    /// - A body without bytes is sent unchanged. So is a body that is already compressed: if the request has a
    ///   `Content-Encoding`, or its `Content-Type` names an image, a video, audio, a PDF or an archive. Formats without
    ///   their own compression, such as SVG, BMP and WAV, are compressed nevertheless. A form is always compressed,
    ///   whatever its parts are.
    ///
    /// The Compression framework compresses on Apple's platforms, and zlib (libz.so.1) on Linux, where it is loaded at
    /// run time. Without zlib, the request fails with ``NetworkError/Code/invalidRequest``.
    public func gzipped() -> RequestBody {
        var body = self
        body.isGzipped = true
        return body
    }

    /// Returns whether gzip would hardly reduce the size of this type.
    static func isCompressed(_ contentType: String?) -> Bool {
        guard let type = contentType.flatMap(MediaType.init)?.essence else { return false }
        if plainTypes.contains(type) || type.hasSuffix("+xml") { return false }
        return compressedPrefixes.contains(where: type.hasPrefix) || compressedTypes.contains(type)
            || type.hasSuffix("+zip")
    }

    private static let plainTypes: Set = [
        "image/bmp", "image/tiff", "image/vnd.microsoft.icon", "image/x-icon", "audio/wav", "audio/x-wav", "audio/midi",
    ]

    private static let compressedPrefixes = [
        "image/", "video/", "audio/", "application/vnd.openxmlformats-officedocument.",
        "application/vnd.oasis.opendocument.",
    ]

    private static let compressedTypes: Set = [
        "application/zip", "application/gzip", "application/x-gzip", "application/zstd", "application/x-bzip2",
        "application/x-xz", "application/x-7z-compressed", "application/vnd.rar", "application/java-archive",
        "application/vnd.android.package-archive", "application/pdf", "font/woff", "font/woff2",
    ]
}

extension TransportBody {
    /// Returns the same bytes in gzip, or nil for a body without bytes.
    func gzipped() throws(NetworkError) -> TransportBody? {
        if case .data(let data) = self {
            guard !data.isEmpty else { return nil }
            let compressor = try GzipCompressor()
            return .data(try compressor.compress(data) + compressor.compress(Data(), isLast: true))
        }
        guard let stream = try stream(), stream.length != 0 else { return nil }
        // Fail now, instead of during the transmission, if there is no compressor.
        try GzipCompressor.check()
        let gzipped = TransportBodyStream(isReplayable: stream.isReplayable) {
            GzippedPieces(stream: stream, reader: try stream.reader(), compressor: try GzipCompressor())
        }
        return .stream(gzipped)
    }
}

/// The gzip-compressed bytes of a body.
private struct GzippedPieces: AsyncSequence, AsyncIteratorProtocol, Sendable {
    let stream: TransportBodyStream
    let reader: any BodyReader
    let compressor: GzipCompressor
    var count = 0
    var isOver = false

    func makeAsyncIterator() -> GzippedPieces { self }

    mutating func next() async throws -> Data? {
        if isOver { return nil }
        while let piece = try await reader.next() {
            count += piece.count
            // The transport cannot detect excess bytes in the compressed body.
            if let length = stream.length, count > length { break }
            let bytes = try compressor.compress(piece)
            if !bytes.isEmpty { return bytes }
        }
        if let error = stream.lengthError(count) { throw error }
        isOver = true
        return try compressor.compress(Data(), isLast: true)
    }
}
