import Foundation

extension RequestBody {
    static let unknownContentType = "application/octet-stream"

    /// Returns the media type of a file (IANA's registry of media types, and types in wide use).
    ///
    /// - Parameter fileExtension: the extension in any case, without the dot.
    static func contentType(forExtension fileExtension: String) -> String {
        contentTypes[fileExtension.lowercased()] ?? unknownContentType
    }

    /// Returns whether a request's Content-Type names another format than its body has, or lacks the boundary of its
    /// parts, so that no server could read the body. Plain text and bytes of an unknown type can have any format.
    ///
    /// - Parameter bodyType: the body's own type.
    static func contradicts(_ contentType: String, _ bodyType: String) -> Bool {
        guard let given = MediaType(contentType), let own = MediaType(bodyType) else { return false }
        if let boundary = bodyType.range(of: "boundary=") {
            let text = bodyType[boundary.upperBound...].prefix { $0 != ";" }.filter { $0 != "\"" }.trimmed
            return !given.essence.hasPrefix("multipart/") || !contentType.contains(text)
        }
        guard let format = format(given) else { return false }
        return format != self.format(own) && own.essence != "text/plain" && own.essence != unknownContentType
    }

    /// Returns the name of a format that the package writes itself, or nil for others.
    private static func format(_ type: MediaType) -> String? {
        if type.isJSON { return "json" }
        if type.essence.hasPrefix("multipart/") { return "multipart" }
        return [QueryEncoder.formContentType, "application/x-plist"].first { $0 == type.essence }
    }

    private static let contentTypes = [
        "7z": "application/x-7z-compressed", "aac": "audio/aac", "apng": "image/apng", "avif": "image/avif",
        "avi": "video/x-msvideo", "bmp": "image/bmp", "bz2": "application/x-bzip2", "css": "text/css",
        "csv": "text/csv", "doc": "application/msword",
        "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "epub": "application/epub+zip", "flac": "audio/flac", "geojson": "application/geo+json", "gif": "image/gif",
        "gz": "application/gzip", "heic": "image/heic", "heif": "image/heif", "htm": "text/html", "html": "text/html",
        "ico": "image/vnd.microsoft.icon", "ics": "text/calendar", "jpeg": "image/jpeg", "jpg": "image/jpeg",
        "js": "text/javascript", "json": "application/json", "m4a": "audio/mp4", "m4v": "video/x-m4v",
        "md": "text/markdown", "mid": "audio/midi", "mjs": "text/javascript", "mkv": "video/matroska",
        "mov": "video/quicktime", "mp3": "audio/mpeg", "mp4": "video/mp4", "mpeg": "video/mpeg",
        "mpg": "video/mpeg", "odp": "application/vnd.oasis.opendocument.presentation",
        "ods": "application/vnd.oasis.opendocument.spreadsheet", "odt": "application/vnd.oasis.opendocument.text",
        "oga": "audio/ogg", "ogg": "audio/ogg", "ogv": "video/ogg", "opus": "audio/ogg", "otf": "font/otf",
        "pdf": "application/pdf", "png": "image/png", "ppt": "application/vnd.ms-powerpoint",
        "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "rtf": "application/rtf", "svg": "image/svg+xml", "tar": "application/x-tar", "tif": "image/tiff",
        "tiff": "image/tiff", "ttf": "font/ttf", "txt": "text/plain", "wasm": "application/wasm", "wav": "audio/wav",
        "weba": "audio/webm", "webm": "video/webm", "webp": "image/webp", "woff": "font/woff", "woff2": "font/woff2",
        "xls": "application/vnd.ms-excel",
        "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xml": "application/xml",
        "yaml": "application/yaml", "yml": "application/yaml", "zip": "application/zip", "zst": "application/zstd",
    ]
}

extension TransportBody {
    /// Returns the number of bytes, or nil if it is unknown.
    ///
    /// - Parameter role: the beginning of the error's message.
    /// - Throws: ``NetworkError/Code/invalidRequest`` for a file that cannot be sent.
    package func length(as role: String = "the body") throws(NetworkError) -> Int? {
        switch self {
        case .none: 0
        case .data(let data): data.count
        case .file(let file): try Self.length(of: file, role)
        case .stream(let stream): stream.length
        }
    }

    /// Returns the same bytes as a stream, or nil for a body without bytes.
    ///
    /// - Throws: see ``length(as:)``.
    func stream(as role: String = "the body") throws(NetworkError) -> TransportBodyStream? {
        switch self {
        case .none: nil
        case .data(let data): TransportBodyStream(length: data.count) { InputStream(data: data) }
        case .file(let file): TransportBodyStream(length: try length(as: role)) { InputStream(url: file) }
        case .stream(let stream): stream
        }
    }

    private static func length(of url: URL, _ role: String) throws(NetworkError) -> Int {
        func failure(_ reason: String) -> NetworkError {
            let place = url.isFileURL ? url.path : url.withoutSecrets
            return .invalidRequest("\(role) cannot be read from \(place), which \(reason)")
        }
        guard url.isFileURL else { throw failure("is not a file URL") }
        var status = stat()
        guard stat(url.path, &status) == 0 else { throw failure("does not exist") }
        guard status.st_mode & S_IFMT != S_IFDIR else { throw failure("is a directory") }
        // A pipe has no length, and reading it would block.
        guard status.st_mode & S_IFMT == S_IFREG else { throw failure("is not a regular file") }
        guard access(url.path, R_OK) == 0 else { throw failure("is not readable") }
        guard let count = Int(exactly: status.st_size) else { throw failure("is too large for this platform") }
        return count
    }
}
