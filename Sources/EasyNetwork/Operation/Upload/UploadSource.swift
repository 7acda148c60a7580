import Foundation

/// The bytes of a resumable upload: a file or data.
enum UploadSource: Sendable {
    case file(URL)
    case data(Data)

    /// What distinguishes a state of the bytes from others.
    struct Fingerprint: Codable, Equatable, Sendable {
        var length: Int64
        /// The date of the last change in nanoseconds since 1970; `nil` for data.
        var modified: Int64?
        /// The digest of all data, or of the first and the last 64 KiB of a file.
        var digest = Data()

        /// Returns whether only the dates can differ.
        func hasSameBytes(as other: Fingerprint) -> Bool { length == other.length && digest == other.digest }
    }

    private static let sampleCount: Int64 = 65_536

    /// - Throws: ``NetworkError/Code/invalidRequest`` for a body that cannot be sent from an offset.
    init(_ body: TransportBody) throws(NetworkError) {
        switch body {
        case .file(let file): self = .file(file)
        case .data(let data): self = .data(data)
        case .none: self = .data(Data())
        case .stream:
            throw .invalidRequest("a resumable upload needs a body from a file or data, not a stream or a form")
        }
    }

    /// The name of the file; `nil` for data.
    var name: String? { if case .file(let file) = self { file.lastPathComponent } else { nil } }

    /// Returns a string that names the bytes in every process. The home folder of an app has another path after an update.
    func identity(_ fingerprint: Fingerprint) -> String {
        guard case .file(let file) = self else { return "data \(fingerprint.digest.hexadecimal)" }
        let path = file.standardizedFileURL.path
        #if canImport(Darwin)
        // `Library/Caches` in the home folder.
        let caches = FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask).first
        if let home = caches?.deletingLastPathComponent().deletingLastPathComponent().path,
            path.hasPrefix(home + "/")
        {
            return "file ~" + path.dropFirst(home.count)
        }
        #endif
        return "file " + path
    }

    /// Reads the fingerprint.
    func fingerprint() throws(NetworkError) -> Fingerprint {
        switch self {
        case .data(let data): return Fingerprint(length: Int64(data.count), digest: SHA256.digest(of: data))
        case .file(let file):
            let (handle, status) = try Self.open(file)
            var found = Fingerprint(length: Int64(status.st_size), modified: status.modified.nanoseconds)
            do {
                var hash = SHA256()
                hash.update(try handle.read(upToCount: Int(Self.sampleCount)) ?? Data())
                try handle.seek(toOffset: UInt64(max(0, found.length - Self.sampleCount)))
                hash.update(try handle.read(upToCount: Int(Self.sampleCount)) ?? Data())
                found.digest = hash.finalize()
            } catch {
                throw .body(error)
            }
            return found
        }
    }

    /// Returns whether the bytes have the length and the date of the fingerprint.
    func isUnchanged(since fingerprint: Fingerprint) -> Bool {
        guard case .file(let file) = self else { return true }
        guard let (_, status) = try? Self.open(file) else { return false }
        return status.st_size == fingerprint.length && status.modified.nanoseconds == fingerprint.modified
    }

    /// Returns a part of the bytes as the body of a message.
    func body(_ range: Range<Int64>) -> TransportBody {
        if range.isEmpty { return .none }
        switch self {
        case .data(let data):
            let first = data.index(data.startIndex, offsetBy: Int(range.lowerBound))
            return .data(data[first..<data.index(first, offsetBy: range.count)])
        case .file(let file):
            let stream = TransportBodyStream(length: range.count) {
                let (handle, _) = try Self.open(file)
                try handle.seek(toOffset: UInt64(range.lowerBound))
                return FilePieces(file: handle, count: range.count)
            }
            return .stream(stream)
        }
    }

    private static func open(_ file: URL) throws(NetworkError) -> (FileHandle, stat) {
        do {
            let (descriptor, status) = try RegularFile.open(file.path, O_RDONLY, followsLinks: true)
            return (FileHandle(fileDescriptor: descriptor, closeOnDealloc: true), status)
        } catch {
            throw .invalidRequest("the body cannot be read from \(file.path)", underlying: error)
        }
    }
}

/// The next bytes of an open file.
private struct FilePieces: AsyncSequence, AsyncIteratorProtocol, Sendable {
    let file: FileHandle
    var count: Int

    func makeAsyncIterator() -> FilePieces { self }

    mutating func next() async throws -> Data? {
        guard count > 0, let piece = try file.read(upToCount: Swift.min(131_072, count)), !piece.isEmpty else {
            return nil
        }
        count -= piece.count
        return piece
    }
}

extension timespec {
    /// The nanoseconds since 1970.
    fileprivate var nanoseconds: Int64 { Int64(tv_sec) &* 1_000_000_000 &+ Int64(tv_nsec) }
}
