import Foundation

/// A file that is to be sent.
enum BodyFile {
    /// How many bytes the file has.
    ///
    /// - Parameter role: what is read from it, `the body`.
    /// - Throws: ``NetworkError/Code/invalidRequest`` for what is no regular file that can be read.
    static func length(of url: URL, role: String) throws(NetworkError) -> Int {
        func failure(_ reason: String) -> NetworkError {
            let place = url.isFileURL ? url.path : url.withoutSecrets
            return NetworkError(
                code: .invalidRequest,
                message: "\(role) is to be read from \(place), which \(reason)"
            )
        }
        guard url.isFileURL else { throw failure("is no file") }
        var isDirectory: ObjCBool = false
        guard FileManager.default.fileExists(atPath: url.path, isDirectory: &isDirectory) else {
            throw failure("does not exist")
        }
        guard !isDirectory.boolValue else { throw failure("is a directory") }
        // The attributes are those of a link itself, not of what it leads to.
        let path = url.resolvingSymlinksInPath().path
        let attributes = try? FileManager.default.attributesOfItem(atPath: path)
        // A pipe would be waited for, and has no length.
        guard attributes?[.type] as? FileAttributeType == .typeRegular, let size = attributes?[.size] as? NSNumber
        else {
            throw failure("is no regular file")
        }
        guard FileManager.default.isReadableFile(atPath: path) else { throw failure("must not be read") }
        guard let count = Int(exactly: size.int64Value) else { throw failure("has more bytes than an Int counts") }
        return count
    }
}
