import Foundation

/// Puts a complete part where it is to be: in one step, so that whoever looks sees the old file or the new one, whole.
enum FileLanding {
    /// - Parameter name: the file's in the directory of the part.
    /// - Returns: the path of the file that is the result.
    /// - Throws: ``NetworkError/Code/cannotWriteFile``; then what lay there lies there still.
    static func land(
        _ part: PartFile,
        named name: String,
        _ existing: DownloadOptions.ExistingFile
    ) throws(NetworkError) -> String {
        let place = part.place
        guard part.isInPlace else {
            throw .file("the part of the download has vanished from \(place.directory)", ENOENT)
        }
        switch existing {
        case .automatic where place.name == nil, .number:
            for number in 1...limit {
                let path = place.path(named: number == 1 ? name : SafeFileName.numbered(name, number))
                if try link(place.part, path) { return path }
            }
            throw .file("\(limit) files with the name of the download lie in \(place.directory)", EEXIST)
        case .automatic, .replace:
            let path = place.path(named: name)
            guard rename(place.part, path) == 0 else { throw .file("the download cannot be put at \(path)") }
            return path
        case .keep:
            let path = place.path(named: name)
            if try link(place.part, path) { return path }
            guard access(path, F_OK) == 0 else { throw .file("\(path) is a link to nothing") }
            unlink(place.part)
            return path
        }
    }

    private static let limit = 10_000

    /// Gives the part a name that nothing has.
    ///
    /// - Returns: false when something has it.
    private static func link(_ part: String, _ path: String) throws(NetworkError) -> Bool {
        if Foundation.link(part, path) == 0 {
            unlink(part)
            return true
        }
        let number = errno
        if number == EEXIST { return false }
        // Not every file system has links. Then the name is taken by an empty file, which the part replaces.
        guard [EPERM, EOPNOTSUPP, ENOTSUP, ENOSYS, EMLINK].contains(number) else {
            throw .file("the download cannot be put at \(path)", number)
        }
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o666)
        guard descriptor >= 0 else {
            if errno == EEXIST { return false }
            throw .file("the download cannot be put at \(path)")
        }
        close(descriptor)
        guard rename(part, path) == 0 else {
            let number = errno
            unlink(path)
            throw .file("the download cannot be put at \(path)", number)
        }
        return true
    }
}
